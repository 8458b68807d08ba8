"""What a proof on the hardware is made of: boots, rungs of the context ladder, passes of a benchmark, comparisons.

Frozen, without behaviour beyond their own fields. A boot says what happened; what that means for a build is a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bisector.model import Build, Verdict
from bisector.results import Cause, ExitCode


class Phase(StrEnum):
    """How far a boot has come."""

    PULLED = "pulled"
    STARTED = "started"
    WEIGHTS = "weights"
    PROFILED = "profiled"
    GRAPHS = "graphs"
    HEALTHY = "healthy"
    ANSWERING = "answering"


class BootOutcome(StrEnum):
    """What happened to a boot. Only the first three say anything about the image and its profile."""

    ANSWERED = "answered"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    NO_HARDWARE = "no-hardware"
    UNAVAILABLE = "unavailable"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A phase, and how many seconds after the boot began it was reached."""

    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A backend that vLLM chose.

    Attributes:
        role: What for: ``attention``, ``NvFp4 MoE``.
        name: Which.
        among: The others it lists. That they are listed does not say that they work here.
    """

    role: str
    name: str
    among: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What a server's log says of itself; ``None`` where it does not say.

    Attributes:
        version: vLLM's own.
        tensor_parallel: Over how many GPUs each layer is spread.
        max_context: The longest context it serves, in tokens.
        kv_tokens: How many tokens the KV cache holds.
        concurrency: How many requests of ``max_context`` fit into it at once.
        estimated_context: The longest context that would fit, where it refused to serve more.
        eager: Without torch.compile and without CUDA graphs, by the flag.
        graphs: The mode of CUDA graphs that is in force; ``NONE`` also on devices that have none.
        captured: Whether graphs were really captured.
        backends: What it chose, in the order in which it says so.
        skipped_profiling: It measured no memory, so nothing is kept free for the activations of long prompts.
    """

    version: str | None = None
    tensor_parallel: int | None = None
    max_context: int | None = None
    kv_tokens: int | None = None
    concurrency: float | None = None
    estimated_context: int | None = None
    eager: bool | None = None
    graphs: str | None = None
    captured: bool = False
    backends: tuple[Chosen, ...] = ()
    skipped_profiling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass of the benchmark.

    Attributes:
        asked: Requests sent.
        completed: Requests answered; fewer than asked is no measurement.
        tpot_ms: Mean time per output token after the first.
        ttft_ms: Mean time to the first token.
        throughput: Output tokens per second, over all requests.
        warm_up: It only warmed the server, and is not counted.
        at: When it ended, UTC.
        raw: What the tool wrote, as JSON has it.
    """

    asked: int
    completed: int
    tpot_ms: float
    ttft_ms: float
    throughput: float
    warm_up: bool
    at: datetime
    raw: Mapping[str, object]

    @property
    def counts(self) -> bool:
        """It is warm, and every request was answered."""
        return not self.warm_up and self.completed == self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRequest:
    """The heaviest request, as it went.

    Attributes:
        prompt_tokens: How long the prompt was, as the server counted it.
        output_tokens: How many tokens came back.
        seconds: How long it took.
    """

    prompt_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One run of a container of a build.

    Attributes:
        id: In the history.
        build: The build.
        image: What was booted, by digest or id.
        context: The context it was started with, in tokens.
        started_at: UTC.
        seconds: How long it lived.
        outcome: What happened.
        reason: The same in a sentence, where it did not answer.
        phases: How far it came.
        facts: What its log says.
        causes: Why it failed, the root first.
        exit_code: The container's; ``None`` while it ran to the end of the boot.
        passes: The benchmark.
        heaviest: The heaviest request, where it was sent and answered.
    """

    id: str
    build: Build
    image: str | None
    context: int
    started_at: datetime
    seconds: float
    outcome: BootOutcome
    reason: str | None
    phases: tuple[Reached, ...]
    facts: LogFacts
    causes: tuple[Cause, ...]
    exit_code: int | None
    passes: tuple[Pass, ...] = ()
    heaviest: LongRequest | None = None

    @property
    def answered(self) -> bool:
        """It came up and did all that was asked of it."""
        return self.outcome is BootOutcome.ANSWERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A step of the context ladder.

    Attributes:
        context: In tokens.
        boots: Whether the server came up with it and answered.
        estimated: Where it did not: the longest context that the log says would fit.
    """

    context: int
    boots: bool
    estimated: int | None = None


class Standing(StrEnum):
    """How one build's speed compares with another's."""

    BETTER = "better"
    WORSE = "worse"
    TIE = "tie"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of a benchmark, on both sides of a comparison.

    Attributes:
        name: ``tpot_ms``, ``throughput`` or ``ttft_ms``.
        before: The median of the one.
        after: The median of the other.
        change: How much slower the other is, as a fraction: 0.2 is 20 % slower, whatever the number's direction.
        noise: How far ``change`` may be off, as a fraction, by the spread of the passes themselves.
        standing: What that means.
    """

    name: str
    before: float
    after: float
    change: float
    noise: float
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two builds, warm against warm; the first measure leads.

    Attributes:
        before: The build that is compared with.
        after: The build that is compared.
        passes: How many passes of each were counted.
        measures: TPOT, then what follows from it.
    """

    before: str
    after: str
    passes: tuple[int, int]
    measures: tuple[Measure, ...]

    @property
    def standing(self) -> Standing:
        """What the leading measure says."""
        return self.measures[0].standing


class Agreement(StrEnum):
    """Whether the hardware agrees with what the kernels predict of a good and a bad build."""

    CONFIRMED = "confirmed"
    BAD_BOOTS = "bad-boots"
    OTHER_CAUSE = "other-cause"
    GOOD_FAILS = "good-fails"
    BOTH_FAIL_ALIKE = "both-fail-alike"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All that was done with one build.

    Attributes:
        build: The build.
        expected: What its kernels say; ``None`` where nobody could tell.
        boots: Its boots, in order; the last is the one that counts.
        ladder: The contexts tried, in order.
        goal: The context the profile asks for.
    """

    build: Build
    expected: Verdict | None
    boots: tuple[Boot, ...]
    ladder: tuple[Rung, ...]
    goal: int

    @property
    def context(self) -> int | None:
        """The longest context it answered at."""
        return max((rung.context for rung in self.ladder if rung.boots), default=None)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Every pass of the benchmark that counts."""
        return tuple(each for boot in self.boots for each in boot.passes if each.counts)

    @property
    def holds(self) -> bool:
        """It answers at the profile's context, and did all that was asked of it there."""
        return self.context == self.goal and self.boots[-1].answered

    @property
    def tested(self) -> bool:
        """What happened says something about the build, not about the machine."""
        silent = {BootOutcome.NO_HARDWARE, BootOutcome.UNAVAILABLE, BootOutcome.INTERRUPTED}
        return bool(self.boots) and self.boots[-1].outcome not in silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The answer of ``confirm``.

    Attributes:
        profile: How the builds were served.
        host: Where.
        trials: The builds, in the order in which they were named.
        agreement: What a good and a bad build together show; ``None`` for any other set of builds.
        comparison: The speed of the last build against the first, where both were measured.
        seconds: Wall time.
    """

    profile: str
    host: str
    trials: tuple[Trial, ...]
    agreement: Agreement | None
    comparison: Comparison | None
    seconds: float

    @property
    def exit_code(self) -> int:
        """0 only if all holds; 4 where the machine and not the build was the reason; 3 where noise hides the answer."""
        if not all(trial.tested for trial in self.trials):
            return ExitCode.UNAVAILABLE
        if self.agreement is not None:
            return ExitCode.HOLDS if self.agreement is Agreement.CONFIRMED else ExitCode.REGRESSION
        if not all(trial.holds for trial in self.trials):
            return ExitCode.REGRESSION
        match self.comparison and self.comparison.standing:
            case Standing.WORSE:
                return ExitCode.REGRESSION
            case Standing.AMBIGUOUS:
                return ExitCode.INCONCLUSIVE
            case _:
                return ExitCode.HOLDS
