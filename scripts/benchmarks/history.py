"""Seconds for every question to a history of 2,000 builds of 60 kernels for 6 architectures, and for plain `sqlite3`.

The history is made once, by the same calls that a harvest makes, and kept where --db says. Each question is asked
several times in one process; the middle one counts. Beside it stands Python's `sqlite3` with the same SQL on the same
file: what the rest of bisector adds to it. `known`, which decodes whole observations, shows what the summaries save.
"""

from __future__ import annotations

import argparse
import io
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bisector.history.database import Database, open_database
from bisector.history.journal import RunJournal
from bisector.history.queries import Queries, statement
from bisector.history.store import History
from bisector.history.transfer import export
from bisector.model import (
    Answer,
    Asked,
    Build,
    CommitWheel,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Gate,
    Kernel,
    LibraryStatus,
    Observation,
    Package,
    Platform,
    Provenance,
    RemoteImage,
    RunState,
    Verdict,
)
from bisector.results import Filters, Subject
from bisector.wiring.clock import SystemClock

BUILDS, KERNELS, ARCHS = 2000, 60, ("sm80", "sm89", "sm90", "sm100", "sm103", "sm120")
SOURCE, PLATFORM = "dockerhub:vllm/vllm-openai", Platform("linux/amd64")
START = datetime(2021, 6, 1, 8, tzinfo=UTC)
EVERY_LOSS, LASTS = 150, 12
"""Builds from one loss of sm120 to the next, and how many each lasts."""

RUNS, STEPS = 400, 12
BOOTS, PASSES = 300, 5
TIMES = 7

BOOT = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :boots)
INSERT INTO boots (id, build_id, host, profile, arch, started_at, ended_at, outcome, context)
SELECT 'boot-' || n, :builds - n, 'gpu1', 'flash', 'sm120', '2026-08-01T05:00:00.000000Z',
    '2026-08-01T05:20:00.000000Z', 'good', 250000
FROM numbers
"""
BENCHMARK = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :passes)
INSERT INTO benchmarks (boot_id, ordinal, warm_up, at, asked, completed, tpot_ms, ttft_ms, throughput, raw)
SELECT boots.id, n, n = 1, '2026-08-01T05:10:00.000000Z', 8, 8, 20.0 + n, 300.0 - n, 50.0 + n, '{}'
FROM boots, numbers
"""


def build(number: int) -> Build:
    """One nightly of the stream."""
    commit = f"{number:040x}"
    digest = Digest(f"sha256:{number:064x}")
    name = f"nightly-{commit}"
    return Build(
        id=name,
        source=SOURCE,
        spec=f"vllm/vllm-openai:{name}",
        platform=PLATFORM,
        location=RemoteImage(
            registry="docker.io", repository="vllm/vllm-openai", reference=str(digest), platform=PLATFORM
        ),
        witness=CommitWheel(commit=commit, platform=PLATFORM),
        digest=digest,
        published_at=START + timedelta(days=number),
        commit=commit,
        pin=f"vllm/vllm-openai@{digest}",
    )


def observation(number: int) -> Observation:
    """What is seen in it: sixty operations of each architecture, except where sm120 is lost."""
    lost = number % EVERY_LOSS < LASTS <= number
    return Observation(
        digest=Digest(f"sha256:{number:064x}"),
        depth=Depth.KERNELS,
        probe_version=1,
        evidence=EvidenceKind.IMAGE,
        deep_gemm=DeepGemm(status=LibraryStatus.PRESENT, version="2.6.1", templates=KERNELS),
        kernels={
            arch: tuple(
                Kernel(
                    op=f"op{op:02}_gemm", units=(f"impls/{arch}_op{op:02}.cuh",), entries=(f"{arch}_op{op:02}_impl",)
                )
                for op in range(KERNELS)
            )
            for arch in ARCHS
            if not (lost and arch == "sm120")
        },
        gate=Gate(capabilities=("sm90",), families=("sm100", "sm120")),
        packages=tuple(Package(name=f"package{it}", version=f"=={number}.{it}") for it in range(8)),
        provenance=Provenance(version=f"0.{number}.0", commit=f"g{number:09x}"),
    )


async def make(path: Path, console: Console) -> None:
    """Write the history as harvests do."""
    async with open_database(path) as database:
        history, journal = History(database, SystemClock()), RunJournal(database, SystemClock())
        builds = [build(number) for number in range(BUILDS)]
        await history.see(builds)
        await history.see(builds[-24:])
        for number in track(range(BUILDS), "Making the history…", console=console):
            await history.record(observation(number), builds[number])
        for number in range(RUNS):
            run = await journal.begin(Asked(command="find-regression", source=SOURCE, arch="sm120"))
            for step in range(STEPS):
                verdict = Verdict(answer=Answer.GOOD, reason="60 sm120 kernels")
                await journal.step(run, builds[(number * STEPS + step) % BUILDS].id, verdict, from_history=True)
            await journal.end(run, RunState.FINISHED, outcome="no-regression", result={})
        async with database.writing() as connection:
            await connection.execute(BOOT, {"boots": BOOTS, "builds": BUILDS})
            await connection.execute(BENCHMARK, {"passes": PASSES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One line of the table.

    Attributes:
        name: As it is asked.
        limit: Seconds it may take.
        ask: Asks it and counts the rows.
        sql: The same for plain `sqlite3`, where it is one statement.
    """

    name: str
    limit: float
    ask: Callable[[], Awaitable[int]]
    sql: tuple[str, dict[str, object]] | None = None


def questions(database: Database) -> Sequence[Question]:
    """Everything `history` and `builds` ask."""
    queries, history = Queries(database, SystemClock()), History(database, SystemClock())
    builds = [build(number) for number in range(BUILDS)]
    one, month = builds[BUILDS // 2].id, START + timedelta(days=BUILDS - 30)

    def table(words: str, subject: Subject, filters: Filters) -> Question:
        async def ask() -> int:
            return len((await queries.table(subject, filters)).rows)

        sql, values = statement(subject, filters)
        return Question(name=f"history {subject} {words}", limit=0.3, ask=ask, sql=(sql, dict(values)))

    async def by_sql() -> int:
        return len((await queries.sql(BY_HAND)).rows)

    async def timeline() -> int:
        await history.remembered(SOURCE, PLATFORM)
        return len(await history.summaries(builds))

    async def known() -> int:
        return len(await history.known(builds))

    async def nothing_new() -> int:
        await history.see(builds[-24:])
        return len(await history.unread(builds[-24:], Depth.KERNELS, version=1))

    async def written() -> int:
        return sum((await export(database, SystemClock(), io.BytesIO())).values())

    return (
        table("", Subject.BUILDS, Filters()),
        table("--since 30d", Subject.BUILDS, Filters(since=month)),
        table("--arch sm120", Subject.BUILDS, Filters(arch="sm120")),
        table("--op op07_gemm", Subject.BUILDS, Filters(op="op07_gemm")),
        table("", Subject.KERNELS, Filters()),
        table("--arch sm120", Subject.KERNELS, Filters(arch="sm120")),
        table("--build ONE", Subject.KERNELS, Filters(build=one)),
        table("--op op07_gemm", Subject.KERNELS, Filters(op="op07_gemm")),
        table("", Subject.LOSSES, Filters()),
        table("--arch sm120", Subject.LOSSES, Filters(arch="sm120")),
        table("", Subject.BOOTS, Filters()),
        table("", Subject.BENCHMARKS, Filters()),
        table("", Subject.RUNS, Filters()),
        table("--build ONE", Subject.RUNS, Filters(build=one)),
        Question(name="history sql", limit=0.3, ask=by_sql, sql=(BY_HAND, {})),
        Question(name="builds (the timeline)", limit=1.0, ask=timeline),
        Question(name="harvest with nothing new", limit=0.3, ask=nothing_new),
        Question(name="(known: every observation)", limit=float("inf"), ask=known),
        Question(name="(export)", limit=float("inf"), ask=written),
    )


BY_HAND = "SELECT arch, count(*) AS losses, max(lost_at) AS last FROM losses GROUP BY arch"


async def middle(ask: Callable[[], Awaitable[int]]) -> tuple[float, int]:
    """The middle of some times, after a first one that warms up."""
    rows = await ask()
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        await ask()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), rows


def plain(path: Path, sql: str, values: dict[str, object]) -> Callable[[], Awaitable[int]]:
    """The same question by Python's own module."""

    async def ask() -> int:
        with closing(sqlite3.connect(path)) as connection:
            return len(connection.execute(sql, values).fetchall())

    return ask


async def measure(path: Path) -> bool:
    """Print the table; whether every question was answered in time."""
    console = Console(width=110)
    if not await anyio.Path(path).exists():
        start = time.perf_counter()
        await make(path, console)
        console.print(f"Made in {time.perf_counter() - start:.0f} s.")
    size = (await anyio.Path(path).stat()).st_size / 1e6
    table = Table(
        title=f"{BUILDS:,} builds × {KERNELS} kernels × {len(ARCHS)} architectures, {size:.0f} MB: milliseconds"
    )
    for heading in ("question", "rows", "bisector", "plain sqlite3", "limit", ""):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    in_time = True
    async with open_database(path) as database:
        for question in questions(database):
            seconds, rows = await middle(question.ask)
            alone = f"{(await middle(plain(path, *question.sql)))[0] * 1000:.1f}" if question.sql else ""
            limit = "" if question.limit == float("inf") else f"{question.limit * 1000:.0f}"
            held = seconds <= question.limit
            in_time = in_time and held
            mark = "" if not limit else "ok" if held else "SLOW"
            table.add_row(question.name, f"{rows:,}", f"{seconds * 1000:.1f}", alone, limit, mark)
    console.print(table)
    return in_time


def main() -> None:
    """Measure; exit 1 when a question took too long."""
    parser = argparse.ArgumentParser(prog="scripts/bench history", description=__doc__)
    parser.add_argument("--db", type=Path, help="Where the history is made and kept. [default: nowhere]")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raise SystemExit(not anyio.run(measure, chosen.db or Path(folder) / "history.db"))


if __name__ == "__main__":
    main()
