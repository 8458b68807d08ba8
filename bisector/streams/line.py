"""A branch as a line: from its newest commit back along first parents. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from bisector.errors import UnknownBuild, Unreadable, UsageError
from bisector.model import Commit

LONGEST: Final = 10_000
"""Commits of a branch that are looked at in one question: more than half a year of vLLM."""

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_FULL = re.compile(r"[0-9a-f]{40}")
_PULL_REQUEST = re.compile(r"\(#([0-9]{1,9})\)$")
_LONGEST_TITLE = 300


def checked(sha: str) -> str:
    """A commit as a person wrote it, in lower case.

    Raises:
        UnknownBuild: It is not 7 to 40 hexadecimal digits.
    """
    text = sha.strip().lower()
    if not _COMMIT.fullmatch(text):
        raise UnknownBuild(f"{sha!r} is no commit", hint="Write a commit with 7 to 40 hexadecimal digits.")
    return text


def read_commit(*, sha: str, parents: Sequence[str], committed_at: datetime, message: str) -> Commit:
    """A commit from what its source says of it.

    Raises:
        Unreadable: Its name or its parent's is none.
    """
    if not all(map(_FULL.fullmatch, (sha, *parents[:1]))):
        raise Unreadable("A commit was described by a name that is not 40 hexadecimal digits")
    first_line = next(iter(message.strip().splitlines()), "")
    title = "".join(letter if letter.isprintable() else " " for letter in first_line).strip()
    numbered = _PULL_REQUEST.search(title)
    return Commit(
        sha=sha,
        parent=parents[0] if parents else None,
        committed_at=committed_at.astimezone(UTC),
        title=title[:_LONGEST_TITLE],
        pull_request=int(numbered[1]) if numbered else None,
    )


def between(commits: Sequence[Commit], *, base: str, head: str) -> Sequence[Commit]:
    """The steps from ``base``, left out, to ``head``, kept, oldest first; whatever else came along is dropped.

    Args:
        commits: In any order, at least all that lie between.
        base: A full or abbreviated commit.
        head: Likewise.

    Raises:
        UsageError: The branch that ends with ``head`` does not lead through ``base``.
    """
    head_commit = next((commit for commit in commits if commit.sha.startswith(head)), None)
    steps = _back_from(head_commit, commits) if head_commit else []
    if not steps or not (steps[-1].parent or "").startswith(base):
        raise UsageError(
            f"{base[:12]} does not lie on the branch that leads to {head[:12]}",
            hint="Name two commits of the same branch, the older one first.",
        )
    return steps[::-1]


def main_line(newest_first: Sequence[Commit], *, from_tip: bool) -> Sequence[Commit]:
    """The branch within a list that may also hold commits merged from elsewhere, oldest first.

    Args:
        newest_first: The list, by date.
        from_tip: Whether the first one is known to be the branch's own. Where a list was cut off at its new end, a
            merged commit can stand there; then the longest line in the list is taken for the branch.
    """
    if not newest_first:
        return ()
    tip = newest_first[0]
    if not from_tip:
        lengths: dict[str, int] = {}
        for commit in reversed(newest_first):
            lengths[commit.sha] = 1 + lengths.get(commit.parent or "", 0)
        tip = max(newest_first, key=lambda commit: lengths[commit.sha])
    return _back_from(tip, newest_first)[::-1]


def too_long(what: str) -> UsageError:
    """The error for a range of more than :data:`LONGEST` commits."""
    return UsageError(
        f"More than {LONGEST:,} commits lie {what}", hint="Name a narrower range, with a later beginning or --good."
    )


def _back_from(tip: Commit, commits: Sequence[Commit]) -> list[Commit]:
    left = {commit.sha: commit for commit in commits}
    steps: list[Commit] = []
    current: Commit | None = tip
    while current is not None:
        steps.append(current)
        # What was passed is taken out, so that a forged circle ends too.
        left.pop(current.sha, None)
        current = left.get(current.parent) if current.parent else None
    return steps
