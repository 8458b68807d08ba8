"""A ledger on the move: out of one history file, one row a line, and into another."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import BinaryIO, Final

import aiosqlite
import msgspec
from anyio import to_thread

from bisector.errors import Unreadable
from bisector.history.codec import decode, encode_time
from bisector.history.database import Database, Value
from bisector.history.faults import translated
from bisector.history.migrate import migrations
from bisector.history.observations import store_parts
from bisector.history.portable import OBSERVATIONS, TABLES, PortableTable
from bisector.ports import Clock

_LONGEST_LINE: Final = 64 << 20
_LINES_AT_ONCE: Final = 500
"""Lines of one transaction: others get their turn between two of them."""


class _Header(msgspec.Struct, frozen=True):
    ledger: str
    schema_version: int
    exported_at: str


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row, or the last line, which says how many rows there were."""

    table: str = ""
    row: dict[str, str | int | float | None] = {}
    rows: int | None = None


_encoder = msgspec.json.Encoder()
_line = msgspec.json.Decoder(_Line)
_TABLES = {table.name: table for table in TABLES}


async def export(database: Database, clock: Clock, file: BinaryIO) -> Mapping[str, int]:
    """Write everything that is evidence or was concluded, as it stands at one moment, while others go on writing.

    JSON lines: a header with the schema's version, then a row a line with its table, then how many rows there were.

    Returns:
        How many rows of each table.

    Raises:
        HistoryUnavailable: The history cannot be read.
    """
    exported_at = encode_time(clock.now())

    def in_thread() -> Mapping[str, int]:
        with (
            translated(database.path),
            closing(sqlite3.connect(database.reading_uri, uri=True, isolation_level=None)) as connection,
        ):
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            return _write(connection, file, exported_at)

    return await to_thread.run_sync(in_thread)


def _write(connection: sqlite3.Connection, file: BinaryIO, exported_at: str) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    ((version,),) = connection.execute("PRAGMA user_version")
    file.write(_encoder.encode(_Header(ledger="bisector", schema_version=version, exported_at=exported_at)) + b"\n")
    for table in TABLES:
        for row in connection.execute(table.select):
            file.write(_encoder.encode(_Line(table=table.name, row=dict(row))) + b"\n")
            counts[table.name] += 1
    file.write(_encoder.encode(_Line(rows=counts.total())) + b"\n")
    return counts


async def import_rows(database: Database, file: BinaryIO) -> Mapping[str, int]:
    """Add what was exported elsewhere; a second time changes nothing.

    Whenever this is interrupted, what was added is whole by itself, and importing again adds the rest.

    Returns:
        How many rows of each table there were in the export, new here or not.

    Raises:
        Unreadable: That is no export, or one of a newer version, or it is damaged, or ends early.
        HistoryUnavailable: The history cannot be written.
    """
    counts: Counter[str] = Counter()
    version = _read_header(await to_thread.run_sync(file.readline, _LONGEST_LINE))
    number = 1
    while lines := await to_thread.run_sync(_read_lines, file, number):
        async with database.writing() as connection:
            for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - counting goes on where it stopped
                if line.rows is not None:
                    if line.rows != counts.total():
                        raise Unreadable(f"The export says it has {line.rows} rows, and has {counts.total()}")
                    return counts
                await _merge(connection, line, number, complete=version == len(migrations()))
                counts[line.table] += 1
    raise Unreadable(
        f"The export ends early, after {counts.total()} rows",
        hint="Import a whole copy; what was read of this is kept.",
    )


def _read_header(line: bytes) -> int:
    newest = len(migrations())
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.MsgspecError as error:
        raise Unreadable("That is no export of a history", hint="Make one with `bisector history export`.") from error
    if header.ledger != "bisector" or header.schema_version < 1:
        raise Unreadable("That is no export of a history", hint="Make one with `bisector history export`.")
    if header.schema_version > newest:
        raise Unreadable(
            f"The export is of version {header.schema_version}, and this bisector knows versions up to {newest}",
            hint="Upgrade bisector; nothing was changed.",
        )
    return header.schema_version


def _read_lines(file: BinaryIO, number: int) -> list[_Line]:
    lines: list[_Line] = []
    while len(lines) < _LINES_AT_ONCE and (text := file.readline(_LONGEST_LINE)):
        number += 1
        try:
            lines.append(_line.decode(text))
        except msgspec.MsgspecError as error:
            raise _damaged(number, str(error)) from error
    return lines


async def _merge(connection: aiosqlite.Connection, line: _Line, number: int, *, complete: bool) -> None:
    table = _TABLES.get(line.table)
    if table is None:
        raise _damaged(number, f"there is no table {line.table!r}")
    columns = await _columns(connection, table)
    if not line.row.keys() <= columns or (complete and line.row.keys() != columns):
        raise _damaged(number, f"these are not the columns of {table.name}")
    row: dict[str, Value] = dict.fromkeys(columns) | line.row
    try:
        for statement in table.merge:
            cursor = await connection.execute(statement, row)
        if table is OBSERVATIONS and cursor.rowcount == 1 and (observation := decode(str(row["document"]))):
            await store_parts(connection, cursor.lastrowid, observation)
    except (sqlite3.IntegrityError, UnicodeEncodeError) as error:
        raise _damaged(number, str(error)) from error


async def _columns(connection: aiosqlite.Connection, table: PortableTable) -> set[str]:
    async with connection.execute(f"SELECT * FROM ({table.select}) LIMIT 0") as cursor:  # noqa: S608 - our own
        return {column[0] for column in cursor.description}


def _damaged(number: int, why: str) -> Unreadable:
    return Unreadable(f"Line {number} of the export cannot be understood: {why}")
