from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bisector.history.store import History
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build
from tests.history.schema import query
from tests.history.writer import KERNELS_EACH

WRITER = Path(__file__).with_name("writer.py")


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_sound(path: Path) -> None:
    """Nothing is damaged, and no transaction is there by half."""
    assert query(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert query(path, "PRAGMA foreign_key_check") == []
    halves = query(
        path,
        """
        SELECT observations.digest FROM observations
        LEFT JOIN builds ON builds.digest = observations.digest
        WHERE builds.id IS NULL OR ? <> (SELECT count(*) FROM kernels WHERE observation_id = observations.id)
        """,
        KERNELS_EACH,
    )
    assert halves == []
    assert query(path, "SELECT * FROM architectures EXCEPT SELECT * FROM counted_architectures") == []


def written(path: Path) -> set[str]:
    return {row["build"] for row in query(path, "SELECT build FROM latest_observations")}


@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_make_the_same_file_at_once_lose_nothing(tmp_path: Path, attempt: int) -> None:
    path = tmp_path / f"new{attempt}" / "history.db"
    writers = [start(path, name, 150) for name in ("cron", "person", "other")]
    outcomes = [(*writer.communicate(), writer.returncode) for writer in writers]
    assert [(errors, code) for _, errors, code in outcomes] == [("", 0)] * 3
    said = {line for output, _, _ in outcomes for line in output.splitlines()}
    assert len(said) == 450
    assert written(path) == said
    assert {row["build"] for row in query(path, "SELECT build FROM run_steps")} == said
    assert [row["state"] for row in query(path, "SELECT state FROM runs")] == ["finished"] * 3
    assert_sound(path)


async def test_a_killed_writer_leaves_a_sound_file_with_all_it_said(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    said: set[str] = set()
    for attempt, lines in enumerate((0, 1, 8, 30, 61)):
        writer = start(path, f"run{attempt}", 100_000)
        assert writer.stdout is not None
        said |= {writer.stdout.readline().strip() for _ in range(lines)}
        writer.kill()
        rest, _ = writer.communicate()
        said |= set(rest.rpartition("\n")[0].splitlines())
        async with History.open(path, SteppingClock()) as history:
            assert set(await history.known([a_build(build) for build in said])) == said
        assert {row["build"] for row in query(path, "SELECT build FROM run_steps")} >= said
        assert {row["state"] for row in query(path, "SELECT state FROM runs")} <= {"running"}
        assert_sound(path)
