"""A tar archive read as it streams by: ustar, GNU long names and PAX records, as Go's ``archive/tar`` reads layers.

Python's ``tarfile`` costs up to three times what decompressing the layer does; this walk costs next to nothing,
because content nobody wants is counted and never copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, Protocol

from bisector.errors import Unreadable

_BLOCK: Final = 512
_ZERO: Final = bytes(_BLOCK)
_LONGEST_RECORD: Final = 1 << 20
"""Bytes of one long name or PAX record; what Go's reader allows too."""
_LONGEST_PATH: Final = 1 << 16
_MOST_ENTRIES: Final = 10_000_000
_HEADERS_ONLY: Final = b"123456"
"""Links, devices, directories and pipes have no content, whatever size they give."""


class Kind(StrEnum):
    """What an entry is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry.

    Attributes:
        path: Relative to the image's root, without ``.``, ``..`` and slashes at its ends; the root itself is empty.
        kind: What it is.
        size: Bytes of content.
        link: Of a symlink its target as it was written; of a hardlink the path of the file it repeats.
    """

    path: str
    kind: Kind
    size: int
    link: str


class Visitor(Protocol):
    """Is shown the entries of an archive."""

    @property
    def stopped(self) -> bool:
        """Whether it has seen enough; asked after every entry."""

    def entry(self, entry: Entry) -> bool:
        """Take note; whether its content is wanted."""

    def content(self, data: bytes) -> None:
        """The next piece of the content that was wanted."""


class TarWalk:
    """Takes an archive in pieces of any size and shows its entries to a visitor. Not for use after an error."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._partial = b""
        self._wanted = 0
        self._skip = 0
        self._record_type = b""
        self._record: bytearray | None = None
        self._long: dict[str, bytes] = {}
        self._pax: dict[str, str] = {}
        self._entries = 0
        self.ended = False
        """Nothing more will be shown: the archive ended, or its visitor stopped."""

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            Unreadable: These bytes are no tar archive, or one that an engine would refuse.
        """
        if self._partial:
            data, self._partial = self._partial + data, b""
        at, end = 0, len(data)
        while at < end and not self.ended:
            if self._wanted:
                piece = data[at : at + self._wanted]
                at += len(piece)
                self._wanted -= len(piece)
                self._deliver(piece)
            elif self._skip:
                step = min(self._skip, end - at)
                self._skip -= step
                at += step
            elif end - at < _BLOCK:
                self._partial = data[at:]
                return
            else:
                self._header(data[at : at + _BLOCK])
                at += _BLOCK

    def finish(self) -> None:
        """Say that nothing more comes; an archive without its end mark is accepted, as engines do.

        Raises:
            Unreadable: The archive ended in the middle of an entry.
        """
        if not self.ended and (self._partial or self._wanted or self._skip or self._long or self._pax):
            raise Unreadable("A layer's tar archive ends in the middle of an entry")
        self.ended = True

    def _header(self, block: bytes) -> None:
        if block == _ZERO:
            self.ended = True
            return
        _check(block)
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            raise Unreadable(f"A layer's tar archive has more than {_MOST_ENTRIES:,} entries")
        kind, size = block[156:157], _number(block[124:136])
        if kind in (b"L", b"K", b"x", b"g"):
            if size > _LONGEST_RECORD:
                raise Unreadable(f"A layer's tar archive has an extended header of {size:,} bytes")
            self._record_type, self._record = kind, bytearray()
            self._expect(size, wanted=True)
            if not size:
                self._deliver(b"")
            return
        self._show(block, kind, size)

    def _show(self, block: bytes, kind: bytes, size: int) -> None:
        pax, long = self._pax, self._long
        self._pax, self._long = {}, {}
        if kind == b"S" or any(name.startswith("GNU.sparse.") for name in pax):
            raise Unreadable("A layer's tar archive holds a sparse file, which bisector does not read")
        name = _text(long["L"]) if "L" in long else pax.get("path") or _name(block)
        link = _text(long["K"]) if "K" in long else pax.get("linkpath") or _text(block[157:257])
        if "size" in pax:
            size = _decimal(pax["size"])
        if kind in _HEADERS_ONLY:
            size = 0
        # Before POSIX, a directory was a file whose name ended in a slash.
        what = Kind.DIRECTORY if kind in b"\x000" and name.endswith("/") else _KINDS.get(kind, Kind.OTHER)
        if what is Kind.HARDLINK:
            link = normalised(link)
        entry = Entry(path=normalised(name), kind=what, size=size, link=link)
        wanted = self._visitor.entry(entry)
        self.ended = self._visitor.stopped
        self._expect(size, wanted=wanted and size > 0)

    def _expect(self, size: int, *, wanted: bool) -> None:
        padding = -size % _BLOCK
        self._wanted, self._skip = (size, padding) if wanted else (0, size + padding)

    def _deliver(self, piece: bytes) -> None:
        if self._record is None:
            self._visitor.content(piece)
            return
        self._record += piece
        if self._wanted:
            return
        record, self._record = bytes(self._record), None
        match self._record_type:
            case b"x":
                self._pax = _pax_records(record)
            case b"g":
                # Go's reader shows global records to nobody, Python's applies them: two files from one archive.
                if _pax_records(record).keys() & {"path", "linkpath", "size"}:
                    raise Unreadable("A layer's tar archive names all its files by one global record")
            case _:
                if len(record) > _LONGEST_PATH:
                    raise Unreadable(f"A layer's tar archive has a name of {len(record):,} bytes")
                self._long[self._record_type.decode()] = record


_KINDS: Final = {
    b"0": Kind.FILE,
    b"\x00": Kind.FILE,
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"5": Kind.DIRECTORY,
}


@lru_cache(maxsize=1024)
def _is_clean(directory: str) -> bool:
    return not any(part in ("", ".", "..") for part in directory.split("/"))


def normalised(name: str) -> str:
    """A path as an engine takes it: ``./p//q/`` is ``p/q``, ``/p`` is ``p``, ``p/../q`` is ``q``.

    Raises:
        Unreadable: It leads out of the image.
    """
    directory, _, last = name.rpartition("/")
    if last not in ("", ".", "..") and (not directory or _is_clean(directory)):
        return name.lstrip("/")
    parts: list[str] = []
    for part in name.split("/"):
        if part == "..":
            if not parts and not name.startswith("/"):
                raise Unreadable("A layer's tar archive has an entry that leads out of the image")
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _check(block: bytes) -> None:
    given = _number(block[148:156])
    blank = 8 * 0x20
    if sum(block) - sum(block[148:156]) + blank == given:
        return
    # Very old writers added the bytes as signed numbers.
    signed = memoryview(block).cast("b")
    if sum(signed) - sum(signed[148:156]) + blank != given:
        raise Unreadable("A layer's tar archive is damaged: the checksum of a header does not fit")


def _number(field: bytes) -> int:
    """Octal digits, or a big-endian number behind a first byte with its highest bit set."""
    if field[0] & 0x80:
        # 0x40 would make it negative
        if field[0] & 0x40:
            raise Unreadable("A layer's tar archive has a negative number in a header")
        return int.from_bytes(bytes((field[0] & 0x3F, *field[1:])))
    digits = field.strip(b" \x00")
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        raise Unreadable("A layer's tar archive has a header that cannot be understood")
    return int(digits, 8)


def _decimal(digits: str) -> int:
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(1 << 63)):
        raise Unreadable("A layer's tar archive has a size that cannot be understood")
    return int(digits)


def _name(block: bytes) -> str:
    # The prefix belongs to POSIX's ustar; GNU's magic ends in blanks and has other fields there.
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\x00" else ""
    name = _text(block[:100])
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.partition(b"\x00")[0].decode(errors="backslashreplace")


def _pax_records(data: bytes) -> dict[str, str]:
    r"""``LENGTH KEY=VALUE\n`` over and over; LENGTH counts itself."""
    records: dict[str, str] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 20)
        digits = data[at:blank] if blank > at else b""
        length = int(digits) if digits.isdigit() else 0
        record = data[blank + 1 : at + length]
        key, equals, value = record[:-1].partition(b"=")
        fits = at + length <= len(data) and record.endswith(b"\n")
        if not fits or not equals or not key or (key in _PATHS and b"\x00" in value):
            raise Unreadable("A layer's tar archive has an extended header that cannot be understood")
        records[key.decode(errors="backslashreplace")] = value.decode(errors="backslashreplace")
        at += length
    return records


_PATHS: Final = (b"path", b"linkpath")
