"""A small history of everything there is: two streams, a loss, runs, boots, benchmarks, posts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bisector.history.database import open_database
from bisector.history.journal import RunJournal
from bisector.history.layers import Layers
from bisector.history.store import History
from bisector.model import Answer, Asked, Build, Depth, Digest, LibraryStatus, RemoteWheel, RunState, Verdict
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build, an_observation
from tests.history.test_layers import NewerRecord

START = datetime(2026, 7, 1, 8, tzinfo=UTC)
OPERATIONS = ("bf16_gemm", "fp8_gemm")
WHAT = {"0.25.0": OPERATIONS, "0.26.0": OPERATIONS, "0.27.0": (), "0.27.1": (), "0.28.0": ("fp8_gemm",)}

_MEASURED = """
INSERT INTO boots (id, build_id, host, profile, arch, started_at, ended_at, outcome, context, diagnosis)
VALUES
    ('boot-good', 1, 'gpu1', 'flash', 'sm120', '2026-08-01T05:00:00.000000Z', '2026-08-01T05:20:00.000000Z', 'good',
        250000, NULL),
    ('boot-bad', 3, 'gpu1', 'flash', 'sm120', '2026-08-12T05:00:00.000000Z', '2026-08-12T05:02:00.000000Z', 'bad',
        NULL, '[{"id": "no-kernel-image", "title": "No kernel for this GPU"}]'),
    ('boot-killed', 3, 'gpu2', 'flash', 'sm120', '2026-08-13T05:00:00.000000Z', NULL, NULL, NULL, NULL);
INSERT INTO benchmarks (boot_id, ordinal, warm_up, at, asked, completed, tpot_ms, ttft_ms, throughput, raw)
VALUES
    ('boot-good', 1, 1, '2026-08-01T05:10:00.000000Z', 8, 8, 99.0, 900.0, 10.0, '{}'),
    ('boot-good', 2, 0, '2026-08-01T05:11:00.000000Z', 8, 8, 20.0, 300.0, 50.0, '{}'),
    ('boot-good', 3, 0, '2026-08-01T05:12:00.000000Z', 8, 8, 22.0, 200.0, 51.5, '{}'),
    ('boot-good', 4, 0, '2026-08-01T05:13:00.000000Z', 8, 8, 20.5, 100.0, 49.0, '{}'),
    ('boot-good', 5, 0, '2026-08-01T05:14:00.000000Z', 8, 7, 1.0, 1.0, 99.0, '{}'),
    ('boot-good', 6, 0, '2026-08-01T05:15:00.000000Z', 8, 8, 21.5, 150.0, 50.5, '{}');
INSERT INTO posts (receiver, key, body, created_at, sent_at, attempts, last_error)
VALUES
    ('chat', 'lost sm120 0.27.0', 'sm120: lost in 0.27.0', '2026-08-12T05:31:00.000000Z', NULL, 2, 'answered 500'),
    ('mail', 'lost sm120 0.27.0', 'sm120: lost in 0.27.0', '2026-08-12T05:31:00.000000Z', '2026-08-12T05:31:01.000000Z',
        1, NULL);
"""


def release(name: str) -> Build:
    """A release of the story, a week after the one before it."""
    number = [*WHAT, "unread", "failed"].index(name)
    return replace(
        a_build(name, f"sha256:{name}"),
        location=RemoteWheel(url=f"https://files.test/{name}.whl", size=number),
        published_at=START + timedelta(weeks=number),
    )


async def write_story(path: Path) -> None:
    """The same rows at every call."""
    clock = SteppingClock()
    async with open_database(path) as database:
        history, journal = History(database, clock), RunJournal(database, clock)
        builds = [release(name) for name in (*WHAT, "unread", "failed")]
        await history.see(builds)
        await history.see(builds[1:])
        for name, operations in WHAT.items():
            status = LibraryStatus.PRESENT if name != "0.27.1" else LibraryStatus.ABSENT
            await history.record(an_observation(f"sha256:{name}", *operations, status=status), release(name))
        await history.record(an_observation("sha256:0.26.0", depth=Depth.NAMES), release("0.26.0"))
        await history.give_up(release("failed"), Verdict(answer=Answer.UNTESTABLE, reason="not a wheel"))
        other = replace(a_build("nightly", "sha256:0.28.0"), source="dockerhub:vllm/vllm-openai")
        await history.see([other])
        await history.see([replace(other, digest=Digest("sha256:0.27.0"))])
        asked = Asked(command="find-regression", arguments={"arch": "sm120"}, source="pypi:vllm", arch="sm120")
        resumed: str | None = None
        for state in (RunState.INTERRUPTED, RunState.FINISHED, None):
            run = await journal.begin(replace(asked, resumes=resumed))
            await journal.step(run, "0.27.0", Verdict(answer=Answer.BAD, reason="none"), from_history=False)
            if state:
                await journal.end(run, state, outcome="found", result={"outcome": "found"})
            resumed = run if state is RunState.INTERRUPTED else None
        await Layers(database, clock, NewerRecord).put(
            Digest("sha256:layer"), "deepgemm", NewerRecord(verified=True, needed=1)
        )
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_MEASURED)
