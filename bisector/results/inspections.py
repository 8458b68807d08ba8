"""What one build holds, what two builds differ in, and whether a build may be adopted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bisector.arch import Arch
from bisector.model import (
    Answer,
    Build,
    Cost,
    EvidenceKind,
    Gate,
    Observation,
    Verdict,
)
from bisector.results.codes import ExitCode


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
