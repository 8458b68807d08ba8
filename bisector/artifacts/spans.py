"""Parts of a file, wherever it lies: on a web server or on this machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from io import BufferedIOBase
from types import TracebackType
from typing import IO, Protocol, Self

import anyio.to_thread

from bisector.errors import RangesUnsupported, Unreadable
from bisector.http import Http, redacted
from bisector.model import Digest

_LARGEST_DOWNLOAD = 4 << 30


class Spans(Protocol):
    """A file that gives its end and any part of it."""

    async def tail(self, count: int) -> tuple[bytes, int]:
        """The last ``count`` bytes, or all of a shorter file, and its size."""

    async def span(self, first: int, last: int) -> bytes:
        """Bytes ``first`` to ``last``, both included."""

    async def digest(self) -> Digest | None:
        """The SHA-256 of the whole file, when it is known or can be had without the network."""


class FileSpans:
    """A file on this machine, open for reading."""

    def __init__(self, file: BufferedIOBase, name: str) -> None:
        self._file = file
        self._name = name

    async def tail(self, count: int) -> tuple[bytes, int]:
        """As :class:`Spans` says."""
        size = await anyio.to_thread.run_sync(self._file.seek, 0, os.SEEK_END)
        return await self.span(max(0, size - count), size - 1), size

    async def span(self, first: int, last: int) -> bytes:
        """As :class:`Spans` says."""

        def read() -> bytes:
            self._file.seek(first)
            return self._file.read(last - first + 1)

        try:
            data = await anyio.to_thread.run_sync(read)
        except OSError as exc:
            raise Unreadable(f"{self._name} cannot be read: {exc.strerror}") from exc
        if len(data) != last - first + 1:
            raise Unreadable(f"{self._name} became shorter while it was read")
        return data

    async def digest(self) -> Digest:
        """The SHA-256 of the file, read whole."""

        def read() -> str:
            self._file.seek(0)
            return hashlib.file_digest(self._file, "sha256").hexdigest()

        try:
            return Digest(f"sha256:{await anyio.to_thread.run_sync(read)}")
        except OSError as exc:
            raise Unreadable(f"{self._name} cannot be read: {exc.strerror}") from exc


class RemoteSpans:
    """A file on a web server; an async context manager that removes what it had to download.

    Args:
        http: The door to the network.
        url: Where the file lies.
        size: Its size in bytes, if the index says.
        digest: Its SHA-256, if the index says.
        allow_full_download: Whether to fetch the whole file from a server that gives no parts.
    """

    def __init__(
        self, *, http: Http, url: str, size: int | None, digest: Digest | None, allow_full_download: bool
    ) -> None:
        self._http = http
        self._url = url
        self._size = size
        self._digest = digest
        self._allow_full_download = allow_full_download
        self._copy: FileSpans | None = None
        self._downloaded: IO[bytes] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._downloaded is not None:
            self._downloaded.close()

    async def tail(self, count: int) -> tuple[bytes, int]:
        """As :class:`Spans` says.

        Raises:
            RangesUnsupported: The server gives no parts, and the whole file may not be fetched.
            Unreadable: The file has not the size or the digest that the index says.
            Unavailable: No answer.
        """
        if self._copy is None:
            try:
                data, size = await self._http.get_suffix(self._url, count)
            except RangesUnsupported as exc:
                self._copy = await self._whole(exc)
        if self._copy is not None:
            data, size = await self._copy.tail(count)
        if self._size not in {None, size}:
            raise Unreadable(f"{redacted(self._url)} has {size:,} bytes where the index says {self._size:,}")
        return data, size

    async def span(self, first: int, last: int) -> bytes:
        """As :class:`Spans` says; raises as :meth:`tail` does."""
        if self._copy is None:
            try:
                return await self._http.get_range(self._url, first, last)
            except RangesUnsupported as exc:
                self._copy = await self._whole(exc)
        return await self._copy.span(first, last)

    async def digest(self) -> Digest | None:
        """What the index says, else what was downloaded whole, else nothing."""
        return self._digest

    async def _whole(self, refusal: RangesUnsupported) -> FileSpans:
        if not self._allow_full_download:
            raise refusal
        file = self._downloaded = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        digest = await self._http.download(self._url, file, limit=_LARGEST_DOWNLOAD)
        if self._digest not in {None, digest}:
            raise Unreadable(f"{redacted(self._url)} has not the digest that the index says")
        self._digest = digest
        return FileSpans(file, redacted(self._url))
