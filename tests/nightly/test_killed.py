from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly.conftest import LOSS, Cron, LabClock, evening

MOST = 60


def process(cron: Cron, death: int, *arguments: str) -> subprocess.Popen[str]:
    command = ["--config", str(cron.write_config()), "--db", str(cron.db), "nightly", *arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.nightly.mortal", cron.lab.now.isoformat(), str(death), *command],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(300)
def test_killed_anywhere_the_next_run_tells_what_is_due_and_nothing_twice(cron: Cron) -> None:
    cron.posts.append('[[post]]\nkind = "github"\nrepository = "operators/vllm-watch"\n')
    cron.posts.append(f'[[post]]\nkind = "textfile"\npath = "{cron.folder / "bisector.prom"}"\n')
    cron.lab.move_to(evening(LOSS))
    cron("harvest")
    ready = cron.folder / "ready.db"
    shutil.copy(cron.db, ready)
    told_by_the_killed = 0
    for death in range(1, MOST):
        for name in cron.folder.glob("history.db*"):
            name.unlink()
        shutil.copy(ready, cron.db)
        cron.webhooks.taken.clear()
        cron.lab.github.issues.all.clear()
        killed = process(cron, death)
        killed.communicate()
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        told_by_the_killed += len(cron.webhooks.taken)
        assert cron("nightly").exit_code == 0
        assert len(cron.webhooks.titles) == 1, f"killed at {death}"
        (issue,) = cron.lab.github.issues.all
        assert (issue.state, issue.comments, issue.edits) == ("open", [], 0)
        assert cron.rows("SELECT count(*) FROM posts WHERE sent_at IS NULL") == [(0,)]
        assert cron.rows("PRAGMA integrity_check") == [("ok",)]
    else:
        pytest.fail("it never came to its end")
    # Some died before they sent anything, and some after.
    assert 0 < told_by_the_killed < death - 1


def test_two_at_once_and_the_second_says_who_was_first(cron: Cron) -> None:
    cron.webhooks.delay = 3.0
    cron.lab.move_to(evening(LOSS))
    first = process(cron, 0)
    lock = cron.folder / "history.db.nightly-lock"
    while not (lock.exists() and lock.read_text()):
        assert first.poll() is None
    second = cron("nightly", "--json")
    assert second.exit_code == 4
    assert f"process {first.pid} on " in second.json["error"]
    assert "since 2026-07-31T23:00:00Z" in second.json["error"]
    # A rehearsal is in nobody's way.
    assert cron("nightly", "--dry-run").exit_code == 0
    first.kill()
    first.communicate()
    cron.webhooks.delay = 0.0
    assert cron("nightly").exit_code == 0


def test_the_lock_of_a_dead_process_is_no_lock(cron: Cron) -> None:
    cron.lab.move_to(evening(LOSS))
    lock = cron.folder / "history.db.nightly-lock"
    lock.write_text('{"pid": 1, "host": "elsewhere", "since": "2020-01-01T00:00:00Z"}')
    assert cron("nightly").exit_code == 0
    assert '"elsewhere"' not in lock.read_text()
    assert LabClock(cron.lab.now).now().isoformat()[:10] in lock.read_text()
