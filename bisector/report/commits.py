"""The way from two builds to the commit, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bisector.model import Commit, DependencyPin
from bisector.report.words import count, day, pairs, safe
from bisector.results import HandOff, HandOffOutcome

_SHOWN_SUSPECTS = 10


def commit_parts(hand_off: HandOff) -> Iterator[RenderableType]:
    """The commit, its parent and the pin; or why there is no single commit."""
    yield Text(f"{count(hand_off.commits, 'commit')} between the two builds, {hand_off.tested} looked at")
    if hand_off.reason:
        yield Text(_reason(hand_off))
    rows: list[tuple[str, RenderableType]] = []
    if hand_off.culprit:
        rows.append(("changed by", _commit(hand_off.culprit)))
    if hand_off.parent:
        rows.append(("parent", _commit(hand_off.parent)))
    rows += [("suspect", _commit(commit)) for commit in hand_off.suspects[:_SHOWN_SUSPECTS]]
    if (more := len(hand_off.suspects) - _SHOWN_SUSPECTS) > 0:
        rows.append(("", Text(f"and {more} more")))
    if hand_off.pin and hand_off.pin.before != hand_off.pin.after:
        rows.append(("DeepGEMM", Text(f"{_pin(hand_off.pin.before)} →")))
        rows.append(("", Text(_pin(hand_off.pin.after))))
    if rows:
        yield pairs(rows)


def _reason(hand_off: HandOff) -> str:
    reason = safe(hand_off.reason)
    match hand_off.outcome:
        case HandOffOutcome.IMAGE_ONLY:
            return f"In the image only: {reason}."
        case HandOffOutcome.FOUND_BETWEEN:
            return f"One of several: {reason}."
        case HandOffOutcome.FOUND | HandOffOutcome.INCONCLUSIVE:
            return f"No single commit: {reason}."


def _commit(commit: Commit) -> Text:
    return Text(f"{commit.sha[:12]}  {day(commit.committed_at)}  {safe(commit.title)}")


def _pin(pin: DependencyPin | None) -> str:
    if pin is None:
        return "no pin found"
    repository = pin.repository.removeprefix("https://github.com/").removesuffix(".git")
    return safe(f"{repository} {pin.revision[:12]}")
