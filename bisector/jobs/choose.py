"""Which build of a stream a person means: by id, commit, date or digest. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from bisector.errors import UnknownBuild, UsageError
from bisector.model import Build

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_SHORTEST_DIGEST = 12


def choose(builds: Sequence[Build], spelling: str, *, commits: Mapping[str, str] | None = None) -> Build:
    """The one build that a spelling means.

    A date means the newest build published on that day or before it, UTC.

    Args:
        builds: The stream, oldest first.
        spelling: A build id, a whole spec, a commit of at least 7 digits, ``YYYY-MM-DD``, or ``sha256:`` with at
            least 12 digits.
        commits: Commits the history knows, by build id, beside those the stream states itself.

    Raises:
        UnknownBuild: None fits; the message lists near ones.
        UsageError: Several fit.
    """
    text = spelling.strip()
    for build in builds:
        if text in (build.id, build.spec):
            return build
    if day := parse_day(text):
        end = day + timedelta(days=1)
        if earlier := [build for build in builds if build.published_at and build.published_at < end]:
            return max(earlier, key=lambda build: (build.published_at, builds.index(build)))
        raise UnknownBuild(f"No build was published on or before {text}.")
    matches = [build for build in builds if _means(build, text, (commits or {}).get(build.id))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{text} fits {len(matches)} builds: {', '.join(build.id for build in matches[:5])}.")
    near = difflib.get_close_matches(text, [build.id for build in builds], n=3, cutoff=0.5)
    where = builds[-1].source if builds else "an empty stream"
    raise UnknownBuild(
        f"There is no build {text!r} in {where}.",
        hint=f"Near ones: {', '.join(near)}." if near else None,
    )


def parse_day(text: str) -> datetime | None:
    """Midnight UTC of ``YYYY-MM-DD``; ``None`` for anything else."""
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None


def _means(build: Build, text: str, commit: str | None) -> bool:
    if text.startswith("sha256:") and len(text) >= len("sha256:") + _SHORTEST_DIGEST:
        return build.digest is not None and build.digest.startswith(text)
    if not _COMMIT.fullmatch(text):
        return False
    return any(_same_commit(text, known) for known in (build.commit, commit) if known)


def _same_commit(one: str, other: str) -> bool:
    """Abbreviations of the same commit: the shorter is how the longer begins."""
    return one.startswith(other) or other.startswith(one)
