"""Parts of a file: asking for them by Range, and making sure they are what came (RFC 9110 §14)."""

from __future__ import annotations

import re

import httpx

from bisector.errors import RangesUnsupported, Unavailable, Unreadable
from bisector.http.failures import Again, host_of, redacted, refused

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d{1,18}|\*)\Z")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")


def ranges_unsupported(url: str, size: int | None) -> RangesUnsupported:
    """The error for a server that would send the whole file, with what that would cost."""
    cost = "of unknown size" if size is None else f"{size / 1e6:,.1f} MB"
    return RangesUnsupported(
        f"{host_of(url)} gives only whole files, and {redacted(url)} is {cost}",
        hint=f"Add --allow-full-download to fetch all of it ({cost}), or use an index whose server knows ranges.",
    )


def asking_for(part: str) -> dict[str, str]:
    """The headers that ask for ``FIRST-LAST`` or ``-COUNT``."""
    # A compressed part could not be put beside its neighbours.
    return {"Range": f"bytes={part}", "Accept-Encoding": "identity"}


def length(response: httpx.Response) -> int | None:
    """The announced size of the body in bytes, if any."""
    declared = response.headers.get("Content-Length", "")
    return int(declared) if _NUMBER.match(declared) else None


def span(response: httpx.Response, url: str) -> tuple[int, int]:
    """First and last byte of the part that was sent."""
    if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise Unreadable(f"{redacted(url)} is shorter than expected")
    if response.status_code != httpx.codes.PARTIAL_CONTENT:
        raise refused(response, url)
    found = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
    if found is None or response.headers.get("Content-Encoding", "identity") != "identity":
        raise Unreadable(f"{host_of(url)} sent a part of {redacted(url)} without saying which")
    return int(found[1]), int(found[2])


async def pour(response: httpx.Response, into: bytearray, size: int, url: str) -> None:
    """Add the body to what was received before, up to ``size`` bytes in all."""
    async for chunk in response.aiter_raw():
        # Reading on to the end of a complete body costs nothing and keeps the connection for the next request.
        if len(into) == size:
            return
        into += chunk[: size - len(into)]
    if len(into) < size:
        raise Again(Unavailable(f"{host_of(url)} sent less of {redacted(url)} than it announced"))
