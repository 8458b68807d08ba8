from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisector.errors import HistoryUnavailable
from bisector.history.database import open_database
from bisector.history.pruning import prune
from bisector.history.store import History
from bisector.model import Depth
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build, an_observation
from tests.history.schema import query
from tests.history.story import write_story
from tests.history.test_transfer import content

LATER = datetime(2027, 1, 1, tzinfo=UTC)
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
KEPT = ("builds", "boots", "benchmarks", "losses", "latest_verdicts", "kernel_operations", "latest_observations")


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    await write_story(path)
    return path


async def test_a_trial_says_what_would_go_and_leaves_it(path: Path) -> None:
    before = content(path)
    async with open_database(path) as database:
        freed = await prune(database, before=LATER, dry_run=True)
    assert {kind.what: kind.rows for kind in freed} == {
        "what layers of images hold": 1,
        "readings that a deeper or newer one of the same content answers for": 1,
        "runs that have ended": 2,
        "posts that were sent": 1,
    }
    assert all(kind.bytes > 0 for kind in freed)
    assert content(path) == before


async def test_what_goes_is_what_was_said_and_no_answer_changes(path: Path) -> None:
    before = content(path)
    async with open_database(path) as database:
        said = await prune(database, before=LATER, dry_run=True)
        assert await prune(database, before=LATER, dry_run=False) == said
        again = await prune(database, before=LATER, dry_run=False)
    after = content(path)
    assert {kind.rows for kind in again} == {0}
    assert {name: after[name] for name in KEPT} == {name: before[name] for name in KEPT}
    assert query(path, "SELECT * FROM layers") == []
    assert [run["state"] for run in after["runs"]] == ["running"]
    assert [post["receiver"] for post in after["posts"]] == ["chat"]
    assert len(after["observations"]) == len(before["observations"]) - 1
    assert query(path, "PRAGMA foreign_key_check") == []
    assert query(path, "SELECT * FROM architectures EXCEPT SELECT * FROM counted_architectures") == []


async def test_what_is_newer_stays(path: Path) -> None:
    before = content(path)
    async with open_database(path) as database:
        freed = await prune(database, before=EARLIER, dry_run=False)
    assert {kind.rows for kind in freed} == {0}
    assert content(path) == before


@pytest.mark.parametrize(
    ("readings", "left"),
    [
        ([(Depth.NAMES, 1), (Depth.KERNELS, 1)], [("kernels", 1)]),
        ([(Depth.NAMES, 2), (Depth.KERNELS, 1)], [("names", 2), ("kernels", 1)]),
        ([(Depth.KERNELS, 1), (Depth.KERNELS, 2), (Depth.NAMES, 1)], [("kernels", 2)]),
        ([(Depth.NAMES, 1), (Depth.NAMES, 2)], [("names", 2)]),
    ],
)
async def test_a_reading_goes_only_when_another_answers_all_it_answers(
    tmp_path: Path, readings: list[tuple[Depth, int]], left: list[tuple[str, int]]
) -> None:
    path = tmp_path / "readings.db"
    async with History.open(path, SteppingClock()) as history:
        for depth, version in readings:
            await history.record(an_observation(depth=depth, version=version), a_build("1.0"))
        await prune(history.database, before=LATER, dry_run=False)
    rows = query(path, "SELECT depth, probe_version FROM observations ORDER BY id")
    assert [(row["depth"], row["probe_version"]) for row in rows] == left


async def test_the_space_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "big.db"
    async with History.open(path, SteppingClock()) as history:
        async with history.database.writing() as connection:
            await connection.execute(
                "INSERT INTO layers VALUES ('sha256:a', 'k', 0, '2026-01-01T00:00:00.000000Z', zeroblob(5000000))"
            )
        (freed, *_) = await prune(history.database, before=LATER, dry_run=False)
        assert freed.bytes == 5_000_000
    assert path.stat().st_size < 1_000_000


async def test_a_history_that_can_only_be_read_is_not_pruned(path: Path) -> None:
    async with open_database(path) as database:
        database.writable = False
        with pytest.raises(HistoryUnavailable, match="can only be read"):
            await prune(database, before=LATER, dry_run=False)
