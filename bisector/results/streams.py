"""A stream and what is known of it, what a harvest brought in, and the history as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from bisector.model import (
    Build,
    Cost,
    KernelSummary,
    Observation,
    Verdict,
)
from bisector.results.codes import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One build of a stream and what is known of it.

    Attributes:
        build: The build.
        verdict: The answer to the question of a search; ``None`` where nobody looked.
        observation: What was seen, as deep as anybody looked.
        summary: The same in short, where a whole stream is shown.
        kernels: Architecture → whether it has any kernels for it, where a whole stream is shown.
    """

    build: Build
    verdict: Verdict | None = None
    observation: Observation | None = None
    summary: KernelSummary | None = None
    kernels: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The answer of ``builds``: a stream, oldest first, and what the history knows of each build."""

    source: str
    entries: tuple[TimelineEntry, ...]
    cost: Cost

    exit_code: ClassVar[int] = ExitCode.HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """A build that did not tell what it has, and why."""

    build: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestedSource:
    """What came of one stream for one platform; builds by id.

    Attributes:
        source: The stream.
        platform: Whose files.
        listed: How many builds it lists now.
        new: Those never listed before.
        gone: Those the history remembers and the stream no longer lists.
        read: Those read now.
        untold: Those that could not be understood; they are tried again when that may have changed.
        left: Those still to be read.
        error: Why the stream could not be listed, if it could not.
    """

    source: str
    platform: str
    listed: int = 0
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    untold: tuple[Untold, ...] = ()
    left: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """The answer of ``harvest``."""

    sources: tuple[HarvestedSource, ...]
    cost: Cost
    finished_at: datetime

    @property
    def exit_code(self) -> int:
        """4 when a stream could not be listed or builds were left behind for want of an answer."""
        failed = any(source.error for source in self.sources)
        return ExitCode.UNAVAILABLE if failed else ExitCode.HOLDS


class HealthState(StrEnum):
    """How something is: it works, something else will do, or nothing works without it."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How one thing is.

    Attributes:
        subject: What was tried.
        state: How it is.
        says: What was found, in a phrase.
        hint: What to do about it.
        needed_for: What does not work without it.
    """

    subject: str
    state: HealthState
    says: str
    hint: str | None = None
    needed_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The answer of ``doctor``."""

    health: tuple[Health, ...]
    finished_at: datetime

    @property
    def exit_code(self) -> int:
        """4 when something that everything needs does not work."""
        failed = any(health.state is HealthState.FAIL for health in self.health)
        return ExitCode.UNAVAILABLE if failed else ExitCode.HOLDS


class Subject(StrEnum):
    """What ``history`` can be asked for."""

    BUILDS = "builds"
    KERNELS = "kernels"
    LOSSES = "losses"
    BOOTS = "boots"
    BENCHMARKS = "benchmarks"
    RUNS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a row must fulfil to be shown; ``None`` lets every row pass.

    Attributes:
        arch: The architecture it is about.
        since: Not before this moment, UTC: published, lost or regained, or started.
        source: The stream.
        build: The build's id; ``*`` stands for any letters.
        op: The operation.
    """

    arch: str | None = None
    since: datetime | None = None
    source: str | None = None
    build: str | None = None
    op: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table: named columns, and rows of plain values.

    Attributes:
        columns: The names.
        rows: As many values each as there are names.
        more: There would have been more rows than are shown.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float | bytes | None, ...]]
    more: bool = False

    exit_code: ClassVar[int] = ExitCode.HOLDS
