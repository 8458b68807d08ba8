"""What a layout or an archive says it holds, and that everything it says can be opened by that name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisector.artifacts.image.layout import open_layout
from bisector.artifacts.image.layout_images import LayoutImages
from bisector.errors import UnknownBuild, Unreadable
from bisector.model import Platform
from tests.fakes.images import ROOT, Image, digest, docker_archive, file, image, pack, write_layout

AMD64 = Platform("linux/amd64")
LAYERS = [pack([file(f"{ROOT}/vllm/_version.py", b"x")])]
SETTINGS = {"Env": ["VLLM_BUILD_COMMIT=" + "c" * 40]}
MADE = image(LAYERS, config=SETTINGS, created="2026-07-31T04:00:00.123456789Z")


def with_entries(layout: Path, *more: object) -> Path:
    index = json.loads((layout / "index.json").read_text())
    index["manifests"] += more
    (layout / "index.json").write_text(json.dumps(index))
    return layout


def entry(made: Image, **extra: object) -> dict[str, object]:
    media_type = json.loads(made.manifest)["mediaType"]
    return {"mediaType": media_type, "digest": made.digest, "size": len(made.manifest), **extra}


async def test_each_image_of_a_layout_is_told_by_each_name(tmp_path: Path) -> None:
    nameless = image([pack([file("x")])])
    layout = with_entries(
        write_layout(MADE, tmp_path / "oci", "nightly"),
        entry(MADE, annotations={"org.opencontainers.image.ref.name": "again"}),
        entry(nameless),
        entry(image([pack([file("y")])]), platform={"os": "unknown", "architecture": "unknown"}),
    )
    for content in nameless.blobs.values():
        (layout / "blobs" / "sha256" / digest(content).removeprefix("sha256:")).write_bytes(content)
    nightly, again, last = await LayoutImages(layout, AMD64).images()
    assert (nightly.name, again.name, last.name) == ("nightly", "again", nameless.digest)
    assert nightly.digest == again.digest == nightly.pin == MADE.digest
    assert nightly.created == datetime(2026, 7, 31, 4, 0, 0, 123456, tzinfo=UTC)
    assert nightly.commit == "c" * 40
    for facts in (nightly, last):
        assert (await open_layout(layout, facts.name))[1] == facts.digest


@pytest.mark.parametrize("name", ["vllm/vllm-openai:nightly", ""])
async def test_an_archive_of_docker_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "saved.tar"
    path.write_bytes(docker_archive(LAYERS, name, config=SETTINGS))
    if not name:
        path.write_bytes(path.read_bytes().replace(b'"RepoTags": [""]', b'"RepoTags": null'))
    [facts] = await LayoutImages(path, AMD64).images()
    assert facts.name == (name or "config.json")
    assert facts.commit == "c" * 40
    assert (await open_layout(path, facts.name))[1] == facts.digest


async def test_an_image_for_another_platform_has_no_digest(tmp_path: Path) -> None:
    arm = {"mediaType": "", "digest": MADE.digest, "size": 1, "platform": {"os": "linux", "architecture": "arm64"}}
    listed = json.dumps({"schemaVersion": 2, "manifests": [arm]}).encode()
    index = Image(manifest=listed, config=b"", layers=(), blobs={**MADE.blobs, "index": listed})
    layout = tmp_path / "oci"
    write_layout(MADE, layout, "amd")
    (layout / "blobs" / "sha256" / index.digest.removeprefix("sha256:")).write_bytes(listed)
    name = {"org.opencontainers.image.ref.name": "arm"}
    with_entries(layout, {"mediaType": "", "digest": index.digest, "size": len(listed), "annotations": name})
    amd, other = await LayoutImages(layout, AMD64).images()
    assert amd.digest == MADE.digest
    assert (other.name, other.digest) == ("arm", None)


async def test_what_is_no_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownBuild):
        await LayoutImages(tmp_path / "nothing", AMD64).images()
    with pytest.raises(Unreadable):
        await LayoutImages(tmp_path, AMD64).images()
