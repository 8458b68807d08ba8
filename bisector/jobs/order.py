"""In which order builds of commits came: by the branch, which no second push can change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bisector.errors import BisectorError
from bisector.model import Build, CommitWheel
from bisector.ports import CommitHistory

_BEFORE_ITS_PUSH = timedelta(days=3)
"""How long before its first push a nightly's commit may have come onto the branch."""

_EARLIEST = datetime.min.replace(tzinfo=UTC)


async def in_commit_order(builds: Sequence[Build], history: CommitHistory | None) -> tuple[Sequence[Build], str | None]:
    """The builds in the order of their commits, oldest first, and why that is not so, if it is not.

    A registry knows when a tag was last pushed. A second push of the same tag moves it, and some tags have no date at
    all; a build out of its place would look like a loss that was regained.
    """
    dates = [build.published_at for build in builds if build.published_at and build.commit]
    if history is None or not dates or any(isinstance(build.location, CommitWheel) for build in builds):
        return builds, None
    try:
        commits = await history.since(min(dates) - _BEFORE_ITS_PUSH)
    except BisectorError as error:
        return builds, f"Builds are ordered by when they were pushed: {error.message}."
    position = {commit.sha: number for number, commit in enumerate(commits)}
    moments = {commit.sha: commit.committed_at for commit in commits}
    placed = sorted(
        (build for build in builds if build.commit in position), key=lambda build: position[build.commit or ""]
    )
    dated = [
        build if build.published_at else replace(build, published_at=moments[build.commit or ""]) for build in placed
    ]
    others = [build for build in builds if build.commit not in position]
    return _merge(dated, others), None


def _merge(placed: Sequence[Build], others: Sequence[Build]) -> Sequence[Build]:
    """Put builds whose commit is not on the branch where their date belongs, without disturbing the rest."""
    merged = list(placed)
    for build in sorted(others, key=lambda build: build.published_at or _EARLIEST):
        moment = build.published_at or _EARLIEST
        at = sum(1 for other in merged if (other.published_at or _EARLIEST) <= moment)
        merged.insert(at, build)
    return merged
