"""Tables of the history, and what a harvest brought in: for people and for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from bisector.model import Run
from bisector.report.words import cost_line, count, mark, pairs, safe, section, short
from bisector.results import Checkup, Harvest, HarvestedSource, HealthState, Rows

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T[\d:.]+Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_GAP = 2
"""Blanks between two columns."""

_STATES = {
    HealthState.OK: ("ok", "green"),
    HealthState.WARN: ("warn", "yellow"),
    HealthState.FAIL: ("fail", "bold red"),
}

_NAMED = 6
"""How many builds are named before the rest is counted."""


def rows_as_csv(rows: Rows) -> str:
    """The table as comma-separated values with a heading, for spreadsheets."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows(rows.rows)
    return written.getvalue()


def rows_parts(rows: Rows) -> Iterator[RenderableType]:
    """The table for people: what is the same in every row is said once, and what does not fit is left to --json."""
    if not rows.rows:
        yield Text("The history has nothing to show here.")
        return
    if len(rows.rows) == 1:
        yield pairs(
            (name.replace("_", " "), Text(cell))
            for name, value in zip(rows.columns, rows.rows[0], strict=True)
            if (cell := _cell(value))
        )
        return
    columns = {name: [_cell(row[at]) for row in rows.rows] for at, name in enumerate(rows.columns)}
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    same = {name: cells[0] for name, cells in columns.items() if len(set(cells)) == 1}
    if same:
        yield Text(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in same.items()), style="dim")
    shown = {name: cells for name, cells in columns.items() if name not in same}
    yield _Fitting(shown)
    if rows.more:
        yield Text(f"Only the first {count(len(rows.rows), 'row')} are shown.", style="dim")


class _Fitting:
    """A table of as many of its columns, from the left, as the terminal has room for."""

    def __init__(self, columns: Mapping[str, Sequence[str]]) -> None:
        self._columns = columns

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        room = options.max_width
        fitting: list[Sequence[str]] = []
        for name, cells in self._columns.items():
            heading = name.replace("_", " ")
            room -= max(len(heading), *map(len, cells)) + _GAP
            if room < -_GAP and fitting:
                break
            fitting.append(cells)
            table.add_column(heading, no_wrap=True)
        for row in zip(*fitting, strict=True):
            table.add_row(*row)
        yield table
        if hidden := list(self._columns)[len(fitting) :]:
            yield Text(f"Not shown for want of room: {', '.join(hidden)} (--json and --csv have them).", style="dim")


def _cell(value: object) -> str:
    """A value for reading: days instead of moments, digests and commits cut short, nothing for nothing."""
    if value is None or value == "[]":
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = short(str(value))
    if found := _MOMENT.fullmatch(text):
        return found[1]
    return _DIGEST.sub(lambda digest: digest[0][:19], text)


def harvest_parts(harvest: Harvest) -> Iterator[RenderableType]:
    """What came of each stream."""
    for source in harvest.sources:
        yield Text(f"{safe(source.source)} ({safe(source.platform)})", style="bold")
        yield Text("\n".join(f"  {line}" for line in _source_lines(source)))
    yield Text(cost_line(harvest.cost), style="dim")


def checkup_parts(checkup: Checkup) -> Iterator[RenderableType]:
    """How everything is, and what to do."""
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for health in checkup.health:
        word, style = _STATES[health.state]
        table.add_row(Text(word, style), health.subject, safe(health.says))
        if health.hint:
            table.add_row("", "", Text(f"{safe(health.hint)} Needed for {health.needed_for}.", style="dim"))
    yield table


def _source_lines(source: HarvestedSource) -> Iterator[str]:
    if source.error:
        yield f"could not be listed: {safe(source.error)}"
        return
    counted = (f"{len(source.new)} new", f"{len(source.gone)} gone", f"{len(source.read)} read")
    yield ", ".join([f"{count(source.listed, 'build')} listed", *counted])
    for label, builds in (("new", source.new), ("left for next time", source.left)):
        if builds:
            yield f"{label}: {_named(builds)}"
    for untold in source.untold:
        yield f"could not be read: {short(untold.build)}: {safe(untold.reason)}"


def _named(builds: tuple[str, ...]) -> str:
    shown = ", ".join(short(name) for name in builds[-_NAMED:])
    more = len(builds) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def run_parts(run: Run) -> Iterator[RenderableType]:
    """A run from its question to its answer."""
    asked = run.asked
    yield Text(f"{safe(run.id)}  {safe(asked.question or asked.command)}", style="bold")
    ended = f"{run.ended_at:%Y-%m-%d %H:%M:%S} UTC" if run.ended_at else "never"
    yield pairs(
        [
            ("asked", Text(f"{safe(asked.command)} of {safe(asked.source or 'no stream')}")),
            ("state", Text(f"{run.state}, on {safe(run.host)}")),
            ("began", Text(f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC")),
            ("ended", Text(ended)),
            ("answer", Text(safe(run.outcome or "none"))),
        ]
    )
    table = Table.grid(padding=(0, 2))
    for step in run.steps:
        source = "history" if step.from_history else "read"
        table.add_row(
            f"{step.at:%H:%M:%S}", mark(step.verdict), short(step.build), safe(step.verdict.reason), Text(source, "dim")
        )
    yield section(count(len(run.steps), "step"), table)
