from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from bisector.history.boots import BootLog
from bisector.history.database import Values
from bisector.history.journal import RunJournal
from bisector.history.store import History
from bisector.model import Asked, Build, EngineImage, Platform
from bisector.results import Cause, Certainty, Layer
from bisector.trials import Boot, BootOutcome, LogFacts, Pass, Phase, Reached
from bisector.wiring.clock import SystemClock

BUILD = Build(
    id="nightly",
    source="docker:",
    spec="docker:nightly",
    platform=Platform("linux/amd64"),
    location=EngineImage(name="nightly"),
)
CAUSE = Cause(
    id="kv_cache_too_small",
    layer=Layer.MEMORY,
    arch=None,
    title="The KV cache is too small",
    line=7,
    excerpt="",
    meaning="",
    advice="",
    certainty=Certainty.CERTAIN,
)


@asynccontextmanager
async def opened(path: Path, *, alive: bool = True) -> AsyncIterator[tuple[History, BootLog, str]]:
    clock = SystemClock()

    def lives(pid: int, since: datetime) -> bool:
        assert pid == os.getpid()
        assert since <= clock.now()
        return alive

    async with History.open(path / "history.db", clock) as history:
        run = await RunJournal(history.database, clock).begin(Asked(command="confirm"))
        yield history, BootLog(history.database, clock, lives), run


async def rows(history: History, sql: str) -> list[tuple[object, ...]]:
    nothing: Values = {}
    return [tuple(row) for row in await history.database.fetch(sql, nothing)]


async def begun(log: BootLog, run: str | None) -> str:
    return await log.begin(BUILD, host="here", profile="tiny", arch="sm120", run=run, settings={"arguments": ["/m"]})


def boot(name: str, **changes: object) -> Boot:
    now = SystemClock().now()
    made = Boot(
        id=name,
        build=BUILD,
        image="sha256:1",
        context=8192,
        started_at=now,
        seconds=31.5,
        outcome=BootOutcome.ANSWERED,
        reason=None,
        phases=(Reached(phase=Phase.STARTED, seconds=0.5),),
        facts=LogFacts(version="0.32.0", kv_tokens=16_384),
        causes=(),
        exit_code=None,
        passes=tuple(
            Pass(
                asked=5,
                completed=5,
                tpot_ms=tpot,
                ttft_ms=40.0,
                throughput=39.0,
                warm_up=warm_up,
                at=now,
                raw={"mean_tpot_ms": tpot},
            )
            for tpot, warm_up in ((90.0, True), (25.0, False), (26.0, False), (24.0, False))
        ),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_a_boot_and_its_passes_are_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (history, log, run):
        name = await begun(log, run)
        await log.end(boot(name))
        assert await rows(history, "SELECT boot, build, outcome, context, cause, run FROM boot_results") == [
            (name, "nightly", "answered", 8192, None, run)
        ]
        assert await rows(history, "SELECT passes, tpot_ms, tpot_ms_best FROM benchmark_trend") == [(3, 25.0, 24.0)]
        facts = "SELECT json_extract(facts, '$.kv_tokens'), json_extract(phases, '$[0].phase') FROM boots"
        assert await rows(history, facts) == [(16_384, "started")]


async def test_a_failed_boot_names_its_cause(tmp_path: Path) -> None:
    async with opened(tmp_path) as (history, log, run):
        name = await begun(log, run)
        await log.end(boot(name, outcome=BootOutcome.FAILED, causes=(CAUSE,), passes=()))
        assert await rows(history, "SELECT outcome, cause, context FROM boot_results") == [
            ("failed", "kv_cache_too_small", None)
        ]


async def test_ending_twice_is_ending_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (history, log, run):
        name = await begun(log, run)
        await log.end(boot(name))
        await log.end(boot(name))
        assert await rows(history, "SELECT count(*) FROM benchmarks") == [(4,)]


async def test_a_boot_whose_process_is_gone_was_interrupted(tmp_path: Path) -> None:
    async with opened(tmp_path, alive=False) as (history, log, run):
        name = await begun(log, run)
        assert await log.abandon([]) == [name]
        assert await rows(history, "SELECT outcome, ended_at IS NULL FROM boots") == [("interrupted", 0)]
        assert await log.abandon([]) == []


async def test_a_boot_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as (history, log, run):
        await begun(log, run)
        assert await log.abandon([]) == []
        assert await rows(history, "SELECT outcome FROM boots") == [(None,)]


async def test_a_boot_of_another_machine_is_interrupted_only_when_its_container_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, alive=False) as (history, log, run):
        name = await begun(log, run)
        async with history.database.writing() as connection:
            await connection.execute("UPDATE runs SET host = ?", (f"not-{socket.gethostname()}",))
        assert await log.abandon(["unheard-of"]) == []
        assert await log.abandon([name]) == [name]
