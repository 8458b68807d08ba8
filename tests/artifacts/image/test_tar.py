from __future__ import annotations

import io
import random
import tarfile
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.artifacts.image.tar import Entry, Kind, TarWalk, normalised
from bisector.errors import Unreadable
from tests.fakes.images import Item, directory, file, hardlink, pack, symlink

KINDS = {
    tarfile.REGTYPE: Kind.FILE,
    tarfile.DIRTYPE: Kind.DIRECTORY,
    tarfile.SYMTYPE: Kind.SYMLINK,
    tarfile.LNKTYPE: Kind.HARDLINK,
}
names = st.text(st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1, max_size=90).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, min_size=1, max_size=6).map("/".join)
items = st.one_of(
    st.builds(file, paths, st.binary(max_size=2000)),
    st.builds(directory, paths),
    st.builds(symlink, paths, paths),
    st.builds(hardlink, paths, paths),
)


@dataclass(slots=True)
class Seen:
    wants: frozenset[str] | None = None
    stopped: bool = False
    entries: list[Entry] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)

    def entry(self, entry: Entry) -> bool:
        self.entries.append(entry)
        self.contents.append(b"")
        return self.wants is None or entry.path in self.wants

    def content(self, data: bytes) -> None:
        self.contents[-1] += data


def walked(data: bytes, step: int = 1 << 16, wants: frozenset[str] | None = None) -> Seen:
    seen = Seen(wants)
    walk = TarWalk(seen)
    for at in range(0, len(data), step):
        walk.feed(data[at : at + step])
    walk.finish()
    return seen


@settings(deadline=None)
@given(
    archive=st.lists(items, max_size=8),
    style=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    step=st.integers(1, 3000),
)
def test_reads_what_tarfile_writes(archive: list[Item], style: int, step: int) -> None:
    data = pack(archive, style=style)
    seen = walked(data, step)
    assert [entry.path for entry in seen.entries] == [item.path for item in archive]
    assert [entry.kind for entry in seen.entries] == [KINDS[item.kind] for item in archive]
    assert seen.contents == [item.content for item in archive]
    assert [entry.link for entry in seen.entries] == [item.link for item in archive]
    with tarfile.open(fileobj=io.BytesIO(data)) as theirs:
        assert [entry.size for entry in seen.entries] == [member.size for member in theirs]


def test_content_nobody_wants_is_skipped() -> None:
    data = pack([file("a", b"x" * 5000), file("b", b"y" * 700), file("c", b"z" * 512)])
    seen = walked(data, 100, frozenset({"b"}))
    assert seen.contents == [b"", b"y" * 700, b""]


def test_ustar_prefixes_belong_to_the_name() -> None:
    path = "/".join(["directory"] * 15) + "/file"
    assert walked(pack([file(path, b"x")], style=tarfile.USTAR_FORMAT)).entries[0].path == path


def test_sizes_beyond_octal_are_read() -> None:
    info = tarfile.TarInfo("big")
    info.size = 1 << 40
    for style in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        seen = Seen(frozenset())
        TarWalk(seen).feed(info.tobuf(style))
        assert seen.entries[0].size == 1 << 40


def test_links_have_no_content_whatever_size_they_give() -> None:
    info = tarfile.TarInfo("link")
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "there", 4096
    seen = walked(info.tobuf(tarfile.USTAR_FORMAT) + pack([file("next", b"x")]))
    assert [entry.path for entry in seen.entries] == ["link", "next"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("./p//q/", "p/q"), ("/p", "p"), ("p/../q", "q"), ("./", ""), ("/../p", "p"), (".wh..wh..opq", ".wh..wh..opq")],
)
def test_paths_are_what_an_engine_makes_of_them(written: str, meant: str) -> None:
    assert normalised(written) == meant


@pytest.mark.parametrize("path", ["../p", "p/../../q", ".."])
def test_paths_out_of_the_image_are_refused(path: str) -> None:
    with pytest.raises(Unreadable, match="out of the image"):
        normalised(path)


def test_an_archive_without_its_end_mark_is_taken() -> None:
    data = pack([file("a", b"x" * 512)])
    assert len(walked(data[:1024]).entries) == 1


def test_what_follows_the_end_mark_is_not_read() -> None:
    assert len(walked(pack([file("a")]) + b"anything").entries) == 1


def _tampered(at: int, value: bytes) -> bytes:
    data = bytearray(pack([file("name", b"x" * 100)]))
    data[at : at + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        _tampered(0, b"N"),
        _tampered(148, b"zzzzzzz\x00"),
        _tampered(124, b"99999999999\x00"),
        b"no archive at all " * 100,
        pack([file("a", b"x" * 600)])[:1300],
        pack([file("a")])[:100],
    ],
    ids=["name", "checksum", "size", "text", "cut in content", "cut in header"],
)
def test_damage_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        walked(data)


def _header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_endless_extended_headers_are_refused_before_they_are_read(kind: bytes) -> None:
    with pytest.raises(Unreadable, match="extended header"):
        walked(_header(kind, 1 << 30))


@pytest.mark.parametrize(
    "record",
    [b"30 path=x\n", b"nonsense", b"9 path=x", b"0 a=b\n", b"-5 a=b\n", b"11 path=\x00x\n", b"99999999999999999999999"],
)
def test_extended_headers_that_make_no_sense_are_refused(record: bytes) -> None:
    with pytest.raises(Unreadable):
        walked(_header(b"x", len(record)) + record.ljust(512, b"\x00") + pack([file("a")]))


def test_one_name_for_all_files_is_refused() -> None:
    record = b"10 path=x\n"
    with pytest.raises(Unreadable, match="global"):
        walked(_header(b"g", len(record)) + record.ljust(512, b"\x00") + pack([file("a")]))


def test_sparse_files_are_refused() -> None:
    with pytest.raises(Unreadable, match="sparse"):
        walked(_header(b"S", 0))


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_mutations_end_in_entries_or_in_a_sentence(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(pack([file("a/" + "long" * 60, b"x" * 900), symlink("b", "c" * 150), directory("d")]))
    for _ in range(chance.randint(1, 5)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    try:
        walked(bytes(data[: chance.randint(1, len(data))]), chance.randint(1, 2000))
    except Unreadable:
        return
