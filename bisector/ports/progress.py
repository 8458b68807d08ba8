"""The time, what is counted, and what is told while a job runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from bisector.model import (
    Build,
    Verdict,
)


class Clock(Protocol):
    """The time. Nothing else in bisector asks the machine for it."""

    def now(self) -> datetime:
        """The present, UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class Meter(Protocol):
    """Counts what goes over the network."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegan:
    """A question is being recorded under this id."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A stream was listed."""

    source: str
    builds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """A build is about to be read."""

    build: Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A build got its verdict, from history or by reading."""

    build: Build
    verdict: Verdict
    from_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """The search knows its range better; ``steps_left`` is an estimate."""

    before: str
    after: str
    between: int
    steps_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootStep:
    """A boot has come a step further.

    Attributes:
        build: Whose image it is.
        context: With which context, in tokens; ``None`` while there is no container yet.
        step: The step, in a few words.
        seconds: Since the boot began.
        passing: Many of its kind follow, and only the last matters.
    """

    build: Build
    context: int | None
    step: str
    seconds: float
    passing: bool = False


Event: TypeAlias = RunBegan | Listed | Probing | Probed | Narrowed | BootStep


class Progress(Protocol):
    """Is told what happens while a job runs."""

    def __call__(self, event: Event, /) -> None:
        """Take note; must not raise and must not wait."""
