"""What can go wrong on the way to a server, in bisector's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime

import httpx

from bisector.errors import RateLimited, Unavailable

_SECONDS = re.compile(r"[0-9]{1,9}\Z")
_PASSING = frozenset({httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY, httpx.codes.TOO_MANY_REQUESTS})

_FAILURES: tuple[tuple[type[httpx.HTTPError], str, bool], ...] = (
    (httpx.ConnectTimeout, "{host} did not accept a connection in time", True),
    (httpx.ReadTimeout, "{host} stopped sending", True),
    (httpx.WriteTimeout, "{host} stopped listening", True),
    (httpx.PoolTimeout, "there are too many connections to {host} already", True),
    (httpx.ConnectError, "{host} cannot be reached ({reason})", True),
    (httpx.NetworkError, "the connection to {host} broke", True),
    (httpx.ProxyError, "the proxy does not reach {host}", True),
    (httpx.RemoteProtocolError, "{host} broke off in the middle of an answer, or does not speak HTTP", True),
    (httpx.LocalProtocolError, "a request to {host} cannot be put into HTTP", False),
    (httpx.UnsupportedProtocol, "{host} was named by an address that is neither http:// nor https://", False),
    (httpx.DecodingError, "{host} sent a body that cannot be decompressed", False),
    (httpx.TooManyRedirects, "{host} redirects without end", False),
    (httpx.HTTPError, "{host} could not be asked", False),
)
"""What httpx raises → what to say, and whether trying again may help; the first that fits."""


class Again(Exception):
    """A failure that may pass: what to raise when it does not, and the wait the server asked for."""

    def __init__(self, error: Unavailable, wait: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait = wait


def host_of(url: str) -> str:
    """The host and port an address names, without user and password, for messages."""
    try:
        return httpx.URL(url).netloc.decode("ascii") or "nowhere"
    except httpx.InvalidURL:
        return "nowhere"


def redacted(url: str) -> str:
    """An address without user, password, query and fragment, for messages."""
    try:
        return str(httpx.URL(url).copy_with(userinfo=b"", query=None, fragment=None))
    except httpx.InvalidURL:
        return "an address that cannot be understood"


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn whatever httpx raises about this address into an error of bisector's own."""
    try:
        yield
    except httpx.InvalidURL as exc:
        raise Unavailable("An address cannot be understood", hint="Write it as https://HOST/PATH.") from exc
    except httpx.HTTPError as exc:
        words, may_pass = next((words, again) for kind, words, again in _FAILURES if isinstance(exc, kind))
        error = Unavailable(words.format(host=host_of(url), reason=exc))
        if "CERTIFICATE_VERIFY_FAILED" in str(exc):
            error = Unavailable(error.message, hint="Name the certificates to trust with SSL_CERT_FILE.")
            may_pass = False
        raise (Again(error) if may_pass else error) from exc


def refused(response: httpx.Response, url: str) -> Unavailable:
    """The error for a status that means: not this time, or not for you."""
    hint = None
    if response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        hint = (
            "Put the user and password into the address that pip is configured with: https://USER:PASSWORD@HOST/PATH."
        )
    return Unavailable(f"{host_of(url)} answered {response.status_code} for {redacted(url)}", hint=hint)


def overloaded(response: httpx.Response, url: str, *, longest_asked: float) -> Again | RateLimited | None:
    """The failure an answer stands for when it is one that may pass, or ``None``; long waits are not waited for."""
    if response.status_code not in _PASSING and response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
        return None
    wait = _asked_wait(response.headers)
    if wait is None and response.status_code != httpx.codes.TOO_MANY_REQUESTS:
        return Again(refused(response, url))
    error = RateLimited(f"{host_of(url)} answered {response.status_code}{_until(response.headers, wait)}")
    return error if wait is not None and wait > longest_asked else Again(error, wait)


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds from Retry-After; a date in it is measured by the server's own clock (RFC 9110 §10.2.3)."""
    asked = headers.get("Retry-After", "")
    if _SECONDS.match(asked):
        return float(asked)
    try:
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, wait.total_seconds())


def _until(headers: Mapping[str, str], wait: float | None) -> str:
    if wait is None:
        return ": too many requests"
    try:
        end = parsedate_to_datetime(headers.get("Date", "")) + timedelta(seconds=wait)
    except (ValueError, TypeError, OverflowError):
        return f" and asks to wait {wait:.0f} s"
    return f" and asks to wait until {end:%Y-%m-%d %H:%M:%S} UTC"
