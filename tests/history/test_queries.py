from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import UsageError
from bisector.history.database import open_database
from bisector.history.queries import Queries
from bisector.ports import Records
from bisector.results import Filters, Rows, Subject
from tests.fakes.clock import SteppingClock
from tests.history.story import START, write_story

PYPI = "pypi:vllm"


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    path = tmp_path / "history.db"
    await write_story(path)
    async with open_database(path) as database:
        yield Queries(database, SteppingClock())


def column(rows: Rows, name: str) -> list[Any]:
    return [row[rows.columns.index(name)] for row in rows.rows]


def pick(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(column(rows, name) for name in names), strict=True))


async def test_builds_tell_where_each_of_them_stands(records: Records) -> None:
    rows = await records.table(Subject.BUILDS, Filters(source=PYPI))
    assert pick(rows, "build", "state", "depth", "deep_gemm_status") == [
        ("0.25.0", "gone", "kernels", "present"),
        ("0.26.0", "listed", "kernels", "present"),
        ("0.27.0", "listed", "kernels", "present"),
        ("0.27.1", "listed", "kernels", "absent"),
        ("0.28.0", "listed", "kernels", "present"),
        ("unread", "listed", None, None),
        ("failed", "listed", None, None),
    ]
    rows = await records.table(Subject.BUILDS, Filters(build="nightly"))
    assert column(rows, "state") == ["superseded", "listed"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(source=PYPI, arch="sm120"), ["0.25.0", "0.26.0", "0.28.0"]),
        (Filters(source=PYPI, op="bf16_gemm"), ["0.25.0", "0.26.0"]),
        (Filters(build="0.27.*"), ["0.27.0", "0.27.1"]),
        (Filters(build="0.27.?"), []),
        (Filters(build="0.2[78].0"), []),
        (Filters(since=START + timedelta(weeks=5)), ["unread", "failed"]),
        (Filters(build="'; DROP TABLE builds; --"), []),
    ],
)
async def test_builds_that_have_what_is_asked_for(records: Records, filters: Filters, names: list[str]) -> None:
    assert column(await records.table(Subject.BUILDS, filters), "build") == names


async def test_kernels_are_verdicts_of_many_builds_and_operations_of_one(records: Records) -> None:
    rows = await records.table(Subject.KERNELS, Filters(source=PYPI, arch="sm120"))
    assert pick(rows, "build", "verdict", "reason") == [
        ("0.25.0", "good", "2 kernels"),
        ("0.26.0", "good", "2 kernels"),
        ("0.27.0", "bad", "0 kernels"),
        ("0.27.1", "bad", "not bundled"),
        ("0.28.0", "good", "1 kernels"),
        ("failed", "untestable", "not a wheel"),
    ]
    rows = await records.table(Subject.KERNELS, Filters(build="0.25.0"))
    assert pick(rows, "arch", "op", "units") == [
        ("sm120", "bf16_gemm", '["impls/sm120_bf16_gemm.cuh"]'),
        ("sm120", "fp8_gemm", '["impls/sm120_fp8_gemm.cuh"]'),
    ]
    rows = await records.table(Subject.KERNELS, Filters(op="fp8_gemm", source=PYPI))
    assert column(rows, "build") == ["0.25.0", "0.26.0", "0.28.0"]


async def test_losses_tell_the_whole_story(records: Records) -> None:
    rows = await records.table(Subject.LOSSES, Filters(arch="sm120"))
    names = ("source", "last_good", "lost_at", "last_bad", "regained_at", "untested")
    assert pick(rows, *names) == [(PYPI, "0.26.0", "0.27.0", "0.27.1", "0.28.0", "[]")]
    assert (await records.table(Subject.LOSSES, Filters(build="0.27.1"))).rows == rows.rows
    assert (await records.table(Subject.LOSSES, Filters(since=START + timedelta(weeks=4)))).rows == rows.rows
    assert (await records.table(Subject.LOSSES, Filters(since=START + timedelta(weeks=4, days=1)))).rows == []


async def test_boots_tell_how_each_ended_and_why(records: Records) -> None:
    rows = await records.table(Subject.BOOTS, Filters())
    assert pick(rows, "boot", "build", "outcome", "cause", "context") == [
        ("boot-killed", "0.27.0", None, None, None),
        ("boot-bad", "0.27.0", "bad", "no-kernel-image", None),
        ("boot-good", "0.25.0", "good", None, 250000),
    ]
    assert column(await records.table(Subject.BOOTS, Filters(build="0.25.*")), "boot") == ["boot-good"]


async def test_benchmarks_are_medians_of_what_was_warm_and_complete(records: Records) -> None:
    rows = await records.table(Subject.BENCHMARKS, Filters(arch="sm120", source=PYPI))
    names = ("build", "passes", "tpot_ms", "tpot_ms_best", "tpot_ms_worst", "ttft_ms", "throughput")
    assert pick(rows, *names) == [("0.25.0", 4, 21.0, 20.0, 22.0, 175.0, 50.25)]


async def test_runs_come_newest_first(records: Records) -> None:
    rows = await records.table(Subject.RUNS, Filters(arch="sm120", build="0.27.*", source=PYPI))
    assert pick(rows, "state", "outcome", "steps") == [
        ("running", None, 1),
        ("finished", "found", 1),
        ("interrupted", "found", 1),
    ]
    assert column(rows, "resumes") == [None, column(rows, "run")[2], None]
    assert (await records.table(Subject.RUNS, Filters(since=START + timedelta(days=365)))).rows == []


@pytest.mark.parametrize("subject", [Subject.LOSSES, Subject.BOOTS, Subject.BENCHMARKS, Subject.RUNS])
async def test_a_filter_that_does_not_apply_is_refused_by_name(records: Records, subject: Subject) -> None:
    with pytest.raises(UsageError, match=f"{subject.capitalize()} cannot be filtered by op"):
        await records.table(subject, Filters(op="bf16_gemm"))


@pytest.mark.parametrize("subject", list(Subject))
async def test_every_subject_answers_about_an_empty_history(tmp_path: Path, subject: Subject) -> None:
    async with open_database(tmp_path / "empty.db") as database:
        rows = await Queries(database, SteppingClock()).table(subject, Filters(source="pypi:vllm"))
    assert rows.columns
    assert rows.rows == []
