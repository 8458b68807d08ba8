"""Questions that were asked, and what their answers cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bisector.model.outcomes import (
    Verdict,
)


class RunState(StrEnum):
    """How a run stands. One that was killed stays ``running``, without an end."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know, so that it can be asked again.

    Attributes:
        command: ``find-regression``.
        arguments: Everything the command needs, as JSON has it.
        question: The same in words.
        source: The stream, where there is one.
        arch: The architecture, where there is one.
        resumes: The run that this one goes on with.
    """

    command: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    question: str | None = None
    source: str | None = None
    arch: str | None = None
    resumes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """One verdict of a run, and when it was given."""

    build: str
    verdict: Verdict
    from_history: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One question that was asked, as far as it came.

    Attributes:
        id: Sorts by time.
        asked: The question.
        state: How it stands.
        started_at: UTC.
        ended_at: UTC; ``None`` while it runs, and for good when it was killed.
        host: The machine it ran on.
        pid: Its process there.
        outcome: Its answer in a word.
        result: Its answer as it was printed, in JSON.
        steps: Its verdicts in the order in which it got them.
    """

    id: str
    asked: Asked
    state: RunState
    started_at: datetime
    ended_at: datetime | None
    host: str
    pid: int
    outcome: str | None
    result: Mapping[str, object] | None
    steps: tuple[RunStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an answer cost.

    Attributes:
        builds: Builds in the range.
        probes: Artifacts opened.
        from_history: Builds answered without opening anything.
        requests: HTTP requests.
        bytes: Bytes of their bodies.
        seconds: Wall time.
    """

    builds: int = 0
    probes: int = 0
    from_history: int = 0
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How often a registry lets manifests be asked for, by the headers of its last answer that had them.

    Attributes:
        limit: Requests in a window.
        remaining: Requests left in it.
        window: Its length in seconds, when the registry says.
    """

    limit: int
    remaining: int
    window: int | None = None
