from __future__ import annotations

import hashlib
import io
import random
import struct
import zipfile
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.artifacts import bounds
from bisector.artifacts import wheel as wheel_module
from bisector.artifacts.spans import FileSpans
from bisector.artifacts.wheel import Wheel
from bisector.errors import BisectorError, RangesUnsupported, Unavailable, Unreadable
from bisector.http import Http, Patience
from bisector.model import Digest, EvidenceKind, Platform, RemoteWheel
from bisector.ports import FoundFiles
from bisector.streams.pip_index import pip_index
from bisector.streams.pypi import PypiStream
from tests.fakes.index import Cut, Index, Redirect, serving
from tests.fakes.opening import opener
from tests.fakes.wheels import SMALL_VLLM, Choosing, only, wheel

NAME = "vllm-0.26.0-cp38-abi3-manylinux_2_28_x86_64.whl"
KNOWN = Digest(f"sha256:{'0' * 64}")


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=Patience(first_wait=0.001, jitter=0.001)) as http:
        yield http


async def read(
    http: Http,
    url: str,
    selection: Choosing,
    *,
    size: int | None = None,
    digest: Digest | None = KNOWN,
    full: bool = False,
) -> FoundFiles:
    async with opener(http, allow_full_download=full).open(RemoteWheel(url=url, size=size), digest=digest) as artifact:
        return await artifact.select(selection)


async def read_here(content: bytes, selection: Choosing, *, tail: int = 1 << 20) -> FoundFiles:
    return await Wheel(FileSpans(io.BytesIO(content), NAME), name=NAME, tail=tail).select(selection)


# --- few bytes -------------------------------------------------------------------------------------------------------

LARGE = {
    "vllm/_C.abi3.so": noise(3 << 20),
    "vllm/_version.py": b"__version__ = '0.26.0'\n",
    "vllm/platforms/cuda.py": b"def support_deep_gemm(): ...\n" * 400,
    "vllm/flash.so": noise(2 << 20, 1),
    "vllm-0.26.0.dist-info/METADATA": b"Name: vllm\n",
}


async def test_the_directory_costs_one_request(http: Http, index: Index) -> None:
    url = index.add(NAME, wheel(LARGE))
    found = await read(http, url, only([]))
    assert found.listed == {path: len(content) for path, content in sorted(LARGE.items())}
    assert list(found.listed) == sorted(LARGE)
    assert (found.contents, found.digest) == ({}, KNOWN)
    assert index.asked_ranges() == [f"bytes=-{wheel_module._TAIL}"]


async def test_neighbours_come_together_and_the_rest_not_at_all(http: Http, index: Index) -> None:
    url = index.add(NAME, wheel(LARGE))
    found = await read(
        http, url, only(["vllm/_version.py", "vllm/platforms/cuda.py", "vllm-0.26.0.dist-info/METADATA"])
    )
    assert found.contents == {path: content for path, content in LARGE.items() if not path.endswith(".so")}
    assert len(index.asked_ranges()) == 2
    assert http.meter.bytes < wheel_module._TAIL + 2000


async def test_a_directory_larger_than_the_first_request_takes_a_second(http: Http, index: Index) -> None:
    files = {f"vllm/{number:06}{'x' * 200}.py": b"" for number in range(5000)} | {"vllm/_version.py": b"here"}
    url = index.add(NAME, wheel(files))
    found = await read(http, url, only(["vllm/_version.py"]))
    assert len(found.listed) == 5001
    assert found.contents == {"vllm/_version.py": b"here"}
    first, second = index.asked_ranges()[:2]
    assert (first, second.startswith("bytes=0-")) == (f"bytes=-{wheel_module._TAIL}", False)


async def test_a_part_that_breaks_off_does_not_matter(http: Http, index: Index) -> None:
    url = index.add(NAME, wheel(LARGE))
    index.trouble.extend([Cut(after=500_000), Cut(after=100)])
    assert (await read(http, url, only(["vllm/_C.abi3.so"]))).contents["vllm/_C.abi3.so"] == LARGE["vllm/_C.abi3.so"]


async def test_a_wheel_may_lie_behind_a_redirect(http: Http, index: Index) -> None:
    url = index.add(NAME, wheel(SMALL_VLLM))
    index.trouble.append(Redirect(to=url))
    assert (await read(http, index.file_url("elsewhere.whl"), Choosing())).contents == SMALL_VLLM


async def test_nothing_is_fetched_for_a_digest_that_is_known(http: Http, index: Index) -> None:
    url = index.add(NAME, wheel(SMALL_VLLM))
    async with opener(http).open(RemoteWheel(url=url), digest=KNOWN) as artifact:
        assert await artifact.digest() == KNOWN
        assert artifact.evidence is EvidenceKind.WHEEL
    assert index.seen == []


# --- digests ---------------------------------------------------------------------------------------------------------


async def test_without_a_digest_the_directory_stands_for_the_content(http: Http, index: Index) -> None:
    digests = {}
    for name, files in {
        "a": SMALL_VLLM,
        "again": SMALL_VLLM,
        "other": {**SMALL_VLLM, "vllm/_version.py": b"__version__ = '0.26.1'\n"},
    }.items():
        content = wheel(files)
        found = await read(http, index.add(f"{name}.whl", content), only([]), digest=None)
        digests[name] = found.digest
        assert found.digest != f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert digests["a"] == digests["again"] != digests["other"]


async def test_a_wheel_here_has_the_digest_an_index_would_give_it() -> None:
    content = wheel(SMALL_VLLM)
    assert (await read_here(content, only([]))).digest == f"sha256:{hashlib.sha256(content).hexdigest()}"


async def test_another_size_than_the_index_says_is_another_file(http: Http, index: Index) -> None:
    content = wheel(SMALL_VLLM)
    url = index.add(NAME, content)
    assert (await read(http, url, only([]), size=len(content))).listed
    with pytest.raises(Unreadable, match="where the index says 9"):
        await read(http, url, only([]), size=9)


# --- servers without ranges ------------------------------------------------------------------------------------------


async def test_a_server_without_ranges_is_not_read_unless_allowed(http: Http, index: Index) -> None:
    index.ranges = False
    content = wheel(LARGE)
    url = index.add(NAME, content)
    with pytest.raises(RangesUnsupported) as caught:
        await read(http, url, only([]))
    assert "--allow-full-download" in caught.value.hint
    assert f"({len(content) / 1e6:.1f} MB)" in caught.value.hint
    digest = Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")
    for told in (digest, None):
        found = await read(http, url, only(["vllm/_version.py"]), digest=told, full=True)
        assert found.contents == {"vllm/_version.py": LARGE["vllm/_version.py"]}
        assert found.digest == digest


async def test_a_download_that_is_not_what_the_index_says_is_refused(http: Http, index: Index) -> None:
    index.ranges = False
    url = index.add(NAME, wheel(LARGE))
    with pytest.raises(Unreadable, match="has not the digest that the index says"):
        await read(http, url, only([]), digest=KNOWN, full=True)


# --- names -----------------------------------------------------------------------------------------------------------


async def test_paths_are_those_of_site_packages() -> None:
    files = {
        "vllm-1.data/purelib/vllm/a.py": b"a",
        "vllm-1.data/platlib/vllm/b.so": b"b",
        "vllm-1.data/scripts/vllm": b"c",
        "vllm/x.data/purelib/d": b"d",
        "vllm/empty/": b"",
    }
    assert dict((await read_here(wheel(files), Choosing())).contents) == {
        "vllm/a.py": b"a",
        "vllm/b.so": b"b",
        "vllm-1.data/scripts/vllm": b"c",
        "vllm/x.data/purelib/d": b"d",
    }


async def test_of_two_members_with_one_name_the_later_counts() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as zipped:
        zipped.writestr("vllm/_version.py", b"first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            zipped.writestr("vllm/_version.py", b"second")
    assert (await read_here(written.getvalue(), Choosing())).contents == {"vllm/_version.py": b"second"}


# --- hostile and broken wheels ---------------------------------------------------------------------------------------


def entry(content: bytes) -> int:
    """Where the directory's first entry begins."""
    return content.index(b"PK\x01\x02")


def patched(content: bytes, at: int, packed: bytes) -> bytes:
    return content[:at] + packed + content[at + len(packed) :]


ONE = wheel({"vllm/_version.py": b"x" * 1000})
STORED = wheel({"vllm/_version.py": b"x" * 1000}, method=zipfile.ZIP_STORED)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is not a zip archive", id="empty"),
        pytest.param(b"<html>not found</html>" * 99, "is not a zip archive", id="a page of an error"),
        pytest.param(ONE[:-5], "is not a zip archive", id="cut short"),
        pytest.param(patched(STORED, STORED.index(b"xxx"), b"y"), "_version.py in .* is damaged", id="a byte flipped"),
        pytest.param(patched(ONE, entry(ONE) + 16, b"\0\0\0\0"), "_version.py in .* is damaged", id="another checksum"),
        pytest.param(patched(ONE, entry(ONE) + 24, struct.pack("<I", 9)), "is damaged", id="more than declared"),
        pytest.param(patched(ONE, entry(ONE) + 24, struct.pack("<I", 1001)), "is damaged", id="less than declared"),
        pytest.param(patched(ONE, entry(ONE) + 8, b"\x01"), "is encrypted, or", id="encrypted"),
        pytest.param(patched(ONE, entry(ONE) + 10, b"\x0c"), "compressed in a way that wheels are not", id="bzip2"),
        pytest.param(patched(ONE, entry(ONE) + 10, b"\x63"), "compressed in a way that wheels are not", id="unknown"),
        pytest.param(
            patched(ONE, entry(ONE) + 24, struct.pack("<I", 600 << 20)),
            "more than bisector reads of one",
            id="too large",
        ),
        pytest.param(
            patched(ONE, entry(ONE) + 42, struct.pack("<I", 1 << 30)), "lies outside the archive", id="beyond the end"
        ),
        pytest.param(
            patched(ONE, len(ONE) - 10, struct.pack("<I", 1 << 30)),
            "is not a zip archive",
            id="a directory of a gigabyte",
        ),
    ],
)
async def test_a_wheel_that_is_not_in_order_is_unreadable(content: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        await read_here(content, Choosing())


async def test_too_much_at_once_is_unreadable() -> None:
    files = {f"{number}.so": b"\0" for number in range(5)}
    content = bytearray(wheel(files))
    at = 0
    for _ in files:
        at = content.index(b"PK\x01\x02", at + 1)
        content[at + 24 : at + 28] = struct.pack("<I", bounds.LARGEST_FILE)
    with pytest.raises(Unreadable, match="more than bisector reads at once"):
        await read_here(bytes(content), Choosing())


async def test_a_huge_directory_is_not_fetched(http: Http, index: Index) -> None:
    size = wheel_module._LARGEST_DIRECTORY + (1 << 20)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0)
    url = index.add(NAME, bytes(size) + end)
    with pytest.raises(Unreadable, match="directory larger than"):
        await read(http, url, Choosing())
    assert http.meter.bytes <= wheel_module._TAIL


async def test_a_wheel_that_is_gone_is_unavailable(http: Http, index: Index) -> None:
    with pytest.raises(Unavailable, match="answered 404"):
        await read(http, index.file_url(NAME), Choosing())


# --- properties ------------------------------------------------------------------------------------------------------

NAMES = st.text(st.sampled_from("abc_/.0"), min_size=1, max_size=12).filter(
    lambda name: not name.endswith("/") and not name.startswith("/")
)
CONTENTS = st.one_of(st.binary(max_size=300), st.integers(0, 5000).map(lambda size: noise(size, size)))


@given(
    files=st.dictionaries(NAMES, CONTENTS, max_size=12),
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    tail=st.integers(22, 4000),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_selection_is_what_zipfile_reads(
    files: dict[str, bytes], method: int, tail: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.sets(st.sampled_from(sorted(files)))) if files else set()
    found = anyio.run(lambda: read_here(wheel(files, method=method), only(wanted), tail=tail))
    assert found.listed == {name: len(content) for name, content in sorted(files.items())}
    assert found.contents == {name: files[name] for name in wanted}


@given(
    cut=st.integers(0, len(wheel(SMALL_VLLM))),
    flips=st.lists(st.tuples(st.integers(0, len(wheel(SMALL_VLLM)) - 1), st.integers(0, 255)), max_size=6),
    tail=st.sampled_from([22, 300, 1 << 20]),
)
@settings(max_examples=150, deadline=None)
def test_a_damaged_wheel_is_read_rightly_or_refused(cut: int, flips: list[tuple[int, int]], tail: int) -> None:
    content = bytearray(wheel(SMALL_VLLM))
    for at, value in flips:
        content[at] = value
    damaged = bytes(content[:cut] if len(flips) < 3 else content)
    try:
        found = anyio.run(lambda: read_here(damaged, Choosing(), tail=tail))
    except BisectorError:
        return
    for path in found.contents.keys() & SMALL_VLLM.keys():
        assert found.contents[path] == SMALL_VLLM[path]


@given(directory=st.binary(max_size=400), declared=st.integers(0, 500), offset=st.integers(0, 500))
@settings(max_examples=100, deadline=None)
def test_a_made_up_directory_is_refused(directory: bytes, declared: int, offset: int) -> None:
    made_up = b"PK\x01\x02" + directory
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, declared, offset, 0)
    try:
        anyio.run(lambda: read_here(made_up + end, Choosing(), tail=50))
    except BisectorError:
        return
    # An empty directory is a good one.
    assert declared == 0


# --- the real index --------------------------------------------------------------------------------------------------


@pytest.mark.online
async def test_the_version_of_a_real_wheel_costs_little() -> None:
    index = await pip_index()
    async with Http(ca_file=index.ca_file) as http:
        stream = PypiStream(http, package="vllm", index_url=index.url, platform=Platform("linux/amd64"))
        build = next(build for build in await stream.builds() if build.id == "0.26.0")
        before = http.meter.bytes
        assert isinstance(build.location, RemoteWheel)
        found = await read(http, build.location.url, only(["vllm/_version.py"]), digest=build.digest)
    assert b"gffd46bfab" in found.contents["vllm/_version.py"]
    assert http.meter.bytes - before <= 1_200_000
