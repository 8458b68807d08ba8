"""What a search found, what it would do, and the commits it came down to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from bisector.model import (
    Build,
    Commit,
    Cost,
    DependencyPin,
    Depth,
    Found,
    FoundBetween,
    Inconclusive,
    Loss,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Outcome,
)
from bisector.results.codes import ExitCode
from bisector.results.inspections import (
    GateFinding,
    PackageChange,
    Question,
    Seen,
)
from bisector.results.streams import (
    TimelineEntry,
)
from bisector.search import Direction, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class PinChange:
    """The dependency before and after: where it is cloned from and at which state."""

    before: DependencyPin | None
    after: DependencyPin | None


class HandOffOutcome(StrEnum):
    """What the commits between two builds show."""

    FOUND = "found"
    FOUND_BETWEEN = "found-between"
    IMAGE_ONLY = "image-only"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """From two builds to the commit.

    Attributes:
        outcome: What the commits show.
        reason: Why there is no single commit, in words.
        commits: How many commits lie between the two builds, the last one included.
        tested: How many of them were looked at.
        culprit: The first commit without the kernels (for a repair: with them again).
        parent: The commit before it, tested too.
        suspects: Where no single one can be named: those that remain, oldest first.
        pin: The dependency on both sides of the change.
    """

    outcome: HandOffOutcome
    commits: int
    tested: int
    reason: str | None = None
    culprit: Commit | None = None
    parent: Commit | None = None
    suspects: tuple[Commit, ...] = ()
    pin: PinChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer of ``find-regression --plan``.

    Attributes:
        question: What would be asked of each build.
        source: The stream.
        strategy: How it would be searched.
        depth: How far each build would be read.
        builds: The range, oldest first.
        at_most: How many builds would be looked at in the worst case.
        from_history: How many of those the history answers already.
        first: The builds that would be looked at first.
        reproduce: The command that does it.
    """

    question: Question
    source: str
    strategy: Strategy
    depth: Depth
    builds: tuple[Build, ...]
    at_most: int
    from_history: int
    first: tuple[str, ...]
    reproduce: str

    exit_code: ClassVar[int] = ExitCode.HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer of ``find-regression``.

    Attributes:
        question: What was asked of each build.
        source: The stream.
        platform: Whose files were read.
        strategy: How it was searched.
        direction: For a loss or for its repair.
        outcome: What the search says.
        timeline: The builds looked at, oldest first.
        before: The build on the near side of the change (last good, or last bad for a repair).
        after: The build on the far side (first bad, or first good).
        losses: Every loss seen, oldest first.
        changed_ops: Operations lost (or, for a repair, gained) between the two.
        packages: What else changed between the two.
        gate: What the gate means for the device in the bad one of the two.
        newest_good: The newest build seen to be good, when it is newer than the loss.
        hand_off: The commits between the two builds, when they were asked for.
        notes: What else a reader should know, a sentence each.
        cost: What the answer cost.
        reproduce: The command that asks the same question again.
        finished_at: When the answer was found.
        by: What was asked of the builds: ``kernels``, ``boot`` or ``tpot``.
    """

    question: Question
    source: str
    platform: str
    strategy: Strategy
    direction: Direction
    outcome: Outcome
    timeline: Sequence[TimelineEntry]
    before: Seen | None
    after: Seen | None
    losses: tuple[Loss, ...]
    changed_ops: tuple[str, ...]
    packages: tuple[PackageChange, ...]
    gate: GateFinding
    newest_good: Build | None
    hand_off: HandOff | None
    notes: tuple[str, ...]
    cost: Cost
    reproduce: str
    finished_at: datetime
    by: str = "kernels"

    @property
    def exit_code(self) -> int:
        """A repair that was found is good news: 0."""
        match self.outcome:
            case NoRegression():
                return ExitCode.HOLDS
            case Found():
                return ExitCode.HOLDS if self.direction is Direction.FIX else ExitCode.REGRESSION
            case FoundBetween() | NonMonotone() | NotReproduced() | Inconclusive():
                return ExitCode.INCONCLUSIVE
