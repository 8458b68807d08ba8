"""History files of any version, and what a plain SQLite client sees in one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bisector.history.migrate import migrations


def make_history(path: Path, version: int) -> None:
    """A history file as the bisector of that schema version left it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for migration in migrations()[:version]:
            connection.executescript(f"BEGIN; {migration.sql}; PRAGMA user_version = {migration.number}; COMMIT;")


def query(path: Path, sql: str, *values: object) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


def schema(path: Path) -> list[dict[str, Any]]:
    return query(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
