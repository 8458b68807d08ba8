"""What each job answers with: one value a command, rendered by the report room in many forms.

Frozen, without behaviour beyond their own fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from bisector.arch import Arch
from bisector.model import (
    Answer,
    Build,
    Cost,
    Depth,
    Found,
    FoundBetween,
    Gate,
    Inconclusive,
    Loss,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Observation,
    Outcome,
    Verdict,
)
from bisector.search import Direction, Strategy


class ExitCode:
    """The contract with scripts (DESIGN §5)."""

    HOLDS = 0
    REGRESSION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of every build.

    Attributes:
        device: The GPU architecture asked about.
        served_by: The architecture whose kernels serve it (``sm120`` for sm121), or the device itself.
        note: Why these differ, in words.
        require: Operations that must be there; empty: any at all.
    """

    device: Arch
    served_by: Arch
    note: str | None = None
    require: tuple[str, ...] = ()


class GateFinding(StrEnum):
    """What vLLM's gate and the kernels together mean for a device."""

    SERVED = "served"
    CRASH = "crash"
    FALLBACK = "fallback"
    UNUSED = "unused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A build, what was seen in it, and where that came from."""

    build: Build
    observation: Observation
    from_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The answer of ``inspect``."""

    seen: Seen
    cost: Cost

    @property
    def exit_code(self) -> int:
        """An unreadable library is no answer; an absent one is."""
        return ExitCode.INCONCLUSIVE if self.seen.observation.deep_gemm.status == "unreadable" else ExitCode.HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageChange:
    """A package that differs; ``None`` where a side does not have it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchChange:
    """Operations of one architecture that only one of two builds has."""

    arch: str
    lost: tuple[str, ...]
    gained: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The answer of ``diff``: what ``after`` lacks or has over ``before``."""

    before: Seen
    after: Seen
    archs: tuple[ArchChange, ...]
    packages: tuple[PackageChange, ...]
    gate: tuple[Gate | None, Gate | None]
    cost: Cost

    @property
    def exit_code(self) -> int:
        """1 when an architecture lost operations, 3 when a side could not be read."""
        if any(side.observation.deep_gemm.status == "unreadable" for side in (self.before, self.after)):
            return ExitCode.INCONCLUSIVE
        return ExitCode.REGRESSION if any(change.lost for change in self.archs) else ExitCode.HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One build of a ``check``."""

    build: Build
    verdict: Verdict
    observation: Observation | None
    gate: GateFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The answer of ``check``."""

    question: Question
    builds: tuple[Checked, ...]
    cost: Cost

    @property
    def exit_code(self) -> int:
        """0 only if every build is good; a bad one outweighs an untestable one."""
        answers = {checked.verdict.answer for checked in self.builds}
        if Answer.BAD in answers:
            return ExitCode.REGRESSION
        return ExitCode.HOLDS if answers == {Answer.GOOD} else ExitCode.INCONCLUSIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One build of a stream and what is known of it.

    Attributes:
        build: The build.
        verdict: The answer to the question of a search; ``None`` where nobody looked.
        observation: What was seen, as deep as anybody looked.
        kernels: Architecture → whether it has any kernels for it, where a whole stream is shown.
    """

    build: Build
    verdict: Verdict | None = None
    observation: Observation | None = None
    kernels: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The answer of ``builds``: a stream, oldest first, and what the history knows of each build."""

    source: str
    entries: tuple[TimelineEntry, ...]
    cost: Cost

    exit_code: ClassVar[int] = ExitCode.HOLDS


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
        cost: What the answer cost.
        reproduce: The command that asks the same question again.
        finished_at: When the answer was found.
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
    cost: Cost
    reproduce: str
    finished_at: datetime

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
