"""A wheel's directory and members: zip, by :mod:`zipfile`, over a file of which only some parts are here.

Paths are made relative to site-packages as an installer would place them
(https://packaging.python.org/en/latest/specifications/binary-distribution-format/).
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bisector.artifacts.bounds import MOST_ENTRIES
from bisector.artifacts.sparse import Missing, SparseFile
from bisector.errors import Unreadable
from bisector.model import Digest

_INSTALLED_BESIDE = re.compile(r"\A[^/]+\.data/(?:purelib|platlib)/")
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1 | 0x40
_SMALL_GAP = 64 << 10
_LONGEST_HEADER = 30 + 2 * 0xFFFF
"""A member's local header: 30 bytes, its name and its extra field."""
_CHUNK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError, OSError)
"""What zipfile raises on bytes that are no zip, beside its own error; unknown features are RuntimeErrors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Members that are fetched with one request: bytes ``first`` to ``last`` of the wheel, both included."""

    first: int
    last: int
    paths: tuple[str, ...]


class Archive:
    """The directory of a wheel, and its members once their bytes are here.

    Args:
        file: The wheel; at least its end must be here.
        name: What to call it in messages.

    Raises:
        Missing: The directory begins before what is here.
        Unreadable: It is no zip archive, or has too many members.
    """

    def __init__(self, file: SparseFile, name: str) -> None:
        self._file = file
        self._name = name
        with _damage_told(f"{name} is not a zip archive, or is cut short", *_DAMAGE):
            self._zip = zipfile.ZipFile(file)
        infos = self._zip.infolist()
        if len(infos) > MOST_ENTRIES:
            raise Unreadable(f"{name} has {len(infos):,} members, more than bisector reads")
        # Of two members with one name the later wins, as it does when both are unpacked.
        self._members = {_INSTALLED_BESIDE.sub("", info.filename, count=1): info for info in infos if not info.is_dir()}
        self._starts = sorted({info.header_offset for info in infos} | {self._zip.start_dir})

    @property
    def sizes(self) -> Mapping[str, int]:
        """Path → size in bytes, as the directory declares it."""
        return {path: info.file_size for path, info in self._members.items()}

    def fingerprint(self) -> Digest:
        """A content address that costs no more than the directory.

        SHA-256 over the line ``bisector wheel directory 1``, and all bytes from the directory to the end of the file.
        The directory holds the name, size and CRC-32 of every member, so that it changes when any of them does. It is
        not the digest of the file, and never equal to one.
        """
        seen = hashlib.sha256(b"bisector wheel directory 1\n")
        self._file.seek(self._zip.start_dir)
        seen.update(self._file.read())
        return Digest(f"sha256:{seen.hexdigest()}")

    def runs(self, paths: Iterable[str]) -> Sequence[Run]:
        """What to fetch in order to read these members: neighbours together, each byte once, in file order."""
        runs: list[Run] = []
        for path in sorted(paths, key=lambda path: self._members[path].header_offset):
            first, last = self._span(self._members[path])
            if runs and first - runs[-1].last <= _SMALL_GAP:
                before = runs.pop()
                runs.append(Run(first=before.first, last=max(before.last, last), paths=(*before.paths, path)))
            else:
                runs.append(Run(first=first, last=last, paths=(path,)))
        return runs

    def _span(self, info: zipfile.ZipInfo) -> tuple[int, int]:
        """From a member's local header to whatever comes next: the header's own length is not in the directory."""
        first = info.header_offset
        following = next((start for start in self._starts if start > first), self._file.size)
        longest = first + info.compress_size + _LONGEST_HEADER
        if not 0 <= first < self._file.size:
            raise Unreadable(f"{info.filename} in {self._name} lies outside the archive")
        return first, min(following, longest) - 1

    def read(self, path: str) -> bytes:
        """A member whose bytes are here, checked against its size and CRC-32.

        Raises:
            Unreadable: It is damaged, encrypted, or compressed in a way wheels are not.
        """
        info = self._members[path]
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise Unreadable(f"{path} in {self._name} is encrypted, or compressed in a way that wheels are not")
        content = bytearray()
        with _damage_told(f"{path} in {self._name} is damaged", *_DAMAGE, Missing), self._zip.open(info) as member:
            # zipfile inflates no further than the declared size, which the caller has found acceptable.
            while chunk := member.read(_CHUNK):
                content += chunk
        if len(content) != info.file_size:
            raise Unreadable(f"{path} in {self._name} is damaged")
        return bytes(content)


@contextmanager
def _damage_told(message: str, *kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds as exc:
        raise Unreadable(message) from exc
