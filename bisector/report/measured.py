"""Boots and benchmarks for the report, from the rows of the history's views. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

from bisector.report.phrases import day, safe, short
from bisector.results import Rows

_Row: TypeAlias = Mapping[str, str | int | float | bytes | None]

_BOOTS_SHOWN = 30
_POINTS_SHOWN = 120
"""The newest of each series: more than a plot of a page's width can tell apart helps nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRow:
    """How one boot went.

    Attributes:
        build: Of which build.
        day: When.
        host: Where.
        profile: Served how.
        outcome: How it ended, in a word.
        cause: The root cause where it failed; may be empty.
        context: The longest context it answered at, in tokens.
    """

    build: str
    day: str
    host: str
    profile: str
    outcome: str
    cause: str
    context: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The warm passes of one boot: median and range of the time per output token in milliseconds.

    Attributes:
        build: Of which build.
        at: When it was published, or else measured.
        tpot: The median.
        best: The lowest.
        worst: The highest.
        passes: How many there were.
        throughput: The median of output tokens a second.
    """

    build: str
    at: datetime
    tpot: float
    best: float
    worst: float
    passes: int
    throughput: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One profile on one machine over the builds of a stream, oldest first."""

    title: str
    points: tuple[Point, ...]


def boot_rows(rows: Rows | None) -> tuple[BootRow, ...]:
    """The newest boots, from the view ``boot_results``."""
    return tuple(
        BootRow(
            build=short(_text(row, "build")),
            day=day(_moment(_text(row, "started_at"))),
            host=safe(_text(row, "host")),
            profile=safe(_text(row, "profile")),
            outcome=safe(_text(row, "outcome") or "without an end"),
            cause=safe(_text(row, "cause_title") or _text(row, "cause")),
            context=context if isinstance(context := row.get("context"), int) else None,
        )
        for row in list(_named(rows))[:_BOOTS_SHOWN]
    )


def trends(rows: Rows | None) -> tuple[Trend, ...]:
    """The series in the view ``benchmark_trend``."""

    def series(row: _Row) -> tuple[str, ...]:
        return tuple(safe(_text(row, name)) for name in ("profile", "host", "arch", "source"))

    found: list[Trend] = []
    for (profile, host, arch, source), of_series in groupby(sorted(_named(rows), key=series), key=series):
        points = sorted(filter(None, map(_point, of_series)), key=lambda point: point.at)
        if points:
            machine = f"{host} ({arch})" if arch else host
            found.append(Trend(title=f"{profile} on {machine}, {source}", points=tuple(points[-_POINTS_SHOWN:])))
    return tuple(found)


def trend_line(trend: Trend) -> str:
    """The newest measurement beside the one before it, in a sentence."""
    newest = trend.points[-1]
    said = f"{newest.tpot:.2f} ms a token in {newest.build} ({day(newest.at)})"
    if len(trend.points) == 1:
        return f"{said}, the only build measured"
    earlier = trend.points[-2]
    change = (newest.tpot / earlier.tpot - 1) * 100 if earlier.tpot else 0.0
    apart = newest.best > earlier.worst or newest.worst < earlier.best
    noise = "outside" if apart else "within"
    return f"{said}, {change:+.1f} % against {earlier.build}: {noise} the range of the passes"


def _point(row: _Row) -> Point | None:
    tpot, best, worst = (_number(row, name) for name in ("tpot_ms", "tpot_ms_best", "tpot_ms_worst"))
    moment = _moment(_text(row, "published_at")) or _moment(_text(row, "started_at"))
    if tpot is None or moment is None:
        return None
    return Point(
        build=short(_text(row, "build")),
        at=moment,
        tpot=tpot,
        best=tpot if best is None else best,
        worst=tpot if worst is None else worst,
        passes=int(_number(row, "passes") or 1),
        throughput=_number(row, "throughput"),
    )


def _named(rows: Rows | None) -> Iterator[_Row]:
    for row in rows.rows if rows else ():
        yield dict(zip(rows.columns if rows else (), row, strict=True))


def _text(row: _Row, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _number(row: _Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
