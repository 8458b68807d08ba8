"""What every artifact must do, whatever it is: the same files give the same names and contents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bisector.errors import Unreadable
from bisector.http import Http
from bisector.model import Digest, LocalPath, Location, RemoteWheel
from bisector.ports import Artifact, Artifacts
from tests.fakes.index import Index, serving
from tests.fakes.opening import opener
from tests.fakes.wheels import SMALL_VLLM, Choosing, only, unpack, wheel


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


@pytest.fixture(params=["a wheel in an index", "a server without ranges", "a wheel here", "a directory"])
def location(request: pytest.FixtureRequest, index: Index, tmp_path: Path) -> Location:
    match request.param:
        case "a wheel here":
            (tmp_path / "vllm.whl").write_bytes(wheel(SMALL_VLLM))
            return LocalPath(path=str(tmp_path / "vllm.whl"))
        case "a directory":
            return LocalPath(path=str(unpack(SMALL_VLLM, tmp_path)))
        case kind:
            index.ranges = kind == "a wheel in an index"
            return RemoteWheel(url=index.add("vllm-0.26.0-py3-none-any.whl", wheel(SMALL_VLLM)))


@pytest.fixture
async def artifact(location: Location) -> AsyncIterator[Artifact]:
    async with Http() as http:
        artifacts: Artifacts = opener(http, allow_full_download=True)
        async with artifacts.open(location, digest=None) as artifact:
            yield artifact


async def test_everything_wanted_is_listed_with_its_size_in_order(artifact: Artifact) -> None:
    found = await artifact.select(Choosing(wants=lambda path: "deep_gemm" in path, opens=lambda _: False))
    expected = sorted(path for path in SMALL_VLLM if "deep_gemm" in path)
    assert list(found.listed.items()) == [(path, len(SMALL_VLLM[path])) for path in expected]
    assert found.contents == {}


async def test_what_is_read_is_what_was_packed(artifact: Artifact) -> None:
    assert (await artifact.select(Choosing())).contents == SMALL_VLLM


async def test_only_what_is_asked_for_is_read(artifact: Artifact) -> None:
    wanted = ["vllm/_version.py", "vllm-0.26.0.dist-info/METADATA"]
    assert (await artifact.select(only(wanted))).contents == {path: SMALL_VLLM[path] for path in wanted}


async def test_it_can_be_asked_again(artifact: Artifact) -> None:
    assert (await artifact.select(only(["vllm/_version.py"]))).contents.keys() == {"vllm/_version.py"}
    assert (await artifact.select(only(["vllm/platforms/cuda.py"]))).contents.keys() == {"vllm/platforms/cuda.py"}


async def test_the_digest_is_the_same_however_it_is_asked_for(artifact: Artifact, location: Location) -> None:
    digest = await artifact.digest()
    assert digest.startswith("sha256:")
    assert len(digest) == len("sha256:") + 64
    assert (await artifact.select(Choosing())).digest == digest
    async with Http() as http, opener(http, allow_full_download=True).open(location, digest=None) as again:
        assert await again.digest() == digest


async def test_the_digest_of_a_stream_is_kept(index: Index) -> None:
    told = Digest(f"sha256:{'1' * 64}")
    url = index.add("vllm-0.26.0-py3-none-any.whl", wheel(SMALL_VLLM))
    async with Http() as http, opener(http).open(RemoteWheel(url=url), digest=told) as artifact:
        assert (await artifact.select(Choosing())).digest == told


async def test_what_is_no_artifact_is_unreadable(index: Index, tmp_path: Path) -> None:
    (tmp_path / "vllm.whl").write_bytes(b"no wheel")
    remote = RemoteWheel(url=index.add("vllm-0.26.0-py3-none-any.whl", b"no wheel"))
    for location in (remote, LocalPath(path=str(tmp_path / "vllm.whl"))):
        async with Http() as http:
            with pytest.raises(Unreadable, match="is not a zip archive"):
                async with opener(http).open(location, digest=None) as artifact:
                    await artifact.select(Choosing())
