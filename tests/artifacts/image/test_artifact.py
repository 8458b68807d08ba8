from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.memory import RecentLayers
from bisector.artifacts.image.record import LayerRecord
from bisector.errors import Unreadable
from bisector.model import Digest, Platform
from bisector.ports import END_OF_LAYER
from tests.fakes.images import (
    INSTALL,
    ROOT,
    Image,
    Item,
    MemorySource,
    digest,
    file,
    hardlink,
    image,
    pack,
    whiteout,
)

AMD64 = Platform("linux/amd64")
WORKDIR = {"created_by": "WORKDIR /vllm-workspace", "empty_layer": True}
TORCH = "RUN /bin/sh -c uv pip install --system -r requirements/cuda.txt # buildkit"
COPY = "COPY ./examples examples # buildkit"

LIBRARY = os.urandom(50_000)
BASE = [file("etc/os-release", b"x"), file(f"{ROOT}/torch/lib.so", os.urandom(200_000))]
WHEEL = [
    file(f"{ROOT}/vllm/_version.py", b"version"),
    file(f"{ROOT}/vllm/deep_gemm/_C.so", LIBRARY),
    file(f"{ROOT}/vllm/flash/_C.so", os.urandom(300_000)),
    file(f"{ROOT}/vllm-1.dist-info/METADATA", b"metadata"),
]
EXAMPLES = [file("vllm-workspace/examples/a.py", os.urandom(30_000))]


@dataclass(frozen=True, slots=True)
class Deep:
    """The version, and everything of one directory."""

    directory: str = "vllm/deep_gemm"
    key: str = "deep"

    def lists(self, path: str) -> bool:
        return path == "vllm/_version.py" or path.startswith(f"{self.directory}/")

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        return [path for path in paths if path == "vllm/_version.py" or (path.endswith("_C.so") and self.lists(path))]

    def enters(self, directory: str) -> bool:
        return f"{self.directory}/".startswith(f"{directory}/")

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        inside = [path for path in listed if path.startswith(self.directory)]
        left = last == END_OF_LAYER or last.split("/") > [*self.directory.split("/"), "\U0010ffff"]
        return "vllm/_version.py" in listed and bool(inside) and left


DEEP = Deep()


def nightly(*above: tuple[list[Item], str], wheel: list[Item] | None = None) -> Image:
    layers = [BASE, WHEEL if wheel is None else wheel, *(items for items, _ in above)]
    steps = [{"created_by": step} for step in (TORCH, INSTALL)] + [WORKDIR]
    steps += [{"created_by": step} for _, step in above]
    return image([pack(items) for items in layers], history=steps)


async def selected(made: Image, **extra: object) -> tuple[ImageArtifact, MemorySource, dict[str, bytes]]:
    source = MemorySource(made.blobs)
    artifact = ImageArtifact(source, made.digest, AMD64, **extra)  # type: ignore[arg-type]
    return artifact, source, dict((await artifact.select(DEEP)).contents)


async def test_the_layer_with_vllm_is_left_as_soon_as_it_can() -> None:
    made = nightly((EXAMPLES, COPY))
    artifact, source, contents = await selected(made)
    assert contents == {"vllm/_version.py": b"version", "vllm/deep_gemm/_C.so": LIBRARY}
    assert artifact.scan is not None
    assert artifact.scan.hint == 1
    assert artifact.scan.left_out == (2,)
    assert artifact.scan.root == ROOT
    assert not artifact.verified
    assert source.given.keys() == {digest(made.config), digest(made.layers[1])}
    assert artifact.scan.read[1] == source.given[digest(made.layers[1])] < 80_000


async def test_layers_above_that_ran_something_are_read_in_full() -> None:
    hides = [whiteout(f"{ROOT}/vllm/deep_gemm"), file(f"{ROOT}/vllm/deep_gemm2", b"")]
    artifact, _, contents = await selected(nightly((hides, "RUN /bin/sh -c true # buildkit"), (EXAMPLES, COPY)))
    assert contents == {"vllm/_version.py": b"version"}
    assert artifact.scan is not None
    assert set(artifact.scan.read) == {0, 1, 2}


@pytest.mark.parametrize("copy", ["COPY . / # buildkit", "COPY a $HOME # buildkit", "COPY x /usr/local/ # buildkit"])
async def test_a_copy_to_where_python_lives_is_read(copy: str) -> None:
    artifact, _, contents = await selected(nightly(([file(f"{ROOT}/vllm/_version.py", b"patched")], copy)))
    assert contents["vllm/_version.py"] == b"patched"
    assert artifact.scan is not None
    assert not artifact.scan.left_out


async def test_verifying_reads_all_that_is_needed_to_the_end() -> None:
    made = nightly((EXAMPLES, COPY))
    artifact, source, contents = await selected(made, verify=True)
    assert contents["vllm/deep_gemm/_C.so"] == LIBRARY
    assert artifact.verified
    assert source.given[digest(made.layers[1])] == len(made.layers[1])
    assert source.given[digest(made.layers[2])] == len(made.layers[2])
    assert digest(made.layers[0]) not in source.given


async def test_verifying_notices_a_wrong_diff_id() -> None:
    made = nightly()
    other = pack([*WHEEL, file("etc/more")])
    config = made.config.replace(digest(pack(WHEEL)).encode(), digest(other).encode())
    manifest = made.manifest.replace(digest(made.config).encode(), digest(config).encode())
    blobs = {**made.blobs, digest(config): config, digest(manifest): manifest}
    artifact = ImageArtifact(MemorySource(blobs), digest(manifest), AMD64, verify=True)
    with pytest.raises(Unreadable, match="wrong diffID"):
        await artifact.select(DEEP)


async def test_without_order_a_layer_is_read_to_its_end() -> None:
    late = [WHEEL[2], WHEEL[0], WHEEL[1], file(f"{ROOT}/vllm/flash/x"), file(f"{ROOT}/vllm/deep_gemm/late", b"late")]
    made = nightly(wheel=late)
    artifact = ImageArtifact(MemorySource(made.blobs), made.digest, AMD64)
    found = await artifact.select(DEEP)
    assert set(found.listed) == {"vllm/_version.py", "vllm/deep_gemm/_C.so", "vllm/deep_gemm/late"}


async def test_what_is_not_there_is_looked_for_to_the_ground() -> None:
    artifact, _, contents = await selected(nightly((EXAMPLES, COPY), wheel=[WHEEL[0], WHEEL[2]]))
    assert contents == {"vllm/_version.py": b"version"}
    assert artifact.scan is not None
    assert set(artifact.scan.read) == {0, 1}


async def test_without_a_hint_reading_begins_at_the_top() -> None:
    made = image([pack(layer) for layer in (BASE, WHEEL, EXAMPLES)], history=None)
    artifact, source, contents = await selected(made)
    assert contents["vllm/deep_gemm/_C.so"] == LIBRARY
    assert artifact.scan is not None
    assert artifact.scan.hint is None
    assert set(artifact.scan.read) == {1, 2}
    assert digest(made.layers[0]) not in source.given


async def test_layers_are_remembered_by_what_they_contain() -> None:
    memory = RecentLayers()
    await selected(nightly(), memory=memory)
    recompressed = image(
        [pack(BASE), pack(WHEEL)], how="zstd", history=[{"created_by": TORCH}, {"created_by": INSTALL}]
    )
    artifact, source, contents = await selected(recompressed, memory=memory)
    assert contents["vllm/deep_gemm/_C.so"] == LIBRARY
    assert source.given.keys() == {digest(recompressed.config)}
    assert artifact.scan is not None
    assert artifact.scan.remembered == (1,)


async def test_what_was_not_verified_is_read_again_to_be_verified() -> None:
    memory = RecentLayers()
    await selected(nightly(), memory=memory)
    artifact, source, _ = await selected(nightly(), memory=memory, verify=True)
    assert artifact.verified
    assert digest(nightly().layers[1]) in source.given
    artifact, source, _ = await selected(nightly(), memory=memory)
    assert artifact.verified
    assert source.given.keys() == {digest(nightly().config)}


async def test_a_library_that_is_a_hardlink_is_read_in_a_second_look() -> None:
    wheel = [
        WHEEL[0],
        file("root/.cache/uv/x", b"linked"),
        hardlink(f"{ROOT}/vllm/deep_gemm/_C.so", "root/.cache/uv/x"),
    ]
    _, _, contents = await selected(nightly(wheel=wheel))
    assert contents["vllm/deep_gemm/_C.so"] == b"linked"


async def test_the_image_says_where_it_comes_from() -> None:
    runtime = {"Env": ["PATH=/bin", "VLLM_BUILD_COMMIT=abc", "VLLM_IMAGE_TAG=vllm/vllm-openai:nightly-abc"]}
    made = image([pack(WHEEL)], config=runtime | {"Labels": {"org.opencontainers.image.revision": "other"}})
    claims = await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).claims()
    assert (claims.commit, claims.tag) == ("abc", "vllm/vllm-openai:nightly-abc")
    assert claims.created == "2026-07-31T04:00:00Z"
    made = image([pack(WHEEL)], config={"Labels": {"org.opencontainers.image.revision": "other"}, "Env": None})
    assert (await ImageArtifact(MemorySource(made.blobs), made.digest, AMD64).claims()).commit == "other"


async def test_recent_layers_forget_the_oldest_and_what_is_too_large() -> None:
    memory = RecentLayers(most_bytes=1000)
    one, two = Digest("sha256:1"), Digest("sha256:2")
    await memory.put(one, "k", LayerRecord(contents={"a": bytes(600)}))
    await memory.put(two, "k", LayerRecord(contents={"a": bytes(600)}))
    await memory.put(two, "large", LayerRecord(contents={"a": bytes(6000)}))
    assert await memory.get(one, "k") is None
    assert await memory.get(two, "k") is not None
    assert await memory.get(two, "large") is None


async def test_a_layer_of_nothing_but_zeros_is_an_empty_one() -> None:
    _, _, contents = await selected(image([pack(WHEEL), bytes(1 << 22)]))
    assert contents["vllm/deep_gemm/_C.so"] == LIBRARY
