"""Bodies too large to hold, read as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

import anyio
import httpx

from bisector.errors import Unavailable
from bisector.http.failures import Again, host_of, translated

PIECE: Final = 1 << 19
"""Bytes of a body that are handed on at once."""


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
    """The body in pieces of at least ``PIECE`` bytes but the last, for at most ``within`` seconds.

    What came before a connection broke is not lost: it is the last piece before the error.
    """
    end = anyio.current_time() + within
    # A piece passes through many hands on its way, so few large ones cost a fraction of many small ones.
    held: list[bytes] = []
    size = 0
    try:
        with translated(url):
            async for received in response.aiter_raw():
                held.append(received)
                size += len(received)
                if size >= PIECE:
                    piece = b"".join(held)
                    held, size = [], 0
                    yield piece
                if anyio.current_time() > end:
                    raise Unavailable(f"{host_of(url)} is too slow: no whole answer in {within:.0f} s")
    except Again as again:
        if held:
            yield b"".join(held)
        raise again.error from again.__cause__
    if held:
        yield b"".join(held)
