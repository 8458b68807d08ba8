"""One request and the answer behind its redirects: connections, certificates, logins, counting."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

import httpcore
import httpx

from bisector.errors import ConfigError
from bisector.http.failures import overloaded, translated

_MOST_REDIRECTS = 10
_TIMEOUT = httpx.Timeout(30, connect=10)

# A fast network's bytes are read in as many steps as this allows, and a step costs the same whatever it brings.
httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = 1 << 18


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What went over the network: every request, redirects and repetitions too, and the bytes of the bodies read."""

    requests: int = 0
    bytes: int = 0


class Connections:
    """Connects at the first request.

    Args:
        meter: Where to count.
        longest_asked: The longest wait in seconds a server may ask for.
        ca_file: Certificates to trust instead of those of ``SSL_CERT_FILE``, ``SSL_CERT_DIR`` or certifi.
    """

    def __init__(self, meter: Traffic, *, longest_asked: float, ca_file: str | None) -> None:
        self._meter = meter
        self._longest_asked = longest_asked
        self._ca_file = ca_file
        self._client: httpx.AsyncClient | None = None
        self._retired: list[httpx.AsyncClient] = []
        self._logins: dict[tuple[str, str, int | None], httpx.BasicAuth] = {}

    async def close(self) -> None:
        """Close all of them."""
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

    @asynccontextmanager
    async def answer(
        self, url: str, headers: Mapping[str, str], *, method: str = "GET", content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The open answer behind all redirects; closed, read or not, at the end."""
        with translated(url):
            response = await self._follow(self._request(url, headers, method, content))
            try:
                failure = overloaded(response, url, longest_asked=self._longest_asked)
                if failure is not None:
                    raise failure
                yield response
            finally:
                self._meter.bytes += response.num_bytes_downloaded
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
            self._meter.requests += 1
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


def _origin(address: httpx.URL) -> tuple[str, str, int | None]:
    return address.scheme, address.host, address.port


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context() if ca_file is None else ssl.create_default_context(cafile=ca_file)
    except OSError as exc:
        named = "SSL_CERT_FILE or SSL_CERT_DIR" if ca_file is None else ca_file
        raise ConfigError(f"The certificates to trust cannot be read from {named}") from exc
