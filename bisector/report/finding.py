"""The answer of ``find-regression`` for people: the answer first, then the evidence, the pin and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bisector.model import (
    Answer,
    Found,
    FoundBetween,
    Inconclusive,
    NonMonotone,
    NoRegression,
    NotReproduced,
)
from bisector.report.commits import commit_parts
from bisector.report.words import (
    MARKS,
    asked,
    build_line,
    command_line,
    cost_line,
    count,
    day,
    gate_sentence,
    loss_line,
    mark,
    names,
    package_rows,
    pairs,
    paste,
    pin_line,
    safe,
    section,
    short,
)
from bisector.results import Finding, Plan, TimelineEntry
from bisector.search import Direction

_SHOWN_OF_A_RUN = 2
"""Builds shown at each end of a run of equal verdicts; the middle is counted."""


def finding_parts(finding: Finding) -> Iterator[RenderableType]:
    """The parts of the answer, in the order a person needs them."""
    style = {0: "bold green", 1: "bold red"}.get(finding.exit_code, "bold yellow")
    yield Text(headline(finding), style=style)
    if finding.question.note:
        yield Text(finding.question.note, style="dim")
    yield from _what_to_do(finding)
    yield from _evidence(finding)
    if finding.notes:
        yield section("Notes", Text("\n".join(short(note) for note in finding.notes)))
    yield section("Cost", Text(cost_line(finding.cost)))
    yield from paste("Ask again", command_line(finding.reproduce))


_BY = {"boot": "A server that answers", "tpot": "The speed of the good build"}


def _what_to_do(finding: Finding) -> Iterator[RenderableType]:
    if finding.before and finding.after:
        yield section("The two builds", pairs(_sides(finding)))
    elif isinstance(finding.outcome, NotReproduced):
        yield section("What was found", pairs(_failed_ends(finding.outcome)))
    yield from _pins(finding)
    if sentence := _gate(finding):
        yield section("Gate", Text(sentence))


def _evidence(finding: Finding) -> Iterator[RenderableType]:
    if finding.timeline:
        yield section("Timeline", _timeline(finding))
        yield Padding(legend(), (0, 0, 0, 2))
    if finding.changed_ops:
        verb = "Lost" if finding.direction is Direction.LOSS else "Gained"
        yield section(f"{verb} {count(len(finding.changed_ops), 'operation')}", names(finding.changed_ops))
    if finding.hand_off:
        yield section("Commits", Group(*commit_parts(finding.hand_off)))
    if finding.packages:
        yield section("Also changed", package_rows(finding.packages))
    earlier = finding.losses[:-1] if finding.direction is Direction.LOSS else finding.losses
    if earlier:
        yield section("Other losses seen", Text("\n".join(loss_line(loss) for loss in earlier)))


def headline(finding: Finding) -> str:
    """The answer in one line."""
    what, where = _BY.get(finding.by) or asked(finding.question), safe(finding.source)
    looked = _looked(finding)
    match finding.outcome:
        case Found(before=before, after=after):
            if finding.direction is Direction.FIX:
                return f"{what} in {where}: back in {short(after)} (missing up to {short(before)})."
            last = finding.losses[-1] if finding.losses else None
            end = f", back in {short(last.regained_at)}" if last and last.regained_at else ""
            return f"{what} in {where}: lost in {short(after)}, last good {short(before)}{end}."
        case FoundBetween(before=before, after=after, untestable=untestable):
            return (
                f"{what} in {where}: changed after {short(before)} and by {short(after)}; "
                f"{count(len(untestable), 'build')} between them cannot be tested."
            )
        case NotReproduced(ends=ends):
            said = "; ".join(
                f"{short(name)} was given as {expected} and is {verdict.answer}" for name, expected, verdict in ends
            )
            return f"{what} in {where}: not reproduced. {said}."
        case NonMonotone():
            return f"{what} in {where}: more than one change, and no single answer."
        case Inconclusive(reason=reason):
            return f"{what} in {where}: no answer. {safe(reason)}"
        case NoRegression():
            return f"{what} in {where}: no loss in {looked}."


def _looked(finding: Finding) -> str:
    if not finding.timeline:
        return "no build"
    first, last = finding.timeline[0].build.id, finding.timeline[-1].build.id
    return f"{count(len(finding.timeline), 'build')} looked at ({short(first)} to {short(last)})"


def _sides(finding: Finding) -> Iterator[tuple[str, RenderableType]]:
    labels = ("last good", "first bad") if finding.direction is Direction.LOSS else ("last bad", "first good")
    for label, seen in zip(labels, (finding.before, finding.after), strict=True):
        if seen:
            yield label, Text(build_line(seen.build, seen.observation))


def _failed_ends(outcome: NotReproduced) -> Iterator[tuple[str, RenderableType]]:
    for name, expected, verdict in outcome.ends:
        yield short(name), Text(f"expected {expected}, found {verdict.answer}: {safe(verdict.reason)}")


def _timeline(finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    notes = _notes(finding)
    runs = [list(run) for _, run in groupby(finding.timeline, key=lambda entry: entry.verdict and entry.verdict.answer)]
    for run in runs:
        for entry in _folded(run, notes):
            if isinstance(entry, int):
                table.add_row(Text("⋮", style="dim"), Text(f"{entry} more", style="dim"), "", "")
                continue
            reason = entry.verdict.reason if entry.verdict else ""
            note = notes.get(entry.build.id)
            table.add_row(
                mark(entry.verdict),
                Text(short(entry.build.id)),
                Text(day(entry.build.published_at), style="dim"),
                Text(f"{safe(reason)}{f'  ← {note}' if note else ''}"),
            )
    return table


def _folded(run: Sequence[TimelineEntry], notes: dict[str, str]) -> Iterator[TimelineEntry | int]:
    hidden = run[_SHOWN_OF_A_RUN:-_SHOWN_OF_A_RUN]
    if len(hidden) < 2 or any(entry.build.id in notes for entry in hidden):  # noqa: PLR2004 - a line for a line
        yield from run
        return
    yield from run[:_SHOWN_OF_A_RUN]
    yield len(hidden)
    yield from run[-_SHOWN_OF_A_RUN:]


def _notes(finding: Finding) -> dict[str, str]:
    notes: dict[str, str] = {}
    for loss in finding.losses:
        notes |= {loss.last_good: "last good", loss.lost_at: "first bad"}
        if loss.regained_at:
            notes[loss.regained_at] = "back"
    return notes


def _pins(finding: Finding) -> Iterator[RenderableType]:
    good = finding.before if finding.direction is Direction.LOSS else finding.after
    if good is None:
        return
    yield from paste("Pin the last good one" if finding.direction is Direction.LOSS else "Pin it", pin_line(good.build))
    newest = finding.newest_good
    if newest and newest.id != good.build.id:
        yield from paste("Or the newest that has them", pin_line(newest))


def _gate(finding: Finding) -> str | None:
    side = finding.after if finding.direction is Direction.LOSS else finding.before
    return gate_sentence(finding.gate, finding.question, side.build) if side else None


def plan_parts(plan: Plan) -> Iterator[RenderableType]:
    """What ``--plan`` shows."""
    builds = f"{short(plan.builds[0].id)} to {short(plan.builds[-1].id)}" if plan.builds else "none"
    yield Text(f"Nothing was read. This is what find-regression would do for {asked(plan.question)}:", style="bold")
    yield pairs(
        [
            ("source", Text(plan.source)),
            ("range", Text(f"{count(len(plan.builds), 'build')}: {safe(builds)}")),
            ("strategy", Text(plan.strategy)),
            ("looks at", Text("file names only" if plan.depth == "names" else "the library of each build")),
            ("at most", Text(f"{count(plan.at_most, 'build')}, {plan.from_history} of them known already")),
            ("first", names(short(name) for name in plan.first)),
        ]
    )
    yield from paste("To do it", command_line(plan.reproduce))


def legend() -> Text:
    """What the marks mean."""
    words = {
        Answer.GOOD: "has them",
        Answer.BAD: "has not",
        Answer.UNTESTABLE: "could not be tested",
    }
    return Text("   ").join(Text.assemble(MARKS[answer], f" {meaning}") for answer, meaning in words.items())
