"""What the tags of container images have in common, wherever they are listed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bisector.model import Build, CommitWheel, Digest, Platform

TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
"""https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests"""

NAME = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
"""One component of a repository's name, by the same page."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
_CUDA = re.compile(r"(?<![A-Za-z0-9])cu[0-9]{2,4}(?![A-Za-z0-9])")
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_FIRST_CONTAINERS = datetime(2013, 1, 1, tzinfo=UTC)


def read_digest(text: str | None) -> Digest | None:
    """The digest, when that is what the text is."""
    return Digest(text) if text and _DIGEST.fullmatch(text) else None


def believable(moment: datetime | None) -> datetime | None:
    """A date of an image, UTC; the years 1 and 1970, which reproducible builds write, are no dates."""
    if moment is None or moment.tzinfo is None:
        return None
    return moment.astimezone(UTC) if moment > _FIRST_CONTAINERS else None


def commit_wheel(commit: str | None, tag: str, platform: Platform) -> CommitWheel | None:
    """The wheel built along with the image of a commit; ``None`` when the commit is not known whole.

    Its variant is the CUDA that the tag names: ``cu129`` in ``cu129-nightly-…``; otherwise it is the default build.
    """
    if commit is None or not _FULL_COMMIT.fullmatch(commit):
        return None
    cuda = _CUDA.search(tag)
    return CommitWheel(commit=commit, platform=platform, variant=cuda[0] if cuda else None)


def oldest_first(builds: Iterable[Build]) -> Sequence[Build]:
    """By date, then by id; builds without a date come before all others, so that none is taken for the newest."""
    return sorted(builds, key=lambda build: (build.published_at or _BEGINNING, build.id))
