"""Bodies too large to hold, read as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass

import anyio
import httpx

from bisector.errors import Unavailable
from bisector.http.failures import Again, host_of, translated


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """An answer whose body has not been read yet.

    Attributes:
        status: The HTTP status; never one that stands for a passing failure.
        headers: By lower-case name.
        chunks: The body as the server sent it.
        length: Its announced size in bytes, if any.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    length: int | None


async def pieces(response: httpx.Response, url: str, *, within: float) -> AsyncGenerator[bytes, None]:
    """The body, piece by piece, for at most ``within`` seconds."""
    end = anyio.current_time() + within
    try:
        with translated(url):
            async for piece in response.aiter_raw():
                if anyio.current_time() > end:
                    raise Unavailable(f"{host_of(url)} is too slow: no whole answer in {within:.0f} s")
                yield piece
    except Again as again:
        raise again.error from again.__cause__
