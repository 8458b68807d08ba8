"""A question in SQL from anybody: it reads, once, not too much and not too long."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from typing import Final

from anyio import to_thread

from bisector.errors import UsageError
from bisector.history.database import Database
from bisector.history.faults import translated
from bisector.ports import Clock
from bisector.results import Rows

MOST_ROWS: Final = 10_000
LONGEST_SECONDS: Final = 10.0
_LARGEST_VALUE: Final = 16 << 20
_STEPS_BETWEEN_LOOKS: Final = 20_000
"""Instructions of SQLite's machine: well under a millisecond."""

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_ALLOWED_PRAGMAS = {
    *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"),
    *("user_version", "application_id"),
}
_FAULTS_OF_THE_FILE = {
    *(sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
}
"""Whatever else goes wrong is in what was asked."""

_HINT = 'Ask one SELECT, such as "SELECT * FROM losses"; `bisector history sql` cannot change anything.'


async def ask(
    database: Database,
    clock: Clock,
    query: str,
    *,
    most_rows: int = MOST_ROWS,
    longest_seconds: float = LONGEST_SECONDS,
) -> Rows:
    """The first rows that a query gives, on a connection of its own that cannot write.

    Raises:
        UsageError: It is no single query, would write or open another file, or takes too long.
        HistoryUnavailable: The file cannot be read.
    """
    given_up = threading.Event()
    deadline = clock.monotonic() + longest_seconds

    def in_thread() -> Rows:
        with translated(database.path), closing(sqlite3.connect(database.reading_uri, uri=True)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(
                lambda: given_up.is_set() or clock.monotonic() > deadline, _STEPS_BETWEEN_LOOKS
            )
            return _rows(connection, query, most_rows, longest_seconds)

    try:
        # Left behind when the task is cancelled, the thread looks at the event and ends.
        return await to_thread.run_sync(in_thread, abandon_on_cancel=True)
    finally:
        given_up.set()


def _rows(connection: sqlite3.Connection, query: str, most_rows: int, longest_seconds: float) -> Rows:
    try:
        with closing(connection.execute(query)) as cursor:
            if cursor.description is None:
                raise UsageError("That is no query: it gives no rows", hint=_HINT)
            rows = cursor.fetchmany(most_rows + 1)
            columns = tuple(column[0] for column in cursor.description)
    except (sqlite3.Warning, sqlite3.ProgrammingError, UnicodeEncodeError) as error:
        # What Python's own module finds: several statements, missing values, text that is not Unicode.
        raise UsageError(f"The query cannot be run: {error}", hint=_HINT) from error
    except sqlite3.Error as error:
        code = error.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise UsageError(
                f"The query was stopped after {longest_seconds:g} seconds",
                hint="Ask for less, or open a copy of the file.",
            ) from error
        if code in _FAULTS_OF_THE_FILE:
            raise
        raise UsageError(f"The query cannot be run: {error}", hint=_HINT) from error
    return Rows(columns=columns, rows=rows[:most_rows], more=len(rows) > most_rows)


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _by: str | None) -> int:
    """https://www.sqlite.org/c3ref/c_alter_table.html lists the actions and what comes with each."""
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # How SQLite declares a table such as pragma_table_info to itself; to write there is refused elsewhere.
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in _ALLOWED_PRAGMAS:
        # These take the name of a table, or no value at all; with one they would set something.
        takes_name = first not in {"user_version", "application_id"}
        return sqlite3.SQLITE_OK if takes_name or second is None else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_DENY
