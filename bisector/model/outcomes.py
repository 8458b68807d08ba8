"""What an observation means to a question, and what a search of a stream found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias


class Answer(StrEnum):
    """A predicate's answer. ``infra`` never counts; ``ambiguous`` asks for more samples."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"
    INFRA = "infra"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer, why (a phrase, without a full stop), and until when it may be believed (``None``: for good)."""

    answer: Answer
    reason: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """An interval ``[lost_at, regained_at)`` of one architecture in one stream, by build id.

    Attributes:
        last_good: The newest build before it that had the kernels.
        lost_at: The first build seen without them.
        last_bad: The last build seen without them.
        regained_at: The first build that has them again, or ``None`` while it lasts.
        untestable: Builds between ``last_good`` and ``lost_at`` that nobody could test.
    """

    last_good: str
    lost_at: str
    last_bad: str
    regained_at: str | None = None
    untestable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Two neighbours in the stream, both tested: the change is in ``after``."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBetween:
    """Every build between the two is known to be untestable: the change is in one of them or in ``after``."""

    before: str
    after: str
    untestable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NonMonotone:
    """A bisection met answers that contradict a single change; the sequence of tested builds shows it."""

    seen: tuple[tuple[str, Answer], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReproduced:
    """An end did not hold: what was expected of which build, and what was found."""

    ends: tuple[tuple[str, Answer, Verdict], ...]
    """(build, expected answer, verdict)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """No answer, and why; the range as far as it was narrowed."""

    reason: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRegression:
    """Nothing was lost in the builds looked at."""

    tested: int


Outcome: TypeAlias = Found | FoundBetween | NonMonotone | NotReproduced | Inconclusive | NoRegression
