"""What every journal does, in a file or in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisector.errors import UnknownRun
from bisector.history.database import open_database
from bisector.history.journal import RunJournal
from bisector.model import Answer, Asked, RunState, Verdict
from bisector.ports import Journal
from tests.fakes.clock import SteppingClock
from tests.fakes.ledger import MemoryJournal

ASKED = Asked(
    command="find-regression",
    arguments={"arch": "sm120", "require": ["bf16_gemm"], "since": None, "commits": True, "limit": 60},
    question="sm120 bf16_gemm",
    source="pypi:vllm",
    arch="sm120",
)
VERDICTS = (
    ("0.26.0", Verdict(answer=Answer.GOOD, reason="12 sm120 kernels"), True),
    ("0.27.0", Verdict(answer=Answer.BAD, reason="bundled, no sm120 kernels"), False),
    ("0.26.1", Verdict(answer=Answer.INFRA, expires_at=datetime(2026, 12, 1, 1, 2, 3, 4, tzinfo=UTC)), False),
    ("0.26.1", Verdict(answer=Answer.UNTESTABLE, reason='"quoted" …'), False),
)


@pytest.fixture(params=["history", "memory"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal()
        return
    async with open_database(tmp_path / "history.db") as database:
        yield RunJournal(database, SteppingClock())


async def test_a_run_is_told_as_far_as_it_came(journal: Journal) -> None:
    run = await journal.begin(ASKED)
    for build, verdict, from_history in VERDICTS:
        await journal.step(run, build, verdict, from_history=from_history)
    told = await journal.run(run)
    assert (told.id, told.asked, told.state, told.ended_at) == (run, ASKED, RunState.RUNNING, None)
    assert tuple((step.build, step.verdict, step.from_history) for step in told.steps) == VERDICTS
    assert [step.at for step in told.steps] == sorted({step.at for step in told.steps})
    assert told.started_at < told.steps[0].at


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.INTERRUPTED, RunState.FAILED])
async def test_an_end_comes_with_its_answer(journal: Journal, state: RunState) -> None:
    run = await journal.begin(ASKED)
    result = {"outcome": "found", "losses": [{"lost_at": "0.27.0"}], "cost": {"seconds": 0.25}}
    await journal.end(run, state, outcome="found", result=result)
    told = await journal.run(run)
    assert (told.state, told.outcome, told.result) == (state, "found", result)
    assert told.ended_at is not None
    assert told.ended_at > told.started_at


async def test_a_run_may_end_without_an_answer(journal: Journal) -> None:
    run = await journal.begin(Asked(command="harvest"))
    await journal.end(run, RunState.FAILED, outcome=None, result=None)
    told = await journal.run(run)
    assert (told.asked, told.outcome, told.result) == (Asked(command="harvest"), None, None)


async def test_ids_sort_by_time(journal: Journal) -> None:
    runs = [await journal.begin(ASKED) for _ in range(5)]
    assert runs == sorted(set(runs))


async def test_a_run_that_is_resumed_without_having_ended_was_interrupted(journal: Journal) -> None:
    killed = await journal.begin(ASKED)
    await journal.step(killed, *VERDICTS[0][:2], from_history=False)
    again = await journal.begin(replace(ASKED, resumes=killed))
    assert (await journal.run(killed)).state is RunState.INTERRUPTED
    assert (await journal.run(killed)).steps
    assert (await journal.run(again)).asked.resumes == killed


async def test_a_run_that_ended_keeps_its_end_when_it_is_resumed(journal: Journal) -> None:
    ended = await journal.begin(ASKED)
    await journal.end(ended, RunState.FINISHED, outcome="found", result=None)
    before = await journal.run(ended)
    await journal.begin(replace(ASKED, resumes=ended))
    assert await journal.run(ended) == before


async def test_a_run_that_was_forgotten_cannot_be_resumed_by_name_only(journal: Journal) -> None:
    run = await journal.begin(replace(ASKED, resumes="20200101-000000-gone"))
    assert (await journal.run(run)).asked.resumes is None


async def test_an_unknown_run_is_an_error(journal: Journal) -> None:
    with pytest.raises(UnknownRun):
        await journal.run("20200101-000000-none")
    with pytest.raises(UnknownRun):
        await journal.step("20200101-000000-none", "0.26.0", VERDICTS[0][1], from_history=True)
    with pytest.raises(UnknownRun):
        await journal.end("20200101-000000-none", RunState.FAILED, outcome=None, result=None)
