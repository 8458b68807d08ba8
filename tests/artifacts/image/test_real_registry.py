"""The registry that others run, and images that another tool pushed to it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.client import RegistryClient
from bisector.artifacts.image.layout import open_layout
from bisector.artifacts.image.reference import parse_reference
from bisector.errors import UnknownBuild
from bisector.http import Http
from bisector.model import Digest, Platform
from tests.fakes.images import ROOT, digest, file, image, pack, symlink, whiteout, write_layout
from tests.fakes.wheels import SMALL_VLLM, Choosing

REGISTRY, SKOPEO = shutil.which("docker-registry"), shutil.which("skopeo")
pytestmark = [
    pytest.mark.registry,
    pytest.mark.skipif(REGISTRY is None or SKOPEO is None, reason="docker-registry or skopeo is missing"),
]

AMD64 = Platform("linux/amd64")
ALL = Choosing(wants=lambda path: path.startswith("vllm"), opens=lambda path: path.startswith("vllm"))
BASE = [symlink("bin", "usr/bin"), file("usr/bin/x", os.urandom(100_000)), file(f"{ROOT}/vllm/old.py", b"old")]
MADE = image(
    [
        pack(BASE),
        pack([file(f"{ROOT}/{path}", content) for path, content in sorted(SMALL_VLLM.items())]),
        pack([whiteout(f"{ROOT}/vllm/old.py")]),
    ]
)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    below = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    config = below / "config.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n"
        f"storage: {{filesystem: {{rootdirectory: {below / 'data'}}}}}\nhttp: {{addr: '{host}'}}\n"
    )
    with (
        (below / "log").open("w") as log,
        subprocess.Popen([str(REGISTRY), "serve", str(config)], stdout=log, stderr=log) as server,
    ):
        try:
            yield host
        finally:
            server.terminate()


async def listening(host: str) -> None:
    name, port = host.split(":")
    with anyio.fail_after(20):
        while True:
            try:
                async with await anyio.connect_tcp(name, int(port)):
                    return
            except OSError:
                await anyio.sleep(0.05)


def skopeo(*arguments: str) -> None:
    subprocess.run([str(SKOPEO), *arguments], check=True, capture_output=True, timeout=60)


PUSHES = {
    "as-it-is": [],
    "docker-gzip": ["--format=v2s2"],
    "oci-gzip": ["--format=oci", "--dest-compress-format=gzip"],
    "oci-zstd": ["--format=oci", "--dest-compress-format=zstd"],
}


@pytest.mark.parametrize("tag", PUSHES)
async def test_what_skopeo_pushed_is_what_was_put_in(registry: str, tmp_path: Path, tag: str) -> None:
    await listening(registry)
    # skopeo compresses only what is not compressed yet
    made = image([pack(BASE), *(blob for blob in _rest())], how="tar") if tag == "oci-zstd" else MADE
    layout = write_layout(made, tmp_path / "oci", "nightly")
    target = f"{registry}/vllm/vllm-openai:{tag}"
    skopeo("copy", "--dest-tls-verify=false", *PUSHES[tag], f"oci:{layout}:nightly", f"docker://{target}")
    reference = parse_reference(target)
    async with Http() as http:
        client = RegistryClient(http, reference.host, reference.repository)
        found = await client.resolve(reference)
        artifact = ImageArtifact(client, found, AMD64, verify=True)
        seen = await artifact.select(ALL)
        assert seen.contents == SMALL_VLLM
        assert artifact.verified
        assert seen.digest == digest(await client.manifest(seen.digest))
        assert tag in await client.tags()
        by_digest = await client.resolve(parse_reference(f"{registry}/vllm/vllm-openai@{found}"))
        assert by_digest == found
        if tag == "oci-zstd":
            assert b"+zstd" in await client.manifest(found)
        with pytest.raises(UnknownBuild):
            await client.manifest(Digest("sha256:" + "0" * 64))
    source, local = await open_layout(layout, "nightly")
    assert (await ImageArtifact(source, local, AMD64).select(ALL)).contents == SMALL_VLLM


async def test_what_skopeo_saved_is_what_was_put_in(tmp_path: Path) -> None:
    layout = write_layout(MADE, tmp_path / "oci", "nightly")
    skopeo("copy", f"oci:{layout}:nightly", f"docker-archive:{tmp_path / 'saved.tar'}:vllm/vllm-openai:nightly")
    skopeo("copy", f"oci:{layout}:nightly", f"oci-archive:{tmp_path / 'oci.tar'}:nightly")
    for path, name in (("saved.tar", "vllm/vllm-openai:nightly"), ("oci.tar", "nightly")):
        source, found = await open_layout(tmp_path / path, name)
        artifact = ImageArtifact(source, found, AMD64, verify=True)
        assert (await artifact.select(ALL)).contents == SMALL_VLLM
        assert artifact.verified


def _rest() -> list[bytes]:
    return [
        pack([file(f"{ROOT}/{path}", content) for path, content in sorted(SMALL_VLLM.items())]),
        pack([whiteout(f"{ROOT}/vllm/old.py")]),
    ]
