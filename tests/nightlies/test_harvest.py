from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path

from tests.lab import commits
from tests.lab.scenario import Scenario
from tests.nightlies.conftest import Bisector, Start

FEW = Scenario(first=date(2026, 7, 27), last=date(2026, 8, 1), pull_limit=100_000)
KILLS = int(os.environ.get("BISECTOR_TEST_KILLS", "6"))
"""How many harvests are killed; the full fifty take some minutes."""
SECONDS = float(os.environ.get("BISECTOR_TEST_SECONDS", "8"))
"""How long two processes write to one history."""


def harvest(bisector: Bisector, *arguments: str, db: str = "history.db") -> subprocess.Popen[str]:
    config = bisector.folder / "config.toml"
    config.write_text(bisector.lab.config_toml())
    words = [sys.executable, "-m", "bisector", "--config", str(config), "--db", str(bisector.folder / db)]
    return subprocess.Popen(
        [*words, *(arguments or ("harvest",))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rows(db: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=30) as connection:
        return connection.execute(query).fetchall()


def test_each_build_is_read_once_and_then_never_again(start: Start) -> None:
    bisector = start(FEW)
    first = bisector("harvest", "--json").json["sources"][0]
    assert len(first["read"]) == len(first["new"]) == first["listed"] == 6
    assert first["left"] == first["untold"] == first["gone"] == []
    bisector.lab.front.site.requests.clear()
    second = bisector("harvest", "--json").json
    assert second["sources"][0]["read"] == second["sources"][0]["new"] == []
    assert not bisector.lab.front.site.requests
    losses = bisector("history", "losses", "--arch", "sm120", "--json").json["rows"]
    assert [(loss["last_good"], loss["lost_at"], loss["regained_at"]) for loss in losses] == [
        (f"nightly-{commits.HEAD_OF_0730}", f"nightly-{commits.HEAD_OF_0731}", None)
    ]


def test_a_limit_reads_the_newest_and_says_what_it_left(start: Start) -> None:
    bisector = start(FEW)
    source = bisector("harvest", "--limit", "2", "--json").json["sources"][0]
    newest = [bisector.lab.night(day).tag for day in ("2026-08-01", "2026-07-31")]
    assert sorted(source["read"]) == sorted(newest)
    assert len(source["left"]) == 4


def test_gone_pushed_again_and_undated_are_told_apart(start: Start) -> None:
    bisector = start(
        Scenario(
            first=date(2026, 7, 20),
            last=date(2026, 8, 8),
            keep=14,
            repushed=date(2026, 7, 28),
            as_of=datetime(2026, 7, 30, 23, tzinfo=UTC),
        )
    )
    bisector("harvest", "--limit", "1")
    bisector.lab.move_to(datetime(2026, 8, 8, 23, tzinfo=UTC))
    source = bisector("harvest", "--limit", "0", "--json").json["sources"][0]
    assert bisector.lab.night("2026-07-20").tag in source["gone"]
    assert bisector.lab.night("2026-07-28").tag not in source["gone"] + source["new"]
    states = {row["build"]: row["state"] for row in bisector("history", "builds", "--json").json["rows"]}
    assert states[bisector.lab.night("2026-07-20").tag] == "gone"
    assert states[bisector.lab.night("2026-08-06").tag] == "listed"


def test_one_build_that_cannot_be_read_does_not_stop_the_others(start: Start) -> None:
    bisector = start(Scenario(first=date(2026, 7, 27), last=date(2026, 8, 1), vanished=date(2026, 7, 29)))
    answer = bisector("harvest", "--json")
    source = answer.json["sources"][0]
    assert len(source["read"]) + len(source["untold"]) == 6
    assert answer.exit_code == 0


def test_a_source_that_does_not_answer_is_exit_four_and_the_others_are_harvested(start: Start) -> None:
    bisector = start(FEW)
    answer = bisector(
        "harvest",
        "--source",
        "dockerhub:nobody/nothing",
        "--source",
        "dockerhub:vllm/vllm-openai",
        "--limit",
        "1",
        "--json",
    )
    assert answer.exit_code == 4
    assert [bool(source["error"]) for source in answer.json["sources"]] == [True, False]
    assert len(answer.json["sources"][1]["read"]) == 1


def test_killed_at_any_moment_the_history_is_sound_and_the_next_harvest_ends_the_same(start: Start) -> None:
    bisector = start(FEW)
    undisturbed = harvest(bisector, db="undisturbed.db")
    begun = time.monotonic()
    undisturbed.communicate(timeout=120)
    assert undisturbed.returncode == 0
    usual = time.monotonic() - begun
    chance = random.Random(7)
    db = bisector.folder / "history.db"
    for _ in range(KILLS):
        process = harvest(bisector)
        time.sleep(chance.uniform(0.2, usual))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        if db.exists():
            assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    last = harvest(bisector)
    out, err = last.communicate(timeout=120)
    assert last.returncode == 0, out + err
    kept = "SELECT source, build, digest, state, commit_id, depth FROM build_timeline ORDER BY source, build"
    assert rows(db, kept) == rows(bisector.folder / "undisturbed.db", kept)


def test_cron_and_a_person_at_once(start: Start) -> None:
    bisector = start(FEW)
    db = bisector.folder / "history.db"
    until = time.monotonic() + SECONDS
    complaints: list[str] = []
    searched = harvested = read = 0
    while time.monotonic() < until:
        cron = harvest(bisector, "harvest", "--limit", "3")
        person = harvest(bisector, "find-regression", "--arch", "sm120")
        while cron.poll() is None or person.poll() is None:
            if db.exists():
                read += len(rows(db, "SELECT * FROM sqlite_schema"))
            time.sleep(0.05)
        complaints += [text for text in (cron.communicate()[1], person.communicate()[1]) if "Error" in text]
        assert (cron.returncode, person.returncode) == (0, 1), complaints
        harvested, searched = harvested + 1, searched + 1
    assert complaints == []
    assert read
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    assert rows(db, "SELECT count(*) FROM run_history WHERE outcome = 'found'") == [(searched,)]
    assert rows(db, "SELECT count(*) FROM losses WHERE source LIKE 'dockerhub:%' AND arch = 'sm120'") == [(1,)]
