"""The history as tables, for people and their tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from bisector.errors import UsageError
from bisector.history.codec import encode_time
from bisector.history.database import Database, Values
from bisector.history.sql import ask
from bisector.ports import Clock
from bisector.results import Filters, Rows, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One query, and what each filter adds to its WHERE clause; a filter that is not named does not apply."""

    columns: str
    view: str
    filters: Mapping[str, str]
    order: str = ""

    def sql(self, given: Mapping[str, object]) -> str:
        clauses = [self.filters[name] for name in given]
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        return f"SELECT {self.columns} FROM {self.view} {where} {self.order}"  # noqa: S608 - all of it is written below


_ORDER = "ORDER BY source, platform, sort_key, build_id"

_BUILD = {"source": "source = :source", "build": "build GLOB :build", "since": "published_at >= :since"}

_QUESTIONS: Mapping[Subject, _Question] = {
    Subject.BUILDS: _Question(
        columns="source, platform, build, published_at, state, commit_id, digest, evidence, depth, deep_gemm_status, "
        "deep_gemm_version, pin, marks, first_seen_at, last_listed_at, observed_at",
        view="build_timeline AS timeline",
        filters={
            **_BUILD,
            "arch": "EXISTS (SELECT * FROM architectures AS has WHERE has.observation_id = timeline.observation_id"
            " AND has.arch = :arch AND has.operations > 0)",
            "op": "EXISTS (SELECT * FROM kernels AS has WHERE has.observation_id = timeline.observation_id"
            " AND has.op = :op)",
        },
        order=_ORDER,
    ),
    Subject.KERNELS: _Question(
        columns="source, platform, build, published_at, arch, verdict, reason, depth, state, expires_at, looked_at",
        view="latest_verdicts",
        filters={**_BUILD, "arch": "arch = :arch"},
        order=f"{_ORDER}, arch",
    ),
    Subject.LOSSES: _Question(
        columns="*",
        view="losses",
        filters={
            "source": "source = :source",
            "build": "(last_good GLOB :build OR lost_at GLOB :build OR last_bad GLOB :build"
            " OR regained_at GLOB :build)",
            "since": "(lost_published_at >= :since OR regained_published_at >= :since)",
            "arch": "arch = :arch",
        },
    ),
    Subject.BOOTS: _Question(
        columns="*",
        view="boot_results",
        filters={**_BUILD, "arch": "arch = :arch", "since": "started_at >= :since"},
    ),
    Subject.BENCHMARKS: _Question(
        columns="*",
        view="benchmark_trend",
        filters={**_BUILD, "arch": "arch = :arch", "since": "started_at >= :since"},
    ),
    Subject.RUNS: _Question(
        columns="*",
        view="run_history",
        filters={
            "source": "source = :source",
            "arch": "arch = :arch",
            "since": "started_at >= :since",
            "build": "run IN (SELECT run_id FROM run_steps WHERE build GLOB :build)",
        },
    ),
}

_OPERATIONS = _Question(
    columns="source, platform, build, published_at, arch, op, units, entries",
    view="kernel_operations",
    filters={**_BUILD, "arch": "arch = :arch", "op": "op = :op"},
    order=f"{_ORDER}, arch, op",
)
"""``kernels`` of one build or one operation, where they are few enough to be named."""


class Queries:
    """``Records`` in the history file."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def table(self, subject: Subject, filters: Filters) -> Rows:
        """The rows about one subject that pass, in the order of the builds, or the newest first.

        ``builds`` with an architecture or an operation are those that have it. ``kernels`` are verdicts by
        architecture; of one operation or one build, the operations themselves.

        Raises:
            UsageError: A filter does not apply to the subject.
            HistoryUnavailable: The file cannot be read.
        """
        sql, values = statement(subject, filters)
        columns, rows = await self._database.table(sql, values)
        return Rows(columns=columns, rows=rows)

    async def sql(self, query: str) -> Rows:
        """The answer to one query in SQL, which can only read; the first rows of it, where there are very many.

        Raises:
            UsageError: It is no single query, would write, or takes too long.
            HistoryUnavailable: The file cannot be read.
        """
        return await ask(self._database, self._clock, query)


def statement(subject: Subject, filters: Filters) -> tuple[str, Values]:
    """The SQL that answers, and what its ``:names`` stand for.

    Raises:
        UsageError: A filter does not apply to the subject.
    """
    given = dict(_given(filters))
    named = filters.op or (filters.build and "*" not in filters.build)
    question = _OPERATIONS if subject is Subject.KERNELS and named else _QUESTIONS[subject]
    for name in given:
        if name not in question.filters:
            raise UsageError(
                f"{subject.capitalize()} cannot be filtered by {name}",
                hint=f"Use one of: {', '.join(f'--{known}' for known in sorted(question.filters))}.",
            )
    return question.sql(given), given


def _given(filters: Filters) -> Iterator[tuple[str, str]]:
    for each in fields(filters):
        value = getattr(filters, each.name)
        if value is not None:
            yield each.name, encode_time(value) if each.name == "since" else _as_glob(each.name, value)


def _as_glob(name: str, value: str) -> str:
    """``*`` is the only letter that stands for others."""
    return value.replace("[", "[[]").replace("?", "[?]") if name == "build" else value
