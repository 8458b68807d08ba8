"""Layers decompressed piece by piece, never more than a chunk at a time, however much a hostile one would expand to.

gzip (RFC 1952) and zstd (RFC 8878) streams are read with all their members and frames: every decoder below stops at
the end of the first one without a word, and ``pigz``, eStargz and zstd:chunked write many. What a layer is compressed
with is told by its first bytes; media types are often wrong.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Generator, Iterator, Mapping
from typing import Final, Protocol

from isal import igzip_lib

from bisector.errors import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK: Final = 1 << 20
"""The most bytes that come out at once."""

_LONGEST_MAGIC: Final = 6
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = tuple(bytes((0x50 + n, 0x2A, 0x4D, 0x18)) for n in range(16))
_UNREAD: Final = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x04\x22\x4d\x18": "lz4"}

# libzstd itself refuses more unless asked; named here because the window is what one frame may make it allocate.
_ZSTD_WINDOW: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: 27}

_FAILURES: Final[tuple[type[Exception], ...]] = (
    igzip_lib.IsalError,  # type: ignore[assignment]  # its stubs call the class an instance
    zlib.error,
    zstd.ZstdError,
)


class _Decoder(Protocol):
    """One member or frame."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Inflate:
    """A layer's stream: compressed bytes go in, tar bytes come out. Not for use after an error."""

    def __init__(self) -> None:
        self._head = b""
        self._format: str | None = None
        self._decoder: _Decoder | None = None
        self._members = 0
        self._padding = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Everything that these bytes give, in pieces of at most ``CHUNK``; to be used up before the next call.

        Raises:
            Unreadable: They are not what the stream began with, or damaged.
        """
        data = self._head + data
        self._head = b""
        while data:
            if self._format == "tar":
                yield from (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
                return
            if self._decoder is None:
                if self._members and (self._padding or not data[0]):
                    self._pad(data)
                    return
                if len(data) < _LONGEST_MAGIC:
                    self._head = data
                    return
                self._begin(data)
                continue
            data = yield from self._inflate(self._decoder, data)

    def finish(self) -> Iterator[bytes]:
        """What was held back.

        Raises:
            Unreadable: The stream ended too early.
        """
        if self._decoder is not None or (self._members and self._head):
            raise Unreadable("A layer ends in the middle of its compressed data")
        if self._head:
            yield self._head

    def _begin(self, data: bytes) -> None:
        found = sniff(data)
        if self._format not in (None, found):
            raise Unreadable("A layer has bytes behind its compressed data that do not belong to it")
        self._format = found
        if found == "gzip":
            self._decoder = _Gzip()
        elif found == "zstd":
            self._decoder = _Zstd()

    def _inflate(self, decoder: _Decoder, data: bytes) -> Generator[bytes, None, bytes]:
        """Run one decoder until it wants more or its member ends; returns what lies behind the member."""
        while True:
            try:
                out = decoder.decompress(data, CHUNK)
            except _FAILURES as exc:
                raise Unreadable(f"A layer's {self._format} data is damaged") from exc
            data = b""
            if out:
                yield out
            if decoder.eof:
                self._decoder = None
                self._members += 1
                return decoder.unused_data
            if not out:
                return b""

    def _pad(self, data: bytes) -> None:
        # Writers that fill up to a block leave zeros behind the last member; engines do not mind.
        self._padding = True
        if data.count(0) != len(data):
            raise Unreadable("A layer has bytes behind its compressed data that do not belong to it")


def sniff(head: bytes) -> str:
    """What a stream that begins so is: ``gzip``, ``zstd`` or ``tar`` (anything else; its own checksums will tell).

    Raises:
        Unreadable: It is compressed in a way that is not read here.
    """
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith((_ZSTD, *_ZSTD_SKIPPABLE)):
        return "zstd"
    for magic, name in _UNREAD.items():
        if head.startswith(magic):
            raise Unreadable(f"A layer is compressed with {name}, which bisector does not read")
    return "tar"


class _Gzip:
    """isal's decoder; unlike its twin of zlib's form it keeps what it had no room for and lets other threads run."""

    def __init__(self) -> None:
        self._inner = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(data, max_length)
        self.eof = self._inner.eof
        self.unused_data = self._inner.unused_data if self.eof else b""
        return out


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor(options=_ZSTD_WINDOW)
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(data, max_length)
        self.eof = self._inner.eof
        self.unused_data = self._inner.unused_data if self.eof else b""
        return out
