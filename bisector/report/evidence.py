"""What a search found, as the night report tells it: labels and values, free of control characters. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bisector.model import Commit, DependencyPin
from bisector.report.phrases import clean, day, gate_sentence, safe, sentence, short
from bisector.results import Finding, HandOff
from bisector.search import Direction

_SUSPECTS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a search found.

    Attributes:
        facts: Labels and values, in the order a person needs them.
        verb: What happened to the operations: ``lost`` or ``gained``.
        operations: Their names.
        reproduce: The command that asks again, in one line.
    """

    facts: tuple[tuple[str, str], ...]
    verb: str
    operations: tuple[str, ...]
    reproduce: str


def evidence(finding: Finding) -> Evidence:
    """What the finding rests on."""
    return Evidence(
        facts=(*_sides(finding), *_commits(finding.hand_off), *_circumstances(finding)),
        verb="lost" if finding.direction is Direction.LOSS else "gained",
        operations=tuple(safe(op) for op in finding.changed_ops),
        reproduce=clean(finding.reproduce),
    )


def _sides(finding: Finding) -> Iterator[tuple[str, str]]:
    labels = ("last good", "first bad") if finding.direction is Direction.LOSS else ("last bad", "first good")
    for label, seen in zip(labels, (finding.before, finding.after), strict=True):
        if seen:
            yield label, " ".join(filter(None, (short(seen.build.id), day(seen.build.published_at))))


def _commits(hand_off: HandOff | None) -> Iterator[tuple[str, str]]:
    if hand_off is None:
        return
    if hand_off.culprit:
        yield "changed by", _commit(hand_off.culprit)
    elif hand_off.reason:
        yield "commits", sentence(hand_off.reason)
    for commit in hand_off.suspects[:_SUSPECTS_SHOWN]:
        yield "suspect", _commit(commit)
    if hand_off.pin and hand_off.pin.before != hand_off.pin.after:
        yield "DeepGEMM", f"{_revision(hand_off.pin.before)} → {_revision(hand_off.pin.after)}"


def _circumstances(finding: Finding) -> Iterator[tuple[str, str]]:
    for change in finding.packages:
        yield "package", f"{safe(change.name)} {safe(change.before or '(none)')} → {safe(change.after or '(none)')}"
    side = finding.after if finding.direction is Direction.LOSS else finding.before
    if side and (consequence := gate_sentence(finding.gate, finding.question, side.build)):
        yield "gate", consequence
    for note in finding.notes:
        yield "note", sentence(note)


def _commit(commit: Commit) -> str:
    return f"{safe(commit.sha[:12])} {day(commit.committed_at)} {safe(commit.title)}"


def _revision(pin: DependencyPin | None) -> str:
    return safe(pin.revision[:12]) if pin else "no pin found"
