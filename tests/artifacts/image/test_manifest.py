from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.artifacts.image.hints import harmless, layer_hint
from bisector.artifacts.image.manifest import (
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Layer,
    Step,
    align,
    choose_platform,
    decode_config,
    decode_manifest,
)
from bisector.errors import BisectorError, NoBuildForPlatform, Unreadable
from bisector.model import Digest, Platform
from tests.fakes.images import INSTALL, ROOT, image, pack

SHA = "sha256:" + "a" * 64


def index(*platforms: str | None) -> ImageIndex:
    manifests = []
    for number, platform in enumerate(platforms):
        entry: dict[str, object] = {"digest": f"sha256:{number:064}", "size": 1}
        if platform is not None:
            os, architecture, variant = (*platform.split("/"), "")[:3]
            entry["platform"] = {"os": os, "architecture": architecture} | ({"variant": variant} if variant else {})
        manifests.append(entry)
    found = decode_manifest(json.dumps({"schemaVersion": 2, "manifests": manifests}).encode())
    assert isinstance(found, ImageIndex)
    return found


def chosen(found: ImageIndex, platform: str) -> int:
    return int(choose_platform(found, Platform(platform), image="it").digest.removeprefix("sha256:"))


def test_the_platform_is_chosen() -> None:
    several = index("unknown/unknown", "linux/arm64/v8", "linux/amd64", "linux/amd64")
    assert chosen(several, "linux/amd64") == 2
    assert chosen(several, "linux/arm64") == 1
    assert chosen(several, "linux/arm64/v8") == 1
    assert chosen(index(None), "linux/amd64") == 0
    with pytest.raises(NoBuildForPlatform, match=r"only for linux/arm64/v8, linux/amd64\Z"):
        chosen(several, "linux/arm64/v9")
    with pytest.raises(NoBuildForPlatform, match="no platform at all"):
        chosen(index("unknown/unknown"), "linux/amd64")


@pytest.mark.parametrize("style", ["docker", "oci"])
def test_manifests_and_configurations_are_aligned(style: str) -> None:
    made = image([pack([]), b"x"], style=style, created_by=["one", INSTALL])  # type: ignore[arg-type]
    manifest = decode_manifest(made.manifest)
    assert isinstance(manifest, ImageManifest)
    layers = align(manifest, decode_config(made.config))
    assert [layer.created_by for layer in layers] == ["one", INSTALL]
    assert [layer.size for layer in layers] == [len(blob) for blob in made.layers]
    assert layer_hint(layers) == 1


def test_a_history_that_does_not_fit_is_no_hint() -> None:
    made = image([pack([]), b"x"], created_by=[INSTALL])
    manifest = decode_manifest(made.manifest)
    assert isinstance(manifest, ImageManifest)
    assert [layer.created_by for layer in align(manifest, decode_config(made.config))] == [None, None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        b'{"schemaVersion": 1, "fsLayers": []}',
        json.dumps({"config": {"digest": SHA, "size": 1}, "layers": [{"digest": "sha512:x", "size": 1}]}).encode(),
        json.dumps({"config": {"digest": SHA, "size": -1}, "layers": []}).encode(),
        json.dumps({"config": {"digest": SHA, "size": 1}, "layers": [{"digest": SHA, "size": 1}] * 2000}).encode(),
        json.dumps(
            {
                "config": {"digest": SHA, "size": 1},
                "layers": [{"digest": SHA, "size": 1, "mediaType": "application/x.layer.nondistributable.v1.tar"}],
            }
        ).encode(),
    ],
)
def test_what_is_no_manifest_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_manifest(body)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_sentence(body: bytes) -> None:
    for decode in (decode_manifest, decode_config):
        try:
            decode(body)
        except BisectorError:
            continue


def layers_of(*commands: str) -> tuple[Layer, ...]:
    return tuple(Layer(digest=Digest(SHA), size=1, diff_id=Digest(SHA), created_by=command) for command in commands)


@pytest.mark.parametrize(
    ("commands", "at"),
    [
        (["RUN apt-get install", INSTALL, "COPY a b # buildkit"], 1),
        (
            [
                "RUN |4 A=b /bin/sh -c uv pip install --system dist/*.whl --verbose",
                "RUN uv pip install ep_kernels/dist/*.whl",
            ],
            0,
        ),
        (["RUN uv pip install /tmp/deepgemm/dist/*.whl", "RUN pip list"], None),
        (["COPY dir:x in /"], None),
    ],
)
def test_the_layer_with_vllm_is_found_in_the_history(commands: list[str], at: int | None) -> None:
    assert layer_hint(layers_of(*commands)) == at


@pytest.mark.parametrize(
    ("workdir", "command", "excused"),
    [
        ("/vllm-workspace", "COPY examples examples # buildkit", True),
        ("/vllm-workspace", "COPY --link --chown=1:1 a b /vllm-workspace/c/ # buildkit", True),
        ("/", "/bin/sh -c #(nop) COPY dir:abc in /vllm-workspace/examples ", True),
        ("/", "COPY wheels.sha256 / # buildkit", False),
        ("/", "COPY . . # buildkit", False),
        ("/vllm-workspace", "COPY x ../usr # buildkit", False),
        ("/vllm-workspace", "COPY x $HOME/x # buildkit", False),
        ("/opt/x", "COPY x y # buildkit", False),
        ("/vllm-workspace", "RUN /bin/sh -c uv pip list > x # buildkit", False),
        ("/vllm-workspace", "ADD 'unclosed # buildkit", False),
        ("/vllm-workspace", "/bin/sh -c #(nop) COPY dir:abc in /usr ", False),
    ],
)
def test_layers_that_cannot_touch_python_are_excused(workdir: str, command: str, excused: bool) -> None:  # noqa: FBT001
    history = [Step(created_by=f"WORKDIR {workdir}", empty_layer=True), Step(created_by=command)]
    found = harmless(layers_of(command), ImageConfig(history=history), root=ROOT)
    assert found == (frozenset({0}) if excused else frozenset())
    assert not harmless(layers_of(command), ImageConfig(history=history), root="")


def test_no_layer_is_excused_where_the_environment_itself_lives() -> None:
    history = [Step(created_by="COPY . /app # buildkit")]
    assert not harmless(layers_of("COPY . /app # buildkit"), ImageConfig(history=history), root="app/.venv/lib/x")
