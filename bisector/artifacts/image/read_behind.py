"""Decompressing one piece of a layer while the next one is still coming in.

Decompressing and hashing let other threads run, so a thread of its own makes reading about as fast as the slower of
network and decoder, instead of as slow as both together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import anyio.to_thread

from bisector.artifacts.image.layer import LayerReading

_MOST_WAITING: Final = 2
"""Pieces that may have come in and wait for the decoder."""


async def read_behind(pieces: AsyncIterator[bytes], reading: LayerReading) -> None:
    """Feed a layer's pieces to its reading, until they end or it is satisfied; a few may be read in vain.

    Raises:
        Unreadable: This is no layer, or one that an engine would refuse.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="layer")
    waiting: deque[Future[None]] = deque()
    try:
        async for piece in pieces:
            while waiting and (len(waiting) >= _MOST_WAITING or waiting[0].done()):
                await _done(waiting.popleft())
            waiting.append(thread.submit(reading.feed, piece))
            if reading.satisfied:
                break
        for feeding in waiting:
            await _done(feeding)
    finally:
        # What is still being fed when nobody waits for it any more is soon over.
        thread.shutdown(wait=False, cancel_futures=True)


async def _done(feeding: Future[None]) -> None:
    if not feeding.done():
        await anyio.to_thread.run_sync(feeding.result)
    feeding.result()
