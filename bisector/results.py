"""What each job answers with: one value a command, rendered by the report room in many forms.

Frozen, without behaviour beyond their own fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, TypeAlias

from bisector.arch import Arch
from bisector.model import (
    Answer,
    Build,
    Commit,
    Cost,
    DependencyPin,
    Depth,
    EvidenceKind,
    Found,
    FoundBetween,
    Gate,
    Inconclusive,
    KernelSummary,
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
    """A build, what was seen in it, and where that came from.

    Attributes:
        build: The build, with the digest it was found to have.
        observation: What was seen.
        from_history: Nothing was read for it.
        by_witness: It was seen in the wheel of the build's commit, not in the build itself.
    """

    build: Build
    observation: Observation
    from_history: bool
    by_witness: bool = False


def carried_instead(build: Build, observation: Observation | None) -> str | None:
    """The commit a stale build really carries, when its name promises another; ``None`` when they agree.

    A tag is a promise: nightlies were once built from a cached layer with an older wheel
    (https://github.com/vllm-project/vllm/issues/44759).
    """
    if observation is None or observation.evidence is not EvidenceKind.IMAGE:
        return None
    promised, carried = build.commit, observation.provenance.commit
    if promised is None or carried is None or promised.startswith(carried) or carried.startswith(promised):
        return None
    return carried


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


class Layer(StrEnum):
    """Where a fault lies."""

    KERNELS = "kernels"
    MEMORY = "memory"
    LAUNCH = "launch"
    DISTRIBUTED = "distributed"
    RUNTIME = "runtime"
    MODEL = "model"
    PERFORMANCE = "performance"
    REGISTRY = "registry"


class Certainty(StrEnum):
    """How much a log proves of a cause."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


UNKNOWN_CAUSE = "unknown"
"""The identifier of the answer that names no cause and quotes the most telling lines instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a server failed, or is slow.

    Attributes:
        id: What scripts know it by: ``kv_cache_too_small``.
        layer: Where the fault lies.
        arch: The architecture it is about, where the log tells.
        title: The cause in one sentence.
        line: The line that shows it, from 1; 0 for an empty log.
        excerpt: That line, without what carried it; several lines where no signature matched.
        meaning: What is going on.
        advice: What to do.
        certainty: How much the log proves.
    """

    id: str
    layer: Layer
    arch: str | None
    title: str
    line: int
    excerpt: str
    meaning: str
    advice: str
    certainty: Certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer of ``diagnose``.

    Attributes:
        causes: The root cause first, then what else it may be; empty where nothing is wrong.
        lines: How many lines were read.
    """

    causes: tuple[Cause, ...]
    lines: int

    @property
    def exit_code(self) -> int:
        """A named cause is an answer, and so is a log in which nothing is wrong."""
        unknown = any(cause.id == UNKNOWN_CAUSE for cause in self.causes)
        return ExitCode.INCONCLUSIVE if unknown else ExitCode.HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A workaround in a launch command.

    Attributes:
        flag: As it stands there: ``--enforce-eager``, ``VLLM_USE_DEEP_GEMM=0``.
        kind: ``flag`` or ``environment``.
        why: Why people set it.
        remove_when: When it may go.
        cost: What it costs while it stays.
        line: Where it stands, from 1.
    """

    flag: str
    kind: str
    why: str
    remove_when: str
    cost: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The answer of ``audit``.

    Attributes:
        flags: The workarounds, in the order in which they stand.
        elsewhere: Files the command reads more settings from, which were not looked at.
    """

    flags: tuple[Flag, ...]
    elsewhere: tuple[str, ...] = ()

    exit_code: ClassVar[int] = ExitCode.HOLDS


class NewsKind(StrEnum):
    """What is worth a word in the morning."""

    LOST = "lost"
    REGAINED = "regained"
    STOPPED = "stopped"
    RESUMED = "resumed"
    SLOWER = "slower"
    DISAGREES = "disagrees"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing that changed since the last night.

    Attributes:
        kind: What it is.
        key: The same for the same news on every night, so that it is told once: ``lost:SOURCE:sm120:BUILD``.
        source: The stream.
        arch: The architecture, where it is about one.
        sentence: The news in one sentence, with the build to pin where there is one.
        finding: The search that found it, where there was one.
    """

    kind: NewsKind
    key: str
    source: str
    sentence: str
    arch: str | None = None
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchNight:
    """How an architecture stands in a stream this morning.

    Attributes:
        arch: The architecture watched.
        verdict: Whether the newest build that could be tested has its kernels.
        newest: That build.
        pin: The newest build known to have them.
        losses: Every loss the history knows, oldest first.
    """

    arch: str
    verdict: Verdict
    newest: Build | None
    pin: Build | None
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNight:
    """How a stream stands this morning.

    Attributes:
        source: The stream.
        platform: Whose files.
        entries: Its builds, oldest first, with what is known of each.
        archs: The architectures watched.
        newest_at: When its newest build was published.
        harvest: What the crawler did.
    """

    source: str
    platform: str
    entries: tuple[TimelineEntry, ...]
    archs: tuple[ArchNight, ...]
    newest_at: datetime | None
    harvest: HarvestedSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of the night's work, and how it went."""

    name: str
    ok: bool
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The answer of ``nightly``, and what every form of the report is made from.

    Attributes:
        at: When the work was done, UTC.
        streams: How each stream stands.
        news: What changed; empty: nothing did.
        stages: What was done and what failed.
        not_measured: What nobody looked at, a sentence each.
        cost: What it cost.
    """

    at: datetime
    streams: tuple[StreamNight, ...]
    news: tuple[News, ...]
    stages: tuple[Stage, ...]
    not_measured: tuple[str, ...]
    cost: Cost

    exit_code: ClassVar[int] = ExitCode.HOLDS


Result: TypeAlias = Check | Checkup | Difference | Finding | Harvest | Inspection | Night | Plan | Rows | Timeline
"""What a command answers with; each knows its exit code."""
