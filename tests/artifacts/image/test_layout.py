from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.layout import open_layout
from bisector.errors import BisectorError, UnknownBuild, Unreadable
from bisector.model import Platform
from tests.fakes.images import ROOT, Item, digest, file, image, pack, write_layout
from tests.fakes.wheels import only

FILES = [file(f"{ROOT}/vllm/_C.so", b"library" * 1000), file(f"{ROOT}/vllm/_version.py", b"x")]
MADE = image([pack([file("etc/x", b"x")]), pack(FILES)])


async def library(path: Path, name: str | None = None) -> bytes:
    source, found = await open_layout(path, name)
    artifact = ImageArtifact(source, found, Platform("linux/amd64"), verify=True)
    return (await artifact.select(only(["vllm/_C.so"]))).contents["vllm/_C.so"]


def archived(items: list[Item], path: Path) -> Path:
    path.write_bytes(pack(items))
    return path


def docker_saved(path: Path, *, shared: bool = False) -> Path:
    layer, base = pack(FILES), pack([file("etc/x", b"x")])
    manifest = [{"Config": "abc.json", "RepoTags": ["vllm:nightly"], "Layers": ["one/layer.tar", "two/layer.tar"]}]
    one = Item(path="one/layer.tar", kind=tarfile.SYMTYPE, link="../shared/layer.tar")
    parts = [one, file("shared/layer.tar", base)] if shared else [file("one/layer.tar", base)]
    return archived(
        [
            *parts,
            file("two/layer.tar", layer),
            file("abc.json", MADE.config),
            file("manifest.json", json.dumps(manifest).encode()),
        ],
        path,
    )


async def test_a_directory_is_read(tmp_path: Path) -> None:
    layout = write_layout(MADE, tmp_path / "oci", "nightly")
    assert await library(layout) == await library(layout, "nightly") == FILES[0].content
    assert (await open_layout(layout))[1] == MADE.digest
    with pytest.raises(UnknownBuild, match="no images called other"):
        await library(layout, "other")


async def test_an_archive_of_a_layout_is_read(tmp_path: Path) -> None:
    layout = write_layout(MADE, tmp_path / "oci", "nightly")
    with tarfile.open(tmp_path / "oci.tar", "w") as archive:
        archive.add(layout, ".")
    assert await library(tmp_path / "oci.tar", "nightly") == FILES[0].content


@pytest.mark.parametrize("shared", [True, False])
async def test_what_docker_saved_is_read(tmp_path: Path, shared: bool) -> None:  # noqa: FBT001
    saved = docker_saved(tmp_path / "saved.tar", shared=shared)
    assert await library(saved) == await library(saved, "vllm:nightly") == FILES[0].content


async def test_damage_on_disk_is_refused(tmp_path: Path) -> None:
    layout = write_layout(MADE, tmp_path / "oci", "nightly")
    layer = layout / "blobs" / "sha256" / digest(MADE.layers[1]).removeprefix("sha256:")
    content = bytearray(layer.read_bytes())
    content[-1] ^= 1
    layer.write_bytes(bytes(content))
    with pytest.raises(Unreadable):
        await library(layout)
    layer.write_bytes(bytes(content[:-1]))
    with pytest.raises(Unreadable, match="where"):
        await library(layout)
    layer.unlink()
    with pytest.raises(UnknownBuild):
        await library(layout)


async def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownBuild):
        await library(tmp_path / "missing")
    with pytest.raises(Unreadable, match="neither"):
        await library(tmp_path)
    (tmp_path / "noise.tar").write_bytes(b"noise" * 1000)
    with pytest.raises(Unreadable):
        await library(tmp_path / "noise.tar")
    manifest = json.dumps([{"Config": "c.json", "Layers": ["two/layer.tar"]}]).encode()
    less = archived([file("manifest.json", manifest), file("c.json", b"{}")], tmp_path / "less.tar")
    with pytest.raises(Unreadable, match=r"has no two/layer\.tar"):
        await library(less)


async def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    saved = docker_saved(tmp_path / "saved.tar")
    content = saved.read_bytes()
    for at in range(600, len(content), 1900):
        saved.write_bytes(content[:at])
        try:
            assert await library(saved) == FILES[0].content
        except BisectorError:
            continue


async def test_two_images_must_be_told_apart(tmp_path: Path) -> None:
    layout = write_layout(MADE, tmp_path / "oci", "nightly")
    index = json.loads((layout / "index.json").read_text())
    index["manifests"].append(index["manifests"][0] | {"digest": digest(b"other")})
    (layout / "index.json").write_text(json.dumps(index))
    with pytest.raises(UnknownBuild, match="2 images"):
        await library(layout)
