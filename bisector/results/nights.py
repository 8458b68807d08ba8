"""What a night's report is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from bisector.model import (
    Build,
    Cost,
    Loss,
    Verdict,
)
from bisector.results.codes import ExitCode
from bisector.results.searches import Finding
from bisector.results.streams import (
    HarvestedSource,
    TimelineEntry,
)


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
