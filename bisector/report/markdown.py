"""The night report in Markdown, ready to paste in an issue on GitHub or a chat that knows it.

Names and sentences from outside come out as text: no markup, link, picture, mention, reference or HTML of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisector.report.evidence import Evidence
from bisector.report.grid import Cell, Grid, GridCell
from bisector.report.measured import trend_line
from bisector.report.night.page import Item, NightPage, page
from bisector.report.night.standing import State
from bisector.report.phrases import command_line, count
from bisector.results import Night, Rows

_ROWS_SHOWN = 14
"""The newest builds of a stream: an issue is no archive, and has room for 65,536 characters."""
_SHOWN = 10

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&$@]")
_LIST = re.compile(r"^(\d*)([-+=.):])(?=[\s=-]|$)")
_BREAK = "\N{WORD JOINER}"
"""Between two letters it is invisible, and what would have become a link or a mention is none."""
_LINKED = re.compile(
    r"(?<=@)(?=\S)|(?<=#)(?=\S)|(?<=:)(?=//)|\b(?<=www)(?=\.)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=\bGH)(?=-\d)|(?<=:)(?=[\w+-]+:)",
    re.IGNORECASE,
)
_ICONS = {State.FINE: "✅", State.LOST: "❌", State.NONE: "❌", State.UNKNOWN: "❔"}


def markdown(night: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> str:
    """The report of a night.

    Args:
        night: The night.
        boots: Rows of the history's view ``boot_results``, newest first.
        benchmarks: Rows of its view ``benchmark_trend``.
    """
    report = page(night, boots=boots, benchmarks=benchmarks)
    return "\n".join(_lines(report)).rstrip() + "\n"


def text(words: str) -> str:
    """Words from outside as Markdown that shows just these words."""
    apart = _LINKED.sub(_BREAK, words.strip())
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", apart)
    return _LIST.sub(r"\1\\\2", escaped)


def code(words: str) -> str:
    """A name as code, in which nothing is markup; safe in a table too."""
    longest = max((len(ticks) for ticks in re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest or words != words.strip() or not words else ""
    # A table is cut at its bars before code is seen; there is no bar in the name of any build, so another sign will do.
    return f"{fence}{padding}{words.replace('|', '¦')}{padding}{fence}"


def block(lines: str) -> Iterator[str]:
    """Lines to copy."""
    longest = max((len(ticks) for ticks in re.findall("`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", f"{fence}sh", lines, fence, "")


def _lines(report: NightPage) -> Iterator[str]:
    for answer, line in zip(report.answers or (None,), report.headlines, strict=True):
        yield f"{_ICONS[answer.state]} **{text(line)}**  " if answer else f"**{text(line)}**"
    yield from ("", f"## What changed on {report.at:%Y-%m-%d}", "")
    if not report.news:
        yield report.quiet
    for item in report.news:
        yield from _item(item)
    yield from _pins(report)
    for grid in report.grids:
        yield from _grid(grid)
    yield from _losses(report)
    yield from _measured(report)
    yield from _work(report)


def _item(item: Item) -> Iterator[str]:
    yield f"- **{item.word}**: {text(item.sentence)}"
    if item.evidence:
        yield from _evidence(item.evidence)


def _evidence(found: Evidence) -> Iterator[str]:
    yield ""
    if found.facts:
        yield from ("| evidence | |", "| --- | --- |")
        yield from (f"| {label} | {text(value)} |" for label, value in found.facts)
        yield ""
    if found.operations:
        shown = ", ".join(code(operation) for operation in found.operations)
        yield from (f"{count(len(found.operations), 'operation')} {found.verb}: {shown}", "")
    yield from ("<details><summary>Ask again</summary>", *block(command_line(found.reproduce)), "</details>", "")


def _pins(report: NightPage) -> Iterator[str]:
    if report.pins:
        yield from ("", "## Pins", "")
    for served, pin in report.pins:
        yield f"{text(served)}: {code(pin.build)}"
        yield from block(pin.lines)


def _grid(grid: Grid) -> Iterator[str]:
    yield from ("", f"## {text(grid.source)}", "")
    if not grid.rows:
        yield "No build is known yet."
        return
    rows = grid.rows[-_ROWS_SHOWN:][::-1]
    yield f"| build | published |{''.join(f' {text(arch)} |' for arch in grid.archs)}"
    yield f"| --- | --- |{' --- |' * len(grid.archs)}"
    for row in rows:
        name = " ".join([code(row.build), *row.marks])
        yield f"| {name} | {row.day} |{''.join(f' {_cell(cell)} |' for cell in row.cells)}"
    if (more := len(grid.rows) - len(rows)) > 0:
        yield from ("", f"{count(more, 'older build')} not shown.")
    if grid.changes:
        yield from ("", "Kernels lost and gained:", "")
    for change in grid.changes[:_SHOWN]:
        named = "; ".join(
            f"{verb} {', '.join(code(operation) for operation in operations)}"
            for verb, operations in (("lost", change.lost), ("gained", change.gained))
            if operations
        )
        yield (
            f"- {text(change.arch)} in {code(change.build)} ({change.day}): "
            f"{change.had} → {count(change.has, 'operation')}{f'; {named}' if named else ''}"
        )


def _cell(cell: GridCell) -> str:
    counted = f" ({cell.operations})" if cell.operations is not None and cell.kind.presence is Cell.KERNELS else ""
    return f"{cell.kind.mark} {cell.kind}{counted}"


def _losses(report: NightPage) -> Iterator[str]:
    if report.losses:
        yield from ("", "## Losses", "")
    for loss in report.losses[:_SHOWN]:
        end = f"back in {text(loss.regained_at)}" if loss.regained_at else f"still missing in {text(loss.still)}"
        untested = f"; untested between: {', '.join(map(code, loss.untestable))}" if loss.untestable else ""
        where = f" ({text(loss.source)})" if report.several else ""
        began = f"lost in {text(loss.lost_at)}, last good {text(loss.last_good)}"
        yield f"- {text(loss.arch)}{where}: {began}, {end}{untested}"


def _measured(report: NightPage) -> Iterator[str]:
    if report.trends:
        yield from ("", "## Benchmarks", "")
        yield from (f"- {text(trend.title)}: {text(trend_line(trend))}" for trend in report.trends)
    if report.boots:
        yield from ("", "## Boots", "", "| build | when | host | profile | outcome | cause |", f"|{' --- |' * 6}")
    for boot in report.boots[:_SHOWN]:
        cells = (code(boot.build), boot.day, text(boot.host), text(boot.profile), text(boot.outcome), text(boot.cause))
        yield f"| {' | '.join(cells)} |"


def _work(report: NightPage) -> Iterator[str]:
    if report.not_measured:
        yield from ("", "## Not measured", "", *(f"- {text(sentence)}" for sentence in report.not_measured))
    yield from ("", "## The night's work", "")
    for work in (*report.streams, *report.work):
        yield f"- {text(work.name)}{'' if work.ok else ' **failed**'}: {text(work.says)}"
    yield f"- {report.cost}"
