"""Transactions that wait for other processes and leave nothing half done."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import aiosqlite
import anyio

from bisector.history.faults import is_busy

T = TypeVar("T")

BUSY_SECONDS = 2.0
"""How long SQLite itself waits for a lock; a cancelled task cannot leave earlier."""

_PAUSES = (0.02, 0.05, 0.1, 0.2, *[0.5] * 24)
"""Seconds between attempts after that: with SQLite's own waiting about a minute in all."""


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Do it, again and again while another process is in the way.

    SQLite does not always wait by itself: not while another process switches the journal or recovers it. The loop is
    bounded by hand, because a library's would log "database is locked" at every turn.

    Raises:
        sqlite3.OperationalError: Still locked after about a minute, or anything else that went wrong.
    """
    for pause in _PAUSES:
        try:
            return await attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        await anyio.sleep(pause)
    return await attempt()


@asynccontextmanager
async def transaction(connection: aiosqlite.Connection) -> AsyncIterator[None]:
    """A write transaction: whole at the end of the block, or undone, also on cancellation.

    It takes the write lock at once. One that began by reading could not be made to wait for it.
    """
    try:
        await patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
        yield
        await connection.commit()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await connection.rollback()
        raise
