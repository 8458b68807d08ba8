"""The history file as something open: found, checked, brought to the newest schema, shared and closed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import aiosqlite
import anyio
from anyio import to_thread

from bisector.errors import HistoryUnavailable
from bisector.history.faults import translated
from bisector.history.migrate import APPLICATION_ID, Migration, migrations, upgrade
from bisector.history.transaction import BUSY_SECONDS, patiently, transaction

Value: TypeAlias = str | int | float | bytes | None
"""What SQLite can hold."""

Values: TypeAlias = Mapping[str, Value]
"""What a statement's ``:names`` stand for."""

Row: TypeAlias = tuple[Value, ...]

Table: TypeAlias = tuple[tuple[str, ...], list[Row]]
"""The names of the columns, and the rows."""

_STATE = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
"""
"""In one statement, so that another process's first migration is seen whole or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """How the file can be opened, and how it can be opened to be read only."""

    uri: str
    reading_uri: str
    writable: bool


class Database:
    """One connection to the history file, which its tasks use in turn and other processes share.

    Attributes:
        path: The file.
        writable: False when the file, its directory or its drive only lets itself be read.
        reading_uri: What SQLite opens for whoever wants a connection of their own that only reads.
    """

    def __init__(self, connection: aiosqlite.Connection, path: Path, *, reading_uri: str, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self.reading_uri = reading_uri
        self._connection = connection
        # A connection has one transaction at a time, so its tasks take turns, readers too: what a reader is told must
        # not be undone afterwards.
        self._turn = anyio.Lock()

    async def fetch(self, sql: str, values: Values) -> list[Row]:
        """The rows a query gives.

        Raises:
            HistoryUnavailable: It cannot be read.
        """
        async with self._turn:
            with translated(self.path):
                return await patiently(lambda: _rows(self._connection, sql, values))

    async def table(self, sql: str, values: Values) -> Table:
        """The rows a query gives, and what its columns are called.

        Raises:
            HistoryUnavailable: It cannot be read.
        """
        async with self._turn:
            with translated(self.path):
                return await patiently(lambda: _table(self._connection, sql, values))

    async def vacuum(self) -> None:
        """Give the space of deleted rows back to the disk; waits for whoever reads.

        Raises:
            HistoryUnavailable: It cannot be written, or there is no room for the copy this makes.
        """
        async with self._turn:
            with translated(self.path):
                await patiently(lambda: self._connection.execute("VACUUM"))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[aiosqlite.Connection]:
        """The connection, in a transaction that is whole at the end of the block or undone.

        Raises:
            HistoryUnavailable: It cannot be written.
        """
        if not self.writable:
            raise HistoryUnavailable(
                f"The history file {self.path} can only be read.",
                hint="Make it and its directory writable, or name another file with --db.",
            )
        async with self._turn:
            with translated(self.path):
                async with transaction(self._connection):
                    yield self._connection


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Database]:
    """Open the file, made and upgraded where needed; closed, with its thread ended, however the block ends.

    Raises:
        HistoryUnavailable: It cannot be opened, or is not bisector's, or is of a newer version; then nothing was
            written.
    """
    with translated(path):
        access = await to_thread.run_sync(_look_at, path)
        steps = await to_thread.run_sync(migrations)
        with anyio.CancelScope(shield=True):
            # A connection that was being made when the task was cancelled would be nobody's to close.
            connection = await aiosqlite.connect(access.uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        with translated(path):
            await _make_ready(connection, path, steps, writable=access.writable)
        yield Database(connection, path, reading_uri=access.reading_uri, writable=access.writable)
    finally:
        with anyio.CancelScope(shield=True), translated(path):
            await connection.close()


def _look_at(path: Path) -> _Access:
    if path.is_dir():
        raise HistoryUnavailable(
            f"The history file {path} is a directory.", hint=f"Name a file in it: --db {path / 'history.db'}."
        )
    file = path.resolve()
    address = f"file:{quote(os.fsencode(file))}"
    reading = f"{address}?mode=ro"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        return _Access(uri=f"{address}?mode=rwc", reading_uri=reading, writable=True)
    # SQLite also writes two files beside it, so the directory counts: https://www.sqlite.org/wal.html#readonly
    room = os.access(file.parent, os.W_OK | os.X_OK, effective_ids=True)
    if room and os.access(file, os.W_OK, effective_ids=True):
        return _Access(uri=f"{address}?mode=rw", reading_uri=reading, writable=True)
    # Without those files and without a place for them, SQLite reads only what it is told nobody will change. A writer
    # that starts meanwhile makes this reader see old rows, or a fault that is told as one.
    shared = room or file.with_name(file.name + "-wal").exists()
    reading += "" if shared else "&immutable=1"
    return _Access(uri=reading, reading_uri=reading, writable=False)


async def _make_ready(
    connection: aiosqlite.Connection, path: Path, steps: tuple[Migration, ...], *, writable: bool
) -> None:
    version = await patiently(lambda: _checked_version(connection, path, newest=len(steps)))
    if writable:
        await patiently(lambda: connection.execute_fetchall("PRAGMA journal_mode = WAL"))
        if version < len(steps):
            await upgrade(connection, steps)
    elif version < len(steps):
        raise HistoryUnavailable(
            f"The history file {path} is of version {version}, must be upgraded to {len(steps)}, and can only be read.",
            hint="Let someone who may write it run `bisector builds` once, or name another file with --db.",
        )
    # A power cut may undo the last transactions, never damage the file: https://www.sqlite.org/pragma.html
    await connection.execute("PRAGMA synchronous = NORMAL")
    await connection.execute("PRAGMA foreign_keys = ON")


async def _checked_version(connection: aiosqlite.Connection, path: Path, *, newest: int) -> int:
    ((application, version, objects),) = await connection.execute_fetchall(_STATE)
    ours = application == APPLICATION_ID
    if (ours or application == 0) and version > newest:
        raise HistoryUnavailable(
            f"The history file {path} is of version {version}, and this bisector knows versions up to {newest}.",
            hint="Upgrade bisector, or name another file with --db; nothing was changed.",
        )
    if not ours and (application or objects):
        raise HistoryUnavailable(
            f"The history file {path} is the database of another program.",
            hint="Name another file with --db; nothing was changed.",
        )
    return int(version)


async def _rows(connection: aiosqlite.Connection, sql: str, values: Values) -> list[Row]:
    return [tuple(row) for row in await connection.execute_fetchall(sql, values)]


async def _table(connection: aiosqlite.Connection, sql: str, values: Values) -> Table:
    async with connection.execute(sql, values) as cursor:
        rows = [tuple(row) for row in await cursor.fetchall()]
        return tuple(column[0] for column in cursor.description), rows
