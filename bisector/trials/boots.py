"""Boots: what happened when a build was started, and what was measured in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from bisector.model import Build
from bisector.results import Cause


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


MACHINE: Final = frozenset({BootOutcome.NO_HARDWARE, BootOutcome.UNAVAILABLE, BootOutcome.INTERRUPTED})
"""The outcomes that say nothing about a build."""


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
