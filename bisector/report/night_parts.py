"""The night report at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bisector.report.grid import Cell, Grid, GridRow
from bisector.report.measured import trend_line
from bisector.report.night.page import Item, NightPage
from bisector.report.night.standing import State
from bisector.report.phrases import command_line, count
from bisector.report.words import names, pairs, paste, section

_STATES = {State.FINE: "bold green", State.LOST: "bold red", State.NONE: "bold red", State.UNKNOWN: "bold yellow"}
_CELLS = {
    Cell.KERNELS: "green",
    Cell.REGAINED: "green",
    Cell.NONE: "red",
    Cell.LOST: "bold red",
    Cell.UNKNOWN: "dim",
    Cell.GONE: "dim",
    Cell.UNREADABLE: "yellow",
}
_ROWS_SHOWN = 14
_SHOWN = 10
_FOLDED = 4
"""So many equal builds in a row are shown as the outer two and a number."""


def night_parts(report: NightPage) -> Iterator[RenderableType]:
    """The parts of the report, in the order a person needs them."""
    for answer, line in zip(report.answers or (None,), report.headlines, strict=True):
        yield Text(line, style=_STATES[answer.state] if answer else "bold")
    if not report.news:
        yield section("What changed", Text(report.quiet))
    for item in report.news:
        yield from _item(item)
    for served, pin in report.pins:
        yield from paste(f"Pin for {served}", pin.lines)
    for grid in report.grids:
        yield from _grid(grid)
    yield from _losses(report)
    yield from _measured(report)
    yield from _work(report)


def _item(item: Item) -> Iterator[RenderableType]:
    yield section(f"News: {item.word}", Text(item.sentence))
    if found := item.evidence:
        yield Padding(pairs((label, Text(value)) for label, value in found.facts), (0, 0, 0, 2))
        if found.operations:
            yield section(f"{found.verb.title()} {count(len(found.operations), 'operation')}", names(found.operations))
        yield from paste("Ask again", command_line(found.reproduce))


def _grid(grid: Grid) -> Iterator[RenderableType]:
    if not grid.rows:
        yield section(grid.source, Text("No build is known yet."))
        return
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(no_wrap=True)
    for _ in grid.archs:
        table.add_column(overflow="fold")
    table.add_row("build", Text("published", "dim"), *grid.archs)
    rows = grid.rows[-_ROWS_SHOWN:][::-1]
    for _, run in groupby(rows, key=lambda row: tuple(cell.kind for cell in row.cells)):
        alike = list(run)
        folded = len(alike) >= _FOLDED
        for row in (alike[0], alike[-1]) if folded else alike:
            table.add_row(Text(" ".join([row.build, *row.marks])), Text(row.day, "dim"), *_cells(row))
            if folded and row is alike[0]:
                table.add_row(Text("⋮", "dim"), Text(f"{len(alike) - 2} more", "dim"))
    yield section(f"{grid.source} ({grid.platform})", table)
    if (more := len(grid.rows) - len(rows)) > 0:
        yield Padding(Text(f"and {count(more, 'older build')}", style="dim"), (0, 0, 0, 2))
    yield Padding(_legend(grid), (1, 0, 0, 2))
    if grid.changes:
        lines = [
            f"{change.arch} in {change.build}: {change.had} → {count(change.has, 'operation')}"
            for change in grid.changes[:_SHOWN]
        ]
        yield section("Kernels lost and gained", Text("\n".join(lines)))


def _cells(row: GridRow) -> Iterator[Text]:
    for cell in row.cells:
        counted = cell.kind is Cell.KERNELS and cell.operations is not None
        yield Text(f"{cell.kind.mark} {cell.operations if counted else cell.kind}", style=_CELLS[cell.kind])


def _legend(grid: Grid) -> Text:
    return Text("   ").join(Text(f"{cell.mark} {cell}", style=_CELLS[cell]) for cell in Cell if cell in grid.kinds)


def _losses(report: NightPage) -> Iterator[RenderableType]:
    if report.losses:
        lines = [
            f"{loss.arch}: lost in {loss.lost_at}, last good {loss.last_good}, "
            + (f"back in {loss.regained_at}" if loss.regained_at else f"still missing in {loss.still}")
            for loss in report.losses[:_SHOWN]
        ]
        yield section("Losses", Text("\n".join(lines)))


def _measured(report: NightPage) -> Iterator[RenderableType]:
    if report.trends:
        lines = [f"{trend.title}: {trend_line(trend)}" for trend in report.trends]
        yield section("Benchmarks", Text("\n".join(lines)))
    if report.boots:
        table = Table.grid(padding=(0, 2))
        for _ in range(3):
            table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for boot in report.boots[:_SHOWN]:
            said = f"{boot.outcome}: {boot.cause}" if boot.cause else boot.outcome
            table.add_row(Text(boot.build), Text(boot.day, "dim"), Text(f"{boot.profile} on {boot.host}"), Text(said))
        yield section("Boots", table)


def _work(report: NightPage) -> Iterator[RenderableType]:
    if report.not_measured:
        yield section("Not measured", Text("\n".join(report.not_measured)))
    streams = "\n".join(f"{stream.name}: {stream.says}" for stream in report.streams)
    work = [(part.name if part.ok else f"{part.name} failed", Text(part.says)) for part in report.work]
    yield section("The night's work", Group(Text(streams or "No stream is watched."), pairs(work)))
    yield Text()
    yield Text(report.cost, style="dim")
