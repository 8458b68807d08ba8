"""One build, however it was packed, pushed and saved: what is seen in it is what is seen in its wheel."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from platformdirs import user_cache_path

from bisector.artifacts.engine import engine_image
from bisector.artifacts.engine_images import EngineImages
from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.client import RegistryClient
from bisector.artifacts.image.layout import open_layout
from bisector.artifacts.image.reference import parse_reference
from bisector.artifacts.spans import FileSpans
from bisector.artifacts.wheel import Wheel
from bisector.http import Http
from bisector.kernels.parser import LibraryParser
from bisector.kernels.reader import Reader
from bisector.model import Depth, Observation, Platform
from bisector.ports import Artifact
from tests.fakes.images import INSTALL, ROOT, docker_archive, file, image, pack, write_layout
from tests.fakes.wheels import wheel
from tests.kernels.builds import build
from tests.lab import releases
from tests.lab.engine import DockerEngine
from tests.lab.registry import Registry

AMD64: Final = Platform("linux/amd64")
SKOPEO: Final = shutil.which("skopeo")
REPOSITORY: Final = "vllm/vllm-openai"
pytestmark = [
    pytest.mark.docker,
    pytest.mark.registry,
    pytest.mark.skipif(SKOPEO is None, reason="skopeo is not installed"),
]
STEPS: Final = (
    "ADD file:1 in / ",
    INSTALL,
    "RUN /bin/sh -c ep_kernels/dist/*.whl # buildkit",
    "COPY examples examples",
)

PUSHES: Final[Mapping[str, Sequence[str]]] = {
    "docker-gzip": ["--format=v2s2"],
    "oci-gzip": ["--format=oci", "--dest-compress-format=gzip"],
    "oci-zstd": ["--format=oci", "--dest-compress-format=zstd"],
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        registry = Registry(tmp_path_factory.mktemp("registry"))
    except FileNotFoundError:
        pytest.skip("docker-registry is not installed")
    try:
        yield registry.url.removeprefix("http://")
    finally:
        registry.close()


def layers(files: Mapping[str, bytes]) -> list[bytes]:
    """A base, the wheel as it is installed, and what upstream puts above it."""
    installed = sorted(files.items(), key=lambda item: item[0].split("/"))
    return [
        pack([file("usr/bin/python3.12", b"\x7fELF"), file(f"{ROOT}/torch/__init__.py")]),
        pack([file(f"{ROOT}/{path}", content) for path, content in installed]),
        pack([file(f"{ROOT}/deep_ep/__init__.py")]),
        pack([file("vllm-workspace/examples/vllm/_version.py", b"no version")]),
    ]


async def seen(parser: LibraryParser, artifact: Artifact) -> Observation:
    return await Reader(parser).observe(artifact, Depth.KERNELS)


async def seen_in_wheel(parser: LibraryParser, files: Mapping[str, bytes], folder: Path) -> Observation:
    path = folder / "vllm-0.27.0-cp38-abi3-manylinux_2_28_x86_64.whl"
    path.write_bytes(wheel(files))
    with path.open("rb") as opened:
        return await seen(parser, Wheel(FileSpans(opened, str(path)), name=str(path)))


@asynccontextmanager
async def pulled(name: str) -> AsyncIterator[ImageArtifact]:
    reference = parse_reference(name)
    async with Http() as http:
        client = RegistryClient(http, reference.host, reference.repository)
        yield ImageArtifact(client, await client.resolve(reference), AMD64, verify=True)


async def on_disk(path: Path, name: str | None = None) -> ImageArtifact:
    source, digest = await open_layout(path, name)
    return ImageArtifact(source, digest, AMD64, verify=True)


async def all_agree(
    parser: LibraryParser, engine: DockerEngine, registry: str, files: Mapping[str, bytes], folder: Path
) -> Observation:
    """Pack, push and save the files in every way, and compare what is seen with what is seen in the wheel."""
    expected = await seen_in_wheel(parser, files, folder)
    local = f"{registry}/{REPOSITORY}:local"
    history = [{"created_by": step} for step in STEPS]
    engine.docker("load", given=docker_archive(layers(files), local, history=history))
    async with engine_image(local) as by_engine:
        agree(await seen(parser, by_engine), expected)

    engine.docker("push", local)
    async with pulled(local) as pushed:
        agree(await seen(parser, pushed), expected)
        assert pushed.scan is not None
        assert (pushed.scan.hint, pushed.verified) == (1, True)
        digest = await pushed.digest()
    [facts] = await EngineImages(f"{registry}/{REPOSITORY}").images()
    assert facts.pin == f"{registry}/{REPOSITORY}@{digest}"

    (folder / "docker.tar").write_bytes(engine.docker("save", local))
    agree(await seen(parser, await on_disk(folder / "docker.tar")), expected)
    agree(await seen(parser, await on_disk(folder / "docker.tar", local)), expected)

    layout = write_layout(image(layers(files), how="tar", created_by=STEPS), folder / "made", "nightly")
    agree(await seen(parser, await on_disk(layout, "nightly")), expected)
    for tag, how in PUSHES.items():
        target = f"{registry}/{REPOSITORY}:{tag}"
        skopeo("copy", "--dest-tls-verify=false", *how, f"oci:{layout}:nightly", f"docker://{target}")
        async with pulled(target) as copied:
            agree(await seen(parser, copied), expected)
        skopeo("copy", "--src-tls-verify=false", f"docker://{target}", f"oci:{folder / tag}:{tag}")
        agree(await seen(parser, await on_disk(folder / tag, tag)), expected)
    return expected


def agree(found: Observation, expected: Observation) -> None:
    for part in ("deep_gemm", "kernels", "gate", "provenance", "packages"):
        assert getattr(found, part) == getattr(expected, part), part


def skopeo(*arguments: str) -> None:
    subprocess.run([str(SKOPEO), *arguments], check=True, capture_output=True, timeout=60)


async def test_a_build_is_the_same_however_it_is_kept(the_engine: DockerEngine, registry: str, tmp_path: Path) -> None:
    async with LibraryParser() as parser:
        expected = await all_agree(parser, the_engine, registry, build("sm90", "sm100", "sm120"), tmp_path)
    assert expected.kernels.keys() >= {"sm90", "sm100", "sm120"}


@pytest.mark.online
@pytest.mark.parametrize("version", [releases.GOOD, releases.LOST])
async def test_a_release_is_the_same_however_it_is_kept(
    the_engine: DockerEngine, registry: str, tmp_path: Path, version: str
) -> None:
    release = releases.read(version, user_cache_path("bisector-lab"))
    async with LibraryParser() as parser:
        expected = await all_agree(parser, the_engine, registry, {**release.files, **release.own}, tmp_path)
    assert ("sm120" in expected.kernels) == (version in releases.WITH_SM120)
    assert expected.provenance.version == version
