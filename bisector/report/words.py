"""The words and marks that every form for people shares: the phrases, and what rich makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bisector.model import Verdict
from bisector.report.phrases import (
    MARKS,
    asked,
    build_line,
    command_line,
    cost_line,
    count,
    day,
    gate_sentence,
    gate_words,
    loss_line,
    pin_line,
    safe,
    short,
    size,
)
from bisector.results import PackageChange

__all__ = [
    "MARKS",
    "Paste",
    "asked",
    "build_line",
    "command_line",
    "cost_line",
    "count",
    "day",
    "gate_sentence",
    "gate_words",
    "loss_line",
    "mark",
    "names",
    "package_rows",
    "pairs",
    "paste",
    "pin_line",
    "safe",
    "section",
    "short",
    "size",
]


def mark(verdict: Verdict | None) -> Text:
    """The mark of a verdict; a middle dot where nobody looked."""
    if verdict is None:
        return Text("·", style="dim")
    return Text(*MARKS[verdict.answer])


def section(title: str, body: RenderableType) -> Group:
    """A heading and its indented body, after a blank line."""
    return Group(Text(), Text(title, style="bold"), Padding(body, (0, 0, 0, 2)))


def names(items: Iterable[str]) -> Text:
    """Names in running text that breaks between them."""
    return Text(", ".join(safe(item) for item in items))


def pairs(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Labels and values in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, value)
    return table


def package_rows(changes: Iterable[PackageChange]) -> Table:
    """Packages that differ."""
    return pairs(
        (safe(change.name), Text(f"{_version(change.before)} → {_version(change.after)}")) for change in changes
    )


def _version(version: str | None) -> str:
    return safe(version) if version else "(none)"


class Paste(Text):
    """Text to copy: printed from the first column and never wrapped."""


def paste(title: str, line: str) -> Iterator[RenderableType]:
    """A heading and a line to copy, after a blank line."""
    yield Text()
    yield Text(title, style="bold")
    yield Paste(line)
