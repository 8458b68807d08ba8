"""By which digest an image of the engine is remembered, for each way an engine keeps images."""

from __future__ import annotations

import msgspec
import pytest

from bisector.artifacts.engine_api import InspectedImage

ID, MANIFEST, LIST = (f"sha256:{letter * 64}" for letter in "abc")
LAYERS = {"Type": "layers", "Layers": [f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"]}


def inspected(**told: object) -> InspectedImage:
    return msgspec.convert({"Id": ID, "RootFS": LAYERS, **told}, InspectedImage)


def descriptor(media_type: str, digest: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest, "size": 1}


def test_unpacked_images_are_known_by_their_configuration() -> None:
    assert inspected(RepoDigests=[f"vllm/vllm-openai@{LIST}"]).digest == ID


@pytest.mark.parametrize(
    "media_type",
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"],
)
def test_stored_images_are_known_by_their_manifest(media_type: str) -> None:
    assert inspected(Id=MANIFEST, Descriptor=descriptor(media_type, MANIFEST)).digest == MANIFEST


def test_a_list_of_images_is_not_mistaken_for_one_of_them() -> None:
    media_type = "application/vnd.oci.image.index.v1+json"
    amd = inspected(Id=LIST, Descriptor=descriptor(media_type, LIST)).digest
    layers = {"Type": "layers", "Layers": [f"sha256:{'3' * 64}"]}
    arm = inspected(Id=LIST, Descriptor=descriptor(media_type, LIST), RootFS=layers).digest
    assert len({amd, arm, LIST}) == 3
    assert amd == inspected(Id=LIST, Descriptor=descriptor(media_type, LIST)).digest
