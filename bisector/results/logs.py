"""What a log or a launch line says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from bisector.results.codes import ExitCode


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
