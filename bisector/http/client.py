"""The client: whole answers, parts of files, downloads."""

from __future__ import annotations

import hashlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

import anyio
import anyio.to_thread
import httpcore
import httpx
import stamina

from bisector.errors import ConfigError, Unavailable, Unreadable
from bisector.http.failures import Again, host_of, overloaded, redacted, refused, translated
from bisector.http.parts import asking_for, length, pour, ranges_unsupported, span
from bisector.http.stream import Streamed, pieces
from bisector.model import Digest

_MOST_REDIRECTS = 10
_DOWNLOAD_CHUNK = 1 << 20
_TIMEOUT = httpx.Timeout(30, connect=10)

# A fast network's bytes are read in as many steps as this allows, and a step costs the same whatever it brings.
httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = 1 << 18

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


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


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What went over the network: every request, redirects and repetitions too, and the bytes of the bodies read."""

    requests: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to insist; all times in seconds.

    Attributes:
        attempts: Requests in all, the first one too.
        first_wait: Before the second attempt; doubled before each further one.
        longest_wait: What doubling stops at.
        jitter: Up to so much is added by chance, so that many clients do not return together.
        longest_asked: The longest wait a server may ask for; above it the answer is ``RateLimited``.
        longest_answer: What one answer, or one part of a file, may take however slowly it trickles.
        longest_download: The same for a whole file.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 8.0
    jitter: float = 0.5
    longest_asked: float = 60.0
    longest_answer: float = 300.0
    longest_download: float = 3600.0


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
        self._ca_file = ca_file
        self._client: httpx.AsyncClient | None = None
        self._retired: list[httpx.AsyncClient] = []
        self._logins: dict[tuple[str, str, int | None], httpx.BasicAuth] = {}

    async def __aenter__(self) -> Self:
        # stamina's own hooks print to stdout when structlog is importable; stdout is for results.
        stamina.instrumentation.set_on_retry_hooks([])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in (*self._retired, *([self._client] if self._client else [])):
            await client.aclose()
        self._retired.clear()
        self._client = None

    def trust(self, ca_file: str) -> None:
        """Trust these certificates instead, from the next request on; those under way end as they began."""
        self._ca_file = ca_file
        if self._client is not None:
            self._retired.append(self._client)
            self._client = None

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, limit: int) -> Reply:
        """The whole answer; what a status such as 404 means is the caller's to say.

        Raises:
            Unreadable: The body is longer than ``limit`` bytes.
            Unavailable: No answer, or a server error that did not pass.
        """

        async def attempt() -> Reply:
            async with self._answer(url, {"Accept-Encoding": "gzip", **(headers or {})}) as response:
                body = await _whole(response, url, limit)
                named = _named(response)
                return Reply(status=response.status_code, headers=named, body=body, url=str(response.url))

        return await self._insist(url, attempt, within=self._patience.longest_answer)

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
            async with self._answer(url, asking_for(f"{start}-{last}")) as response:
                if response.status_code == httpx.codes.OK:
                    raise ranges_unsupported(url, length(response))
                if span(response, url) != (start, last):
                    raise Unreadable(f"{host_of(url)} sent another part of {redacted(url)} than it was asked for")
                await pour(response, received, last - first + 1, url)

        await self._insist(url, attempt, within=self._patience.longest_answer)
        return bytes(received)

    async def get_suffix(self, url: str, count: int) -> tuple[bytes, int]:
        """The last ``count`` bytes of a file, or all of a shorter one, and the size of the file.

        Raises:
            RangesUnsupported, Unreadable, Unavailable: As for :meth:`get_range`.
        """

        async def attempt() -> tuple[bytes | None, int]:
            received = bytearray()
            async with self._answer(url, asking_for(f"-{count}")) as response:
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

        tail, size = await self._insist(url, attempt, within=self._patience.longest_answer)
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
            async with self._answer(url, {"Accept-Encoding": "identity"}) as response:
                if response.status_code != httpx.codes.OK:
                    raise refused(response, url)
                async for chunk in response.aiter_raw(_DOWNLOAD_CHUNK):
                    written += len(chunk)
                    if written > limit:
                        raise Unreadable(f"{redacted(url)} is longer than the {limit:,} bytes bisector reads of it")
                    seen.update(chunk)
                    await anyio.to_thread.run_sync(into.write, chunk)
            return Digest(f"sha256:{seen.hexdigest()}")

        return await self._insist(url, attempt, within=self._patience.longest_download)

    async def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> Reply:
        """What :meth:`get` would be told about, without the body.

        Raises:
            Unavailable: No answer, or a server error that did not pass.
        """

        async def attempt() -> Reply:
            async with self._answer(url, headers or {}, method="HEAD") as response:
                return Reply(status=response.status_code, headers=_named(response), body=b"", url=str(response.url))

        return await self._insist(url, attempt, within=self._patience.longest_answer)

    async def send(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str] | None = None, limit: int
    ) -> Reply:
        """The whole answer to a request that changes something.

        It is made once: one that got no answer may have been carried out all the same.

        Raises:
            Unreadable: The answer is longer than ``limit`` bytes.
            Unavailable: No answer, or a server error.
        """
        within = self._patience.longest_answer
        try:
            with anyio.fail_after(within):
                async with self._answer(url, headers or {}, method=method, content=body) as response:
                    received = await _whole(response, url, limit)
                    status, named = response.status_code, _named(response)
                    return Reply(status=status, headers=named, body=received, url=str(response.url))
        except TimeoutError as exc:
            raise _too_slow(url, within) from exc
        except Again as again:
            raise again.error from again.__cause__

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
                return await stack.enter_async_context(self._answer(url, asked))

            response = await self._insist(url, attempt, within=self._patience.longest_answer)
            chunks = pieces(response, url, within=self._patience.longest_download)
            stack.push_async_callback(chunks.aclose)
            yield Streamed(
                status=response.status_code, headers=_named(response), chunks=chunks, length=length(response)
            )

    @asynccontextmanager
    async def _answer(
        self, url: str, headers: Mapping[str, str], *, method: str = "GET", content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The open answer behind all redirects; closed, read or not, at the end."""
        with translated(url):
            response = await self._follow(self._request(url, headers, method, content))
            try:
                failure = overloaded(response, url, longest_asked=self._patience.longest_asked)
                if failure is not None:
                    raise failure
                yield response
            finally:
                self.meter.bytes += response.num_bytes_downloaded
                await response.aclose()

    def _request(self, url: str, headers: Mapping[str, str], method: str, content: bytes | None) -> httpx.Request:
        address = httpx.URL(url)
        if address.userinfo:
            self._logins[_origin(address)] = httpx.BasicAuth(address.username, address.password)
            address = address.copy_with(userinfo=b"")
        return self._connected().build_request(method, address, headers=dict(headers), content=content)

    async def _follow(self, request: httpx.Request) -> httpx.Response:
        # httpx would read the body of each redirect whole, however long; here none is read.
        for _ in range(_MOST_REDIRECTS):
            self.meter.requests += 1
            login = self._logins.get(_origin(request.url))
            response = await self._connected().send(request, stream=True, auth=login)
            if response.next_request is None:
                return response
            await response.aclose()
            request = response.next_request
        raise httpx.TooManyRedirects("", request=request)

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            agent = {"User-Agent": f"bisector/{version('bisector')}"}
            self._client = httpx.AsyncClient(headers=agent, timeout=_TIMEOUT, verify=_trust(self._ca_file))
        return self._client

    async def _insist(self, url: str, attempt: Callable[[], Awaitable[_T]], *, within: float) -> _T:
        async def bounded() -> _T:
            try:
                with anyio.fail_after(within):
                    return await attempt()
            except TimeoutError as exc:
                raise Again(_too_slow(url, within)) from exc

        patience = self._patience
        trying = stamina.AsyncRetryingCaller(
            attempts=patience.attempts,
            timeout=None,
            wait_initial=patience.first_wait,
            wait_max=patience.longest_wait,
            wait_jitter=patience.jitter,
        )
        try:
            return await trying(_pause, bounded)
        except Again as again:
            raise again.error from again.__cause__


async def _whole(response: httpx.Response, url: str, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            raise Unreadable(f"{redacted(url)} is longer than the {limit:,} bytes bisector reads of it")
    return bytes(body)


def _too_slow(url: str, within: float) -> Unavailable:
    return Unavailable(f"{host_of(url)} is too slow: no whole answer in {within:.0f} s")


def _named(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _pause(error: Exception) -> bool | float:
    """Whether stamina should try again, and after how long."""
    if not isinstance(error, Again):
        return False
    _log.debug("%s; trying again", error.error.message)
    return True if error.wait is None else error.wait


def _origin(address: httpx.URL) -> tuple[str, str, int | None]:
    return address.scheme, address.host, address.port


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context() if ca_file is None else ssl.create_default_context(cafile=ca_file)
    except OSError as exc:
        named = "SSL_CERT_FILE or SSL_CERT_DIR" if ca_file is None else ca_file
        raise ConfigError(f"The certificates to trust cannot be read from {named}") from exc
