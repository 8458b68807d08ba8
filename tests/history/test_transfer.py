from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.errors import Unreadable
from bisector.history.database import open_database
from bisector.history.migrate import migrations
from bisector.history.portable import TABLES
from bisector.history.store import History
from bisector.history.transfer import export, import_rows
from bisector.model import Answer, Depth, Digest, Verdict
from tests.fakes.clock import SteppingClock
from tests.history.observing import OBSERVATIONS, a_build, an_observation
from tests.history.schema import query
from tests.history.story import write_story

VIEWS = (
    *("build_timeline", "kernel_operations", "latest_verdicts", "losses", "run_history", "boot_results"),
    *("benchmark_trend", "kernel_timeline", "latest_observations"),
)
NUMBERS = {"stream_id", "build_id", "observation_id"}


async def exported(path: Path) -> bytes:
    file = io.BytesIO()
    async with open_database(path) as database:
        await export(database, SteppingClock(), file)
    return file.getvalue()


async def imported(path: Path, ledger: bytes) -> dict[str, int]:
    async with open_database(path) as database:
        return dict(await import_rows(database, io.BytesIO(ledger)))


def content(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All that travels, and all that is seen of it, whatever numbers the rows have here."""
    tables = {table.name: query(path, table.select) for table in TABLES}
    views = {
        view: [
            {name: value for name, value in row.items() if name not in NUMBERS}
            for row in query(path, f"SELECT * FROM {view}")  # noqa: S608
        ]
        for view in VIEWS
    }
    return tables | views


def as_sets(path: Path) -> dict[str, list[str]]:
    return {name: sorted(json.dumps(row) for row in rows) for name, rows in content(path).items()}


async def test_a_ledger_arrives_whole_and_the_second_time_changes_nothing(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    await write_story(here)
    ledger = await exported(here)
    for _ in range(2):
        counts = await imported(there, ledger)
        assert content(there) == content(here)
    assert counts == {table.name: len(query(here, table.select)) for table in TABLES}
    assert all(counts.values())
    assert (await exported(there)) == ledger
    assert query(there, "PRAGMA foreign_key_check") == []


async def test_every_line_is_json_under_a_header_and_the_last_counts_them(tmp_path: Path) -> None:
    await write_story(tmp_path / "here.db")
    header, *rows, end = (json.loads(line) for line in (await exported(tmp_path / "here.db")).splitlines())
    assert header == {
        "ledger": "bisector",
        "schema_version": len(migrations()),
        "exported_at": "2026-11-29T05:31:00.000000Z",
    }
    assert all(row.keys() == {"table", "row"} for row in rows)
    assert end == {"rows": len(rows)}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["see", "record", "give up", "arrange"]),
        st.lists(
            st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from("123")),
            min_size=1,
            max_size=3,
            unique_by=lambda it: it[0],
        ),
    ),
    max_size=6,
)


async def live(path: Path, steps: Sequence[tuple[str, Sequence[tuple[str, str | None]]]], clock: SteppingClock) -> None:
    async with History.open(path, clock) as history:
        for what, named in steps:
            builds = [
                replace(a_build(name, digest), published_at=clock.now() if digest else None) for name, digest in named
            ]
            match what:
                case "see":
                    await history.see(builds)
                case "record":
                    await history.record(an_observation(builds[0].digest or "0", "gemm"), builds[0])
                case "give up":
                    await history.give_up(builds[0], Verdict(answer=Answer.UNTESTABLE, reason=str(clock.now())))
                case _:
                    await history.arrange(builds)


@given(STEPS, STEPS)
@settings(max_examples=25, deadline=None)
async def test_two_machines_that_tell_each_other_everything_know_the_same(mine: Any, yours: Any) -> None:
    """Both had lives of their own; nothing either knew is lost, no build is there twice, and no more comes of it."""
    clock = SteppingClock()
    with tempfile.TemporaryDirectory() as directory:
        here, there = Path(directory) / "here.db", Path(directory) / "there.db"
        await live(here, mine, clock)
        await live(there, yours, clock)
        before = {(row["build"], row["digest"]) for path in (here, there) for row in query(path, TABLES[1].select)}
        await imported(there, await exported(here))
        after = [(row["build"], row["digest"]) for row in query(there, TABLES[1].select)]
        assert len(after) == len(set(after))
        assert set(after) >= {(name, digest) for name, digest in before if digest}
        assert {name for name, _ in after} == {name for name, _ in before}
        settled = as_sets(there)
        await imported(there, await exported(here))
        await imported(there, await exported(there))
        assert as_sets(there) == settled
        if not any(digest is None for _, digest in before):
            await imported(here, await exported(there))
            assert as_sets(here)["builds"] == settled["builds"]
            # Who read the same first is told by each as it was there.
            readings = "SELECT digest, depth, probe_version, document FROM observations ORDER BY digest"
            assert query(here, readings) == query(there, readings)


@given(st.lists(OBSERVATIONS, max_size=3, unique_by=lambda it: (it.digest, it.depth, it.probe_version)))
@settings(max_examples=30, deadline=None)
async def test_any_observation_travels(observations: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        here, there = Path(directory) / "here.db", Path(directory) / "there.db"
        async with History.open(here, SteppingClock()) as history:
            for observation in observations:
                await history.record(observation, a_build("1.0"))
        await imported(there, await exported(here))
        for table in ("observations", "kernels", "packages", "architectures"):
            assert query(there, f"SELECT * FROM {table}") == query(here, f"SELECT * FROM {table}")  # noqa: S608


async def test_a_run_that_ended_elsewhere_ends_here_too(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    await write_story(here)
    early = await exported(here)
    await imported(there, early)
    async with open_database(here) as database, database.writing() as connection:
        await connection.execute(
            "UPDATE runs SET state = 'failed', ended_at = '2026-11-30T00:00:00.000000Z' WHERE ended_at IS NULL"
        )
    for ledger in (await exported(here), early):
        await imported(there, ledger)
        assert content(there)["runs"] == content(here)["runs"]


def changed(ledger: bytes, number: int, **changes: Any) -> bytes:
    lines = ledger.splitlines(keepends=True)
    lines[number] = json.dumps(json.loads(lines[number]) | changes).encode() + b"\n"
    return b"".join(lines)


@pytest.fixture
async def ledger(tmp_path: Path) -> bytes:
    path = tmp_path / "source.db"
    async with History.open(path, SteppingClock()) as history:
        await history.see([a_build("1.0", "sha256:one"), a_build("1.1", "sha256:two")])
        await history.record(an_observation(), a_build("1.0", "sha256:one"))
    return await exported(path)


def without(ledger: bytes, number: int) -> bytes:
    lines = ledger.splitlines(keepends=True)
    del lines[number]
    return b"".join(lines)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        pytest.param(lambda _: b"", "no export", id="empty"),
        pytest.param(lambda _: b"PK\x03\x04", "no export", id="a wheel"),
        pytest.param(
            lambda it: it.replace(b'"ledger":"bisector"', b'"ledger":"another"'), "no export", id="another program's"
        ),
        pytest.param(lambda it: changed(it, 0, schema_version=999), "version 999", id="newer"),
        pytest.param(lambda it: without(it, -1), "ends early, after 4 rows", id="no end"),
        pytest.param(lambda it: it[:-30], "Line 5 of the export", id="torn"),
        pytest.param(lambda it: without(it, 3), "says it has 4 rows, and has 3", id="a row is missing"),
        pytest.param(lambda it: changed(it, 1, table="sqlite_schema"), "Line 2 .* no table", id="unknown table"),
        pytest.param(lambda it: changed(it, 1, row={"source": "x"}), "Line 2 .* columns", id="other columns"),
        pytest.param(lambda it: changed(it, 1, row={"source": ["x"]}), "Line 2 ", id="no plain value"),
        pytest.param(
            lambda it: changed(it, 1, row={"source": "x", "first_seen_at": "never", "last_listed_at": None}),
            "Line 2 .* CHECK",
            id="no time",
        ),
    ],
)
async def test_an_export_that_is_none_is_told_with_its_line(
    tmp_path: Path, ledger: bytes, damage: Any, sentence: str
) -> None:
    path = tmp_path / "target.db"
    with pytest.raises(Unreadable, match=sentence):
        await imported(path, damage(ledger))
    assert query(path, "PRAGMA foreign_key_check") == []
    await imported(path, ledger)
    assert content(path) == content(tmp_path / "source.db")


async def test_an_export_is_of_one_moment(tmp_path: Path) -> None:
    """While it is written, others go on; what they write meanwhile is not in it by half."""
    path = tmp_path / "here.db"
    await write_story(path)
    expected = await exported(path)

    class Interrupted(io.BytesIO):
        def write(self, data: Any, /) -> int:
            if b'"observations"' in data:
                for build in query(path, "SELECT id FROM builds LIMIT 1"):
                    query_and_commit(path, "DELETE FROM builds WHERE id = ?", build["id"])
            return super().write(data)

    file = Interrupted()
    async with open_database(path) as database:
        await export(database, SteppingClock(), file)
    assert file.getvalue() == expected
    assert (await exported(path)) != expected


def query_and_commit(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(sql, values)
        connection.commit()


async def test_an_observation_already_known_stays_as_it_is(tmp_path: Path, ledger: bytes) -> None:
    path = tmp_path / "target.db"
    async with History.open(path, SteppingClock()) as history:
        await history.record(replace(an_observation(), packages=()), None)
        await imported(path, ledger)
        known = await history.observation(Digest("sha256:one"), Depth.KERNELS, version=1)
    assert known == replace(an_observation(), packages=())
    assert query(path, "SELECT * FROM packages") == []
