from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from bisector.errors import HistoryUnavailable, UsageError
from bisector.history.database import Database, open_database
from bisector.history.sql import MOST_ROWS, ask
from bisector.results import Rows
from tests.fakes.clock import SteppingClock
from tests.history.schema import query
from tests.history.story import write_story

ENDLESS_ROWS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
ENDLESS_COUNT = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "history.db"
    await write_story(path)
    async with open_database(path) as database:
        yield database


class HastyClock(SteppingClock):
    """Seconds go by at every look."""

    def monotonic(self) -> float:
        self.now()
        return super().monotonic()


async def test_a_query_is_answered_with_the_names_of_its_columns(database: Database) -> None:
    rows = await ask(database, SteppingClock(), "SELECT arch, lost_at AS build FROM losses; -- a comment")
    assert rows == Rows(columns=("arch", "build"), rows=[("sm120", "0.27.0")])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1.5, NULL, 'text', X'00ff'",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1), (2)",
        "SELECT name, type FROM pragma_table_info('builds')",
        "PRAGMA table_list",
        "PRAGMA user_version",
        "EXPLAIN QUERY PLAN SELECT * FROM losses",
        "SELECT json_extract(document, '$.digest') FROM observations",
    ],
)
async def test_whatever_reads_is_answered(database: Database, sql: str) -> None:
    assert (await ask(database, SteppingClock(), sql)).rows


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM builds",
        "UPDATE runs SET outcome = 'x' RETURNING id",
        "WITH a AS (SELECT 1) INSERT INTO streams (source, first_seen_at) SELECT 'x', 'y' FROM a",
        "DROP VIEW losses",
        "UPDATE sqlite_master SET sql = ''",
        "CREATE TEMP TABLE mine (x)",
        "ATTACH 'other.db' AS other",
        "ATTACH 'file:other.db?mode=rwc' AS other",
        "DETACH main",
        "VACUUM INTO 'copy.db'",
        "PRAGMA query_only = OFF",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_journal_mode('delete')",
        "BEGIN",
        "SELECT load_extension('x')",
        "REINDEX",
        "ANALYZE",
        "SELECT 1; DELETE FROM builds",
        "",
        "-- nothing",
        "SELEC 1",
        "SELECT * FROM nowhere",
        "SELECT :missing",
        "SELECT '\udcff'",
        "SELECT '\0'",
        "SELECT zeroblob(1 << 30)",
    ],
)
async def test_whatever_does_not_read_is_refused_in_a_sentence(
    database: Database, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = query(database.path, "SELECT * FROM sqlite_schema"), query(database.path, "SELECT * FROM builds")
    with pytest.raises(UsageError, match=r"The query cannot be run|That is no query"):
        await ask(database, SteppingClock(), sql)
    after = query(database.path, "SELECT * FROM sqlite_schema"), query(database.path, "SELECT * FROM builds")
    assert before == after
    assert not (tmp_path / "other.db").exists()
    assert not (tmp_path / "copy.db").exists()


async def test_of_very_many_rows_the_first_are_given(database: Database) -> None:
    rows = await ask(database, SteppingClock(), ENDLESS_ROWS)
    assert (len(rows.rows), rows.rows[-1], rows.more) == (MOST_ROWS, (MOST_ROWS,), True)
    few = await ask(database, SteppingClock(), f"{ENDLESS_ROWS} LIMIT 3", most_rows=3)
    assert (few.rows, few.more) == ([(1,), (2,), (3,)], False)


async def test_a_query_that_takes_too_long_is_stopped(database: Database) -> None:
    with pytest.raises(UsageError, match="stopped after 90 seconds"):
        await ask(database, HastyClock(), ENDLESS_COUNT, longest_seconds=90)


async def test_a_query_whose_asker_has_left_is_stopped(database: Database) -> None:
    with anyio.fail_after(5):
        with anyio.move_on_after(0.2) as scope:
            await ask(database, SteppingClock(datetime(2026, 1, 1, tzinfo=UTC)), ENDLESS_COUNT)
        assert scope.cancelled_caught


async def test_damage_is_told_as_damage(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute("PRAGMA writable_schema = ON")
        await connection.execute("UPDATE sqlite_schema SET rootpage = 999999 WHERE name = 'posts'")
    with pytest.raises(HistoryUnavailable, match="is damaged"):
        await ask(database, SteppingClock(), "SELECT * FROM posts")


async def test_an_asker_sees_what_was_written_a_moment_ago(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute("UPDATE posts SET attempts = 77")
    assert (await ask(database, SteppingClock(), "SELECT DISTINCT attempts FROM posts")).rows == [(77,)]
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(database.reading_uri, uri=True).execute("DELETE FROM posts")
