"""What SQLite reports, told as sentences: the one place where its exceptions become bisector's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import HistoryUnavailable

_PRIMARY = 0xFF
"""The low byte of an extended result code is the kind of failure: https://www.sqlite.org/rescode.html"""


@dataclass(frozen=True, slots=True)
class _Fault:
    """How a sentence about the file ends, and what to do."""

    what: str
    hint: str


_FAULTS: Mapping[int, _Fault] = {
    sqlite3.SQLITE_NOTADB: _Fault(
        "is not a database", "Nothing was written to it. Name another file with --db, or move it away."
    ),
    sqlite3.SQLITE_CORRUPT: _Fault(
        "is damaged", "Move it away and restore a copy, or save what can be read with `sqlite3 FILE .recover`."
    ),
    sqlite3.SQLITE_FULL: _Fault(
        "cannot grow: the disk is full", "Free some space and run again; everything recorded before is kept."
    ),
    sqlite3.SQLITE_READONLY: _Fault(
        "can only be read", "Make it and its directory writable, or name another file with --db."
    ),
    sqlite3.SQLITE_CANTOPEN: _Fault(
        "cannot be opened", "Check that its directory exists and may be entered, or name another file with --db."
    ),
    sqlite3.SQLITE_PERM: _Fault("may not be opened", "Check who owns it, or name another file with --db."),
    sqlite3.SQLITE_BUSY: _Fault(
        "is held by another program", "Wait until that program has ended, then run again; what was recorded is kept."
    ),
    sqlite3.SQLITE_PROTOCOL: _Fault(
        "lies on a drive that cannot lock files", "Keep it on a local disk: name another file with --db."
    ),
    sqlite3.SQLITE_IOERR: _Fault(
        "cannot be read or written", "Check the disk and its free space, and keep the file on a local disk."
    ),
}
_LOCKING = {sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_UNLOCK}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection stood in the way, so that the same statement may succeed later."""
    return _code(error) & _PRIMARY in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn every error of SQLite, and of the operating system, into one about the history file.

    Raises:
        HistoryUnavailable: In place of what was raised within.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(path, error) from error
    except OSError as error:
        raise HistoryUnavailable(f"The history file {path} cannot be used: {error.strerror or error}.") from error


def _explained(path: Path, error: sqlite3.Error) -> HistoryUnavailable:
    code = _code(error)
    kind = sqlite3.SQLITE_PROTOCOL if code in _LOCKING else code & _PRIMARY
    fault = _FAULTS.get(kind)
    if fault is None:
        return HistoryUnavailable(f"The history file {path} cannot be used: {error}.")
    return HistoryUnavailable(f"The history file {path} {fault.what} ({error}).", hint=fault.hint)


def _code(error: sqlite3.Error) -> int:
    # Errors that Python itself raises, such as for a closed connection, carry no code of SQLite's.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
