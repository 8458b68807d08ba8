from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import aiosqlite
import pytest

from bisector.history.migrate import APPLICATION_ID, Migration, migrations, upgrade
from bisector.history.store import History
from bisector.model import Depth
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build, an_observation
from tests.history.schema import make_history, query, schema

NEWEST = len(migrations())


@pytest.fixture
async def fresh(tmp_path: Path) -> Path:
    path = tmp_path / "fresh.db"
    async with History.open(path, SteppingClock()):
        pass
    return path


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.number for migration in migrations()] == list(range(1, NEWEST + 1))


@pytest.mark.parametrize("version", range(NEWEST + 1))
async def test_a_file_of_every_version_upgrades_to_the_same_as_a_fresh_one(
    tmp_path: Path, fresh: Path, version: int
) -> None:
    path = tmp_path / "old.db"
    make_history(path, version)
    async with History.open(path, SteppingClock()) as history:
        await history.record(an_observation(), a_build("1.0"))
    assert schema(path) == schema(fresh)
    assert query(path, "PRAGMA user_version") == [{"user_version": NEWEST}]
    assert query(path, "PRAGMA foreign_key_check") == []


async def test_what_the_first_version_recorded_is_there_after_the_upgrade(tmp_path: Path) -> None:
    """Rows as version 1 wrote them, and as they are written today, end in the same views."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    deep, shallow = an_observation("sha256:one", "bf16_gemm", "fp8_gemm"), an_observation("sha256:two")
    shallow = replace(
        shallow,
        depth=Depth.NAMES,
        deep_gemm=replace(shallow.deep_gemm, headers=("impls/sm100_gemm.cuh", "impls/sm120_gemm.cuh", "scheduler.cuh")),
    )
    async with History.open(new, SteppingClock()) as history:
        await history.record(deep, a_build("1.0", "sha256:one"))
        await history.record(shallow, a_build("1.1", "sha256:two"))
    make_history(old, 1)
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("ATTACH ? AS new", (str(new),))
        for table in ("streams", "builds", "observations", "kernels", "packages"):
            (columns,) = connection.execute(
                "SELECT group_concat(name) FROM pragma_table_info(?, 'main')", (table,)
            ).fetchone()
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")  # noqa: S608
        connection.commit()
    async with History.open(old, SteppingClock()) as history:
        assert await history.known([a_build("1.0"), a_build("1.1")]) == {"1.0": deep, "1.1": shallow}
    for view in ("kernel_timeline", "latest_verdicts", "latest_observations", "build_timeline", "architectures"):
        rows = query(old, f"SELECT * FROM {view}")  # noqa: S608
        assert rows
        assert rows == query(new, f"SELECT * FROM {view}")  # noqa: S608
    assert query(old, "SELECT * FROM architectures EXCEPT SELECT * FROM counted_architectures") == []


async def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    broken = Migration(number=1, name="0001_broken.sql", sql="CREATE TABLE once (x);\nCREATE TABLE once (x);\n")
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            await upgrade(connection, (broken,))
    assert schema(path) == []
    assert query(path, "PRAGMA user_version") == [{"user_version": 0}]


async def test_a_migration_that_leaves_rows_pointing_nowhere_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    make_history(path, NEWEST)
    orphan = Migration(
        number=NEWEST + 1, name="orphan.sql", sql="INSERT INTO packages VALUES (7, 'torch', '==2.14.0');\n"
    )
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        with pytest.raises(sqlite3.IntegrityError, match=r"orphan\.sql"):
            await upgrade(connection, (orphan,))
    assert query(path, "SELECT * FROM packages") == []


def test_a_file_says_whose_it_is_and_keeps_a_write_ahead_log(fresh: Path) -> None:
    assert query(fresh, "PRAGMA application_id") == [{"application_id": APPLICATION_ID}]
    assert query(fresh, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]


def test_every_table_is_strict_and_every_table_and_view_says_what_it_is(fresh: Path) -> None:
    tables = query(fresh, "SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    assert {table["name"] for table in tables} == {
        *("streams", "builds", "untestable_builds", "observations", "kernels", "packages", "architectures", "layers"),
        *("runs", "run_steps", "boots", "benchmarks", "posts"),
    }
    assert {table["strict"] for table in tables} == {1}
    for entry in schema(fresh):
        if entry["type"] in {"table", "view"}:
            assert re.search(r"^    -- [A-Z].+[.)]$", entry["sql"], re.MULTILINE), entry["name"]


async def test_an_observation_is_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with History.open(path, SteppingClock()) as history:
        await history.record(an_observation(), None)
    with closing(sqlite3.connect(path)) as connection:
        for change in ("document = '{}'", "digest = 'other'", "depth = 'names'", "probe_version = 7"):
            with pytest.raises(sqlite3.IntegrityError, match="an observation is never changed"):
                connection.execute(f"UPDATE observations SET {change}")  # noqa: S608


async def test_what_belongs_to_an_observation_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with History.open(path, SteppingClock()) as history:
        await history.record(an_observation("sha256:one", "bf16_gemm"), None)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM observations")
        connection.commit()
    assert query(path, "SELECT * FROM kernels") == query(path, "SELECT * FROM packages") == []
