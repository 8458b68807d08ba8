"""The client: whole answers, parts of files, downloads."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import BinaryIO, Self

import anyio
import anyio.to_thread
import httpx

from bisector.errors import Unreadable
from bisector.http.connections import Connections, Traffic
from bisector.http.failures import host_of, redacted, refused
from bisector.http.parts import asking_for, length, pour, ranges_unsupported, span
from bisector.http.patience import Patience
from bisector.http.stream import Streamed, pieces
from bisector.model import Digest

_DOWNLOAD_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, read whole.

    Attributes:
        status: The HTTP status; never one that stands for a passing failure.
        headers: By lower-case name.
        body: Decompressed.
        url: Where it came from after redirects, without user and password.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Http:
    """HTTP/1.1, as far as bisector needs it. An async context manager; connects at the first request.

    Args:
        meter: Where to count.
        patience: When to give up.
        ca_file: Certificates to trust instead of those of ``SSL_CERT_FILE``, ``SSL_CERT_DIR`` or certifi.
    """

    def __init__(
        self, *, meter: Traffic | None = None, patience: Patience | None = None, ca_file: str | None = None
    ) -> None:
        self.meter = meter or Traffic()
        self._patience = patience or Patience()
        self._connections = Connections(self.meter, longest_asked=self._patience.longest_asked, ca_file=ca_file)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()

    def trust(self, ca_file: str) -> None:
        """Trust these certificates instead, from the next request on; those under way end as they began."""
        self._connections.trust(ca_file)

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, limit: int) -> Reply:
        """The whole answer; what a status such as 404 means is the caller's to say.

        Raises:
            Unreadable: The body is longer than ``limit`` bytes.
            Unavailable: No answer, or a server error that did not pass.
        """

        async def attempt() -> Reply:
            async with self._connections.answer(url, {"Accept-Encoding": "gzip", **(headers or {})}) as response:
                return _reply(response, await _whole(response, url, limit))

        return await self._patience.insist(url, attempt, within=self._patience.longest_answer)

    async def get_range(self, url: str, first: int, last: int) -> bytes:
        """Bytes ``first`` to ``last`` of a file, both included; taken up where it stopped when the connection breaks.

        Raises:
            RangesUnsupported: The server would send the whole file instead; it is not read.
            Unreadable: The file has no such part.
            Unavailable: No answer, or not with the file.
        """
        received = bytearray()

        async def attempt() -> None:
            start = first + len(received)
            if start > last:
                return
            async with self._connections.answer(url, asking_for(f"{start}-{last}")) as response:
                if response.status_code == httpx.codes.OK:
                    raise ranges_unsupported(url, length(response))
                if span(response, url) != (start, last):
                    raise Unreadable(f"{host_of(url)} sent another part of {redacted(url)} than it was asked for")
                await pour(response, received, last - first + 1, url)

        await self._patience.insist(url, attempt, within=self._patience.longest_answer)
        return bytes(received)

    async def get_suffix(self, url: str, count: int) -> tuple[bytes, int]:
        """The last ``count`` bytes of a file, or all of a shorter one, and the size of the file.

        Raises:
            RangesUnsupported, Unreadable, Unavailable: As for :meth:`get_range`.
        """

        async def attempt() -> tuple[bytes | None, int]:
            received = bytearray()
            async with self._connections.answer(url, asking_for(f"-{count}")) as response:
                if response.status_code != httpx.codes.OK:
                    first, last = span(response, url)
                    size, whole = last + 1, last - first + 1
                    if whole != min(count, size):
                        raise Unreadable(f"{host_of(url)} sent another part of {redacted(url)} than it was asked for")
                else:
                    announced = length(response)
                    if announced is None:
                        raise ranges_unsupported(url, None)
                    if announced > count:
                        return None, announced
                    size = whole = announced
                await pour(response, received, whole, url)
                return bytes(received), size

        tail, size = await self._patience.insist(url, attempt, within=self._patience.longest_answer)
        # Some servers know `first-last` and not `-count`; with the size in hand the same part can be asked for so.
        return (await self.get_range(url, size - count, size - 1) if tail is None else tail), size

    async def download(self, url: str, into: BinaryIO, *, limit: int) -> Digest:
        """The whole file, written to ``into`` from its beginning; returns the SHA-256 of what was written.

        Raises:
            Unreadable: It is longer than ``limit`` bytes.
            Unavailable: No answer, or not with the file.
        """

        async def attempt() -> Digest:
            into.seek(0)
            into.truncate()
            seen, written = hashlib.sha256(), 0
            async with self._connections.answer(url, {"Accept-Encoding": "identity"}) as response:
                if response.status_code != httpx.codes.OK:
                    raise refused(response, url)
                async for chunk in response.aiter_raw(_DOWNLOAD_CHUNK):
                    written += len(chunk)
                    if written > limit:
                        raise Unreadable(f"{redacted(url)} is longer than the {limit:,} bytes bisector reads of it")
                    seen.update(chunk)
                    await anyio.to_thread.run_sync(into.write, chunk)
            return Digest(f"sha256:{seen.hexdigest()}")

        return await self._patience.insist(url, attempt, within=self._patience.longest_download)

    async def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> Reply:
        """What :meth:`get` would be told about, without the body.

        Raises:
            Unavailable: No answer, or a server error that did not pass.
        """

        async def attempt() -> Reply:
            async with self._connections.answer(url, headers or {}, method="HEAD") as response:
                return _reply(response, b"")

        return await self._patience.insist(url, attempt, within=self._patience.longest_answer)

    async def send(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str] | None = None, limit: int
    ) -> Reply:
        """The whole answer to a request that changes something.

        It is made once: one that got no answer may have been carried out all the same.

        Raises:
            Unreadable: The answer is longer than ``limit`` bytes.
            Unavailable: No answer, or a server error.
        """

        async def attempt() -> Reply:
            async with self._connections.answer(url, headers or {}, method=method, content=body) as response:
                return _reply(response, await _whole(response, url, limit))

        once = replace(self._patience, attempts=1)
        return await once.insist(url, attempt, within=once.longest_answer)

    @asynccontextmanager
    async def stream(self, url: str, *, headers: Mapping[str, str] | None = None) -> AsyncIterator[Streamed]:
        """An answer whose body is read as it comes, whatever its status; leaving early closes the connection.

        Opening it is tried again as often as any request; what breaks later is the caller's to take up.

        Raises:
            Unavailable: No answer, a server error that did not pass, or a body that broke off.
        """
        async with AsyncExitStack() as stack:

            async def attempt() -> httpx.Response:
                asked = {"Accept-Encoding": "identity", **(headers or {})}
                return await stack.enter_async_context(self._connections.answer(url, asked))

            response = await self._patience.insist(url, attempt, within=self._patience.longest_answer)
            chunks = pieces(response, url, within=self._patience.longest_download)
            stack.push_async_callback(chunks.aclose)
            yield Streamed(
                status=response.status_code, headers=_named(response), chunks=chunks, length=length(response)
            )


async def _whole(response: httpx.Response, url: str, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            raise Unreadable(f"{redacted(url)} is longer than the {limit:,} bytes bisector reads of it")
    return bytes(body)


def _reply(response: httpx.Response, body: bytes) -> Reply:
    return Reply(status=response.status_code, headers=_named(response), body=body, url=str(response.url))


def _named(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
