"""Proofs: what the boots of one or several builds show together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bisector.model import Build, Verdict
from bisector.results import ExitCode, Flag
from bisector.trials.boots import MACHINE, Boot, Pass


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
        return bool(self.boots) and self.boots[-1].outcome not in MACHINE


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A boot without one workaround.

    Attributes:
        flag: The workaround.
        needed: Whether the server fails without it; ``None`` where the machine, not the build, was the reason.
        boot: The boot.
    """

    flag: Flag
    needed: bool | None
    boot: Boot


@dataclass(frozen=True, slots=True, kw_only=True)
class Omissions:
    """The answer of ``audit --try``.

    Attributes:
        profile: How the build was served.
        host: Where.
        whole: The boot with every workaround; where it failed, nothing was left out.
        tried: The boots without one of them.
    """

    profile: str
    host: str
    whole: Boot
    tried: tuple[Omission, ...]

    @property
    def exit_code(self) -> int:
        """A needless workaround is news, not a failure; 1 where the profile itself does not boot."""
        if self.whole.outcome in MACHINE or any(each.needed is None for each in self.tried):
            return ExitCode.UNAVAILABLE
        return ExitCode.HOLDS if self.whole.answered else ExitCode.REGRESSION
