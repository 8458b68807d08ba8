"""What a log or a launch command says, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from bisector.report.words import count, pairs, safe
from bisector.results import UNKNOWN_CAUSE, Audit, Certainty, Diagnosis, Flag

_COLOURS = {Certainty.CERTAIN: "red", Certainty.LIKELY: "yellow", Certainty.POSSIBLE: "cyan"}


def diagnosis_parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The causes, the root first."""
    for place, cause in enumerate(diagnosis.causes):
        if place:
            yield Text()
        yield Text(cause.title, style="bold")
        words = [cause.layer, cause.arch, cause.certainty, cause.id if cause.id != UNKNOWN_CAUSE else None]
        yield Text("  " + " · ".join(filter(None, words)), style=_COLOURS[cause.certainty])
        yield Text()
        rows: list[tuple[str, RenderableType]] = [("meaning", Text(cause.meaning)), ("to do", Text(cause.advice))]
        if cause.excerpt:
            quoted = Text("\n".join(cause.excerpt.splitlines()), style="dim")
            rows.insert(0, (f"line {cause.line}", quoted))
        yield Padding(pairs(rows), (0, 0, 0, 2))
    if not diagnosis.causes:
        yield Text("Nothing in this log says that anything is wrong.")
    yield Text()
    yield Text(f"{count(diagnosis.lines, 'line')} read", style="dim")


def audit_parts(audit: Audit) -> Iterator[RenderableType]:
    """The workarounds, in the order in which they stand."""
    for flag in audit.flags:
        yield Text.assemble((safe(flag.flag), "bold"), (f"  line {flag.line}", "dim"))
        yield Padding(pairs(_reasons(flag)), (0, 0, 1, 2))
    if not audit.flags:
        yield Text("No workarounds in this command.")
    for name in audit.elsewhere:
        yield Text(f"{safe(name)} sets more, and was not looked at.", style="yellow")


def _reasons(flag: Flag) -> Iterator[tuple[str, RenderableType]]:
    yield "why", Text(flag.why)
    yield "costs", Text(flag.cost)
    yield "remove when", Text(flag.remove_when)
