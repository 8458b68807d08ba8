"""The commits of a branch as builds: each is read from the wheel that was built of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from bisector.errors import UnknownSource
from bisector.model import Build, Commit, CommitWheel, Platform
from bisector.ports import Clock, CommitHistory

_SOURCE = re.compile(r"commits:(?P<repository>[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})")
_USUAL_SPAN = timedelta(days=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Commits by when they came onto the branch; without an end, up to the present."""

    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Commits from ``base`` to ``head``, both included."""

    base: str
    head: str


Span: TypeAlias = Dates | Ends


class Every(StrEnum):
    """How dense the stream is: each commit, or the last one of each UTC day."""

    COMMIT = "commit"
    DAY = "day"


def parse_source(spelling: str) -> str:
    """The repository that ``commits:OWNER/NAME`` names.

    Raises:
        UnknownSource: That is not how one is spelled.
    """
    found = _SOURCE.fullmatch(spelling)
    if not found:
        raise UnknownSource(f"{spelling!r} names no repository", hint="Write it as commits:vllm-project/vllm.")
    return found["repository"]


class CommitStream:
    """The commits of a branch within a span, each with the wheel that would have been built of it.

    Whether there is such a wheel is known only when it is looked for.

    Args:
        history: The branch.
        repository: How it is spelled: ``vllm-project/vllm``.
        platform: Whose wheels.
        clock: Tells where the last sixty days begin.
        span: Which commits; by default those of the last sixty days.
        every: How many of them. The ends of a span by commits are always kept.
        variant: The wheels' CUDA variant, such as ``cu129``; ``None`` is the default build.
    """

    def __init__(
        self,
        history: CommitHistory,
        *,
        repository: str,
        platform: Platform,
        clock: Clock,
        span: Span | None = None,
        every: Every = Every.COMMIT,
        variant: str | None = None,
    ) -> None:
        self._history = history
        self._repository = repository
        self._platform = platform
        self._clock = clock
        self._span = span
        self._every = every
        self._variant = variant

    @property
    def source(self) -> str:
        """The canonical spelling: ``commits:vllm-project/vllm``."""
        return f"commits:{self._repository}"

    async def builds(self) -> Sequence[Build]:
        """The commits in the order of the branch, oldest first.

        Raises:
            UnknownBuild: There is no such repository or commit.
            ReversedRange: The span ends before it begins.
            UsageError: The span is too long, or its ends are not on one branch.
            Unavailable: The history does not answer.
        """
        match self._span or Dates(since=self._clock.now() - _USUAL_SPAN):
            case Dates(since=since, until=until):
                commits = await self._history.since(since, until)
                ends: set[str] = set()
            case Ends(base=base, head=head):
                commits = [await self._history.commit(base), *await self._history.between(base, head)]
                ends = {commits[0].sha, commits[-1].sha}
        if self._every is Every.DAY:
            kept = ends | {commit.sha for commit in _last_of_each_day(commits)}
            commits = [commit for commit in commits if commit.sha in kept]
        return [self._build(commit) for commit in commits]

    def _build(self, commit: Commit) -> Build:
        return Build(
            id=commit.sha,
            source=self.source,
            spec=f"{self.source}@{commit.sha}",
            platform=self._platform,
            location=CommitWheel(commit=commit.sha, platform=self._platform, variant=self._variant),
            published_at=commit.committed_at,
            commit=commit.sha,
        )


def _last_of_each_day(commits: Sequence[Commit]) -> Sequence[Commit]:
    last: dict[date, Commit] = {commit.committed_at.date(): commit for commit in commits}
    return tuple(last.values())
