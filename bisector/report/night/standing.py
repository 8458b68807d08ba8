"""How each architecture of each stream stands this morning, and which build to use meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bisector.model import Answer, Build, Loss
from bisector.report.grid import Cell
from bisector.report.phrases import clean, count, pin_line, safe, sentence, short
from bisector.results import ArchNight, Night, StreamNight


class State(StrEnum):
    """How an architecture stands, in a word."""

    FINE = "fine"
    LOST = "lost"
    NONE = "no kernels"
    UNKNOWN = "unknown"


_MARKS = {
    State.FINE: Cell.KERNELS.mark,
    State.LOST: Cell.LOST.mark,
    State.NONE: Cell.NONE.mark,
    State.UNKNOWN: Cell.UNREADABLE.mark,
}
_SEVERITY = (State.LOST, State.NONE, State.UNKNOWN, State.FINE)
"""What calls for somebody comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A build to use: its name for reading, the line to paste, and the same broken to fit a terminal."""

    build: str
    line: str
    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """This morning's answer for one architecture of one stream.

    Attributes:
        arch: The architecture.
        source: The stream.
        state: The answer in a word.
        says: The answer in a clause, without the architecture and the pin.
        reason: What it rests on, in a phrase; may be empty.
        pin: What to use.
        short_pin: The same in one word, for reading.
    """

    arch: str
    source: str
    state: State
    says: str
    reason: str
    pin: Pin | None
    short_pin: str

    @property
    def mark(self) -> str:
        """A shape that says the state."""
        return _MARKS[self.state]

    @property
    def line(self) -> str:
        """The whole answer in one line."""
        if self.state is State.FINE:
            return f"{self.arch}: {self.says}"
        return f"{self.arch}: {self.says}; {f'pin {self.short_pin}' if self.pin else 'no build to pin is known'}"


def standings(night: Night) -> tuple[Standing, ...]:
    """The answer for each architecture of each stream, the worst first."""
    answers = [_standing(stands, stream, night.at) for stream in night.streams for stands in stream.archs]
    return tuple(sorted(answers, key=lambda answer: _SEVERITY.index(answer.state)))


def _standing(stands: ArchNight, stream: StreamNight, at: datetime) -> Standing:
    days = _days(stream, at)
    newest = f"{short(stands.newest.id)}{days.get(stands.newest.id, '')}" if stands.newest else "no build"
    behind = stream.entries and stands.newest and stream.entries[-1].build.id != stands.newest.id
    if behind:
        newest = f"{newest}, the newest that could be tested"
    last = stands.losses[-1] if stands.losses else None
    match stands.verdict.answer:
        case Answer.GOOD:
            state, says = State.FINE, f"fine in {newest}"
            if last and last.regained_at:
                says += f", back since {short(last.regained_at)}{days.get(last.regained_at, '')}"
        case Answer.BAD if last and not last.regained_at:
            state, says = State.LOST, f"lost {_where(last, days)}"
        case Answer.BAD:
            state, says = State.NONE, f"no kernels in {newest}"
        case Answer.UNTESTABLE | Answer.INFRA | Answer.AMBIGUOUS:
            state, says = State.UNKNOWN, f"unknown, {sentence(stands.verdict.reason) or 'nobody has looked yet'}"
    return Standing(
        arch=safe(stands.arch),
        source=safe(stream.source),
        state=state,
        says=says,
        reason=safe(stands.verdict.reason),
        pin=Pin(build=short(stands.pin.id), line=clean(stands.pin.pin or stands.pin.spec), lines=pin_line(stands.pin))
        if stands.pin
        else None,
        short_pin=_short_pin(stands.pin) if stands.pin else "",
    )


def _where(loss: Loss, days: Mapping[str, str]) -> str:
    lost = f"{short(loss.lost_at)}{days.get(loss.lost_at, '')}"
    if not loss.untestable:
        return f"in {lost}"
    between = count(len(loss.untestable), "build")
    return f"after {short(loss.last_good)} and by {lost}, {between} between them cannot be tested"


def _short_pin(build: Build) -> str:
    """``nightly-1ad518282@sha256:0f3c9d1b2a4e…``: images are used by digest, the rest by name."""
    return (
        f"{short(build.id)}@{build.digest[:19]}…"
        if build.digest and "@sha256:" in (build.pin or "")
        else short(build.id)
    )


def _days(stream: StreamNight, at: datetime) -> Mapping[str, str]:
    """Build → its day in brackets: without the year where that goes without saying."""
    return {
        entry.build.id: f" ({moment:%m-%d})" if moment.year == at.year else f" ({moment:%Y-%m-%d})"
        for entry in stream.entries
        if (moment := entry.build.published_at)
    }
