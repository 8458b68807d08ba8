from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from packaging.version import Version

from bisector.errors import Unavailable, UnknownBuild, Unreadable, UsageError
from bisector.http import Http, Patience
from bisector.model import Build, Mark, Platform, RemoteWheel
from bisector.streams.pip_index import pip_index
from bisector.streams.pypi import PypiStream
from tests.fakes.index import JSON, Index, Refuse, Reply, serving

AMD64 = Platform("linux/amd64")
ARM64 = Platform("linux/arm64")
X86 = "cp38-abi3-manylinux_2_28_x86_64"


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=Patience(first_wait=0.001, jitter=0.001)) as http:
        yield http


def stream(http: Http, index: Index, *, package: str = "vllm", platform: Platform = AMD64) -> PypiStream:
    return PypiStream(http, package=package, index_url=index.url, platform=platform)


def wheels(builds: list[Build]) -> dict[str, str | None]:
    return {
        build.id: build.location.url.rpartition("/")[2] if isinstance(build.location, RemoteWheel) else None
        for build in builds
    }


async def listed(http: Http, index: Index, *, platform: Platform = AMD64) -> list[Build]:
    return list(await stream(http, index, platform=platform).builds())


async def test_a_release_says_where_when_and_exactly_what(http: Http, index: Index) -> None:
    url = index.add(f"vllm-0.26.0-{X86}.whl", b"26", uploaded="2026-07-25T10:40:32.107640Z")
    digest = sha256(b"26").hexdigest()
    assert await listed(http, index) == [
        Build(
            id="0.26.0",
            source="pypi:vllm",
            spec="pypi:vllm==0.26.0",
            platform=AMD64,
            location=RemoteWheel(url=url, size=2),
            digest=f"sha256:{digest}",  # type: ignore[arg-type]
            published_at=datetime(2026, 7, 25, 10, 40, 32, 107640, tzinfo=UTC),
            pin=f"vllm==0.26.0 --hash=sha256:{digest}",
        )
    ]


async def test_an_index_that_speaks_html_only_gives_the_same_without_times(http: Http, index: Index) -> None:
    index.add(f"vllm-0.27.0-{X86}.whl", b"27", yanked=True)
    index.add(f"vllm-0.26.0-{X86}.whl", b"26")
    index.sizes = False
    from_json = await listed(http, index)
    index.html = True
    assert await listed(http, index) == from_json
    assert [build.digest for build in from_json] == [f"sha256:{sha256(each).hexdigest()}" for each in (b"26", b"27")]


async def test_without_hashes_there_is_no_digest_and_no_pin(http: Http, index: Index) -> None:
    index.hashes = False
    index.add(f"vllm-0.26.0-{X86}.whl", b"26")
    (build,) = await listed(http, index)
    assert (build.digest, build.pin) == (None, None)


async def test_a_late_fix_of_an_old_branch_stays_with_its_branch(http: Http, index: Index) -> None:
    index.add(f"vllm-0.10.0-{X86}.whl", b"b", uploaded="2026-02-01T00:00:00Z")
    index.add(f"vllm-0.9.1-{X86}.whl", b"c", uploaded="2026-03-01T00:00:00Z")
    index.add(f"vllm-0.9.0-{X86}.whl", b"a", uploaded="2026-01-01T00:00:00Z")
    assert [build.id for build in await listed(http, index)] == ["0.9.0", "0.9.1", "0.10.0"]


async def test_each_platform_gets_its_own_wheel(http: Http, index: Index) -> None:
    index.add(f"vllm-0.26.0-{X86}.whl", b"x")
    index.add("vllm-0.26.0-cp38-abi3-manylinux2014_aarch64.whl", b"a")
    index.add("vllm-0.26.0-cp38-abi3-musllinux_1_2_x86_64.whl", b"m")
    index.add("vllm-0.26.0-cp38-abi3-macosx_11_0_x86_64.whl", b"d")
    assert wheels(await listed(http, index)) == {"0.26.0": f"vllm-0.26.0-{X86}.whl"}
    assert wheels(await listed(http, index, platform=ARM64)) == {
        "0.26.0": "vllm-0.26.0-cp38-abi3-manylinux2014_aarch64.whl"
    }


async def test_a_release_without_a_wheel_for_the_platform_is_still_a_build(http: Http, index: Index) -> None:
    index.add("vllm-0.1.0.tar.gz", b"source", uploaded="2023-06-20T00:00:00Z")
    index.add(f"vllm-0.2.0-{X86}.whl", b"x")
    builds = await listed(http, index, platform=ARM64)
    assert wheels(builds) == {"0.1.0": None, "0.2.0": None}
    assert builds[0].published_at == datetime(2023, 6, 20, tzinfo=UTC)
    assert (builds[0].digest, builds[0].pin) == (None, None)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        pytest.param([X86, f"1-{X86}", f"0-{X86}"], f"1-{X86}", id="the latest rebuild"),
        pytest.param([f"10-{X86}", f"9-{X86}"], f"10-{X86}", id="rebuilds are numbers"),
        pytest.param(
            ["cp312-cp312-linux_x86_64", "cp38-abi3-linux_x86_64"], "cp38-abi3-linux_x86_64", id="serving any Python"
        ),
        pytest.param(
            ["cp313-cp313-linux_x86_64", "cp312-cp312-linux_x86_64", "cp310-cp310-linux_x86_64"],
            "cp312-cp312-linux_x86_64",
            id="the usual Python",
        ),
        pytest.param(["py3-none-any", "cp312-cp312-linux_x86_64"], "cp312-cp312-linux_x86_64", id="made for it"),
        pytest.param(["py2.py3-none-any"], "py2.py3-none-any", id="anything at all"),
        pytest.param(
            ["cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64"],
            "cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64",
            id="one wheel with two tags",
        ),
    ],
)
async def test_of_several_wheels_one_is_chosen(http: Http, index: Index, names: list[str], chosen: str) -> None:
    for name in names:
        index.add(f"vllm-0.20.1-{name}.whl", name.encode())
    assert wheels(await listed(http, index)) == {"0.20.1": f"vllm-0.20.1-{chosen}.whl"}


async def test_marks(http: Http, index: Index) -> None:
    index.add(f"vllm-0.26.0-{X86}.whl", b"1", yanked=True)
    index.add(f"vllm-0.27.0-1-{X86}.whl", b"2", yanked=True)
    index.add(f"vllm-0.27.0-{X86}.whl", b"3")
    index.add(f"vllm-0.28.0rc1-{X86}.whl", b"4", yanked=True)
    index.add(f"vllm-0.28.0-{X86}.whl", b"5")
    builds = await listed(http, index)
    assert [(build.id, build.marks) for build in builds] == [
        ("0.26.0", (Mark.YANKED,)),
        ("0.27.0", ()),
        ("0.28.0rc1", (Mark.YANKED, Mark.PRERELEASE)),
        ("0.28.0", ()),
    ]
    assert wheels(builds)["0.27.0"] == f"vllm-0.27.0-{X86}.whl"


async def test_what_is_no_file_of_the_package_is_passed_over(http: Http, index: Index) -> None:
    index.add(f"vllm-0.26.0-{X86}.whl", b"1")
    for name in (
        "vllm-0.26.0.exe",
        "vllm-not a version-py3-none-any.whl",
        f"vllm-{'1.' * 200}0-py3-none-any.whl",
        "vllm-1",
    ):
        index.add(name, b"2")
    assert [build.id for build in await listed(http, index)] == ["0.26.0"]


async def test_any_spelling_of_the_package_will_do(http: Http, index: Index) -> None:
    index.add("Flash_Attn-2.0-py3-none-any.whl", b"1")
    flash = stream(http, index, package="FLASH.attn")
    assert flash.source == "pypi:flash-attn"
    (build,) = await flash.builds()
    assert (build.source, build.spec) == ("pypi:flash-attn", "pypi:flash-attn==2.0")


async def test_a_login_in_the_address_of_the_index_serves_its_files_and_stays_hidden(http: Http, index: Index) -> None:
    index.login = "user:s3cret"
    index.add(f"vllm-0.26.0-{X86}.whl", b"26")
    with_login = index.url.replace("//", "//user:s3cret@")
    (build,) = await PypiStream(http, package="vllm", index_url=with_login, platform=AMD64).builds()
    assert isinstance(build.location, RemoteWheel)
    assert "s3cret" not in repr(build)
    assert await http.get_range(build.location.url, 0, 1) == b"26"
    wrong = PypiStream(http, package="vllm", index_url=index.url.replace("//", "//user:wr0ng@"), platform=AMD64)
    with pytest.raises(Unavailable, match="refuses") as caught:
        await wrong.builds()
    assert "wr0ng" not in caught.value.message + caught.value.hint


async def test_no_such_package(http: Http, index: Index) -> None:
    with pytest.raises(UnknownBuild, match=f"^There is no package 'vllm' on the index 127.0.0.1:{index.port}$"):
        await listed(http, index)


@pytest.mark.parametrize("name", ["../vllm", "vllm ", "", "vllm/x", "völlm"])
def test_what_cannot_name_a_package_is_not_asked_for(name: str) -> None:
    with pytest.raises(UnknownBuild, match="cannot be the name of a package"):
        PypiStream(Http(), package=name, index_url="http://127.0.0.1:1/simple", platform=AMD64)


def test_a_platform_without_wheels_is_refused() -> None:
    with pytest.raises(UsageError, match="windows/amd64"):
        PypiStream(Http(), package="vllm", index_url="http://127.0.0.1:1/simple", platform=Platform("windows/amd64"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", JSON),
        (b"[]", JSON),
        (b'{"meta": {"api-version": "2.0"}, "name": "vllm", "files": []}', JSON),
        (b"[" * 100_000, JSON),
        (b'{"meta": {"api-version": "1.0"}, "name": "vllm", "files": [{"filename": "x", "url": 1}]}', JSON),
        (b"hello", "text/plain"),
    ],
)
async def test_a_page_that_is_none_is_unreadable(http: Http, index: Index, body: bytes, kind: str) -> None:
    index.trouble.append(Reply(status=200, body=body, headers={"Content-Type": kind}))
    with pytest.raises(Unreadable, match="'vllm'"):
        await listed(http, index)


async def test_another_status_is_unavailable(http: Http, index: Index) -> None:
    index.trouble.append(Refuse(status=418))
    with pytest.raises(Unavailable, match="answered 418"):
        await listed(http, index)


# --- the index of the machine ----------------------------------------------------------------------------------------


@pytest.mark.online
async def test_the_real_index_lists_vllm() -> None:
    index = await pip_index()
    async with Http(ca_file=index.ca_file) as http:
        builds = await PypiStream(http, package="vLLM", index_url=index.url, platform=AMD64).builds()
        versions = [Version(build.id) for build in builds]
    assert versions == sorted(versions)
    known = {build.id: build for build in builds}
    expected = ["0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1", *(f"0.{minor}.0" for minor in range(28, 34))]
    assert [name for name in known if name in expected] == expected
    for build in (known[name] for name in expected):
        assert isinstance(build.location, RemoteWheel)
        assert build.location.size
        assert build.digest
        assert build.pin == f"vllm=={build.id} --hash={build.digest}"
        assert build.published_at
        assert build.published_at.year == 2026
    assert http.meter.requests == 1
