"""A branch as a clone on this machine tells of it, by way of git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio

from bisector.errors import ReversedRange, Unavailable, UnknownBuild, Unreadable, UsageError
from bisector.model import Commit, DependencyPin
from bisector.streams import line
from bisector.streams.deepgemm_pin import PIN_FILES, read_pin

_FORMAT = "--format=%H%x1f%P%x1f%ct%x1f%s"
_PATIENCE = 120
_USUAL_BRANCHES = ("refs/remotes/upstream/main", "refs/remotes/origin/main", "refs/heads/main", "HEAD")
"""Where main is newest: in a fork's clone it is the one called upstream, and the local one is rarely moved."""
_LEADING_ELSEWHERE = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What git's hooks and aliases set for their own repository; ``git rev-parse --local-env-vars`` lists them."""


class Clone:
    """One branch in a local clone. Only git's own files are read: no work tree is needed, and none is touched.

    Args:
        directory: The clone, or a directory in it.
        branch: The branch that dates are asked of; by default the newest ``main`` it knows of.
    """

    def __init__(self, directory: Path, *, branch: str | None = None) -> None:
        self._directory = directory
        self._branch = branch

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        first, last = await self.commit(base), await self.commit(head)
        if first.sha == last.sha:
            return ()
        commits = await self._log(f"{first.sha}..{last.sha}", f"--max-count={line.LONGEST + 1}")
        if not commits:
            raise ReversedRange(f"{first.sha[:12]} comes after {last.sha[:12]}")
        if len(commits) > line.LONGEST:
            raise line.too_long(f"between {first.sha[:12]} and {last.sha[:12]}")
        return line.between(commits, base=first.sha, head=last.sha)

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        tip = await self._tip()
        limits = [f"--max-count={line.LONGEST + 1}", f"--since={start.astimezone(UTC).isoformat()}"]
        if until is not None:
            limits.append(f"--until={until.astimezone(UTC).isoformat()}")
        commits = await self._log(tip, *limits)
        if len(commits) > line.LONGEST:
            raise line.too_long(f"on the branch since {start:%Y-%m-%d}")
        return commits[::-1]

    async def commit(self, sha: str) -> Commit:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        sha = line.checked(sha)
        found = await self._run("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}")
        commits = await self._log(found.strip(), "--max-count=1") if found else ()
        if not commits or not commits[0].sha.startswith(sha):  # the digits may be the name of a branch
            raise UnknownBuild(
                f"{self._directory} has no commit {sha[:12]}", hint="Run `git fetch` in it, or `git fetch --unshallow`."
            )
        return commits[0]

    async def pin(self, sha: str) -> DependencyPin | None:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        commit = await self.commit(sha)
        for path in PIN_FILES:
            text = await self._run("cat-file", "blob", f"{commit.sha}:{path}")
            if text and (pin := read_pin(text)):
                return pin
        return None

    async def _tip(self) -> str:
        for name in (self._branch,) if self._branch else _USUAL_BRANCHES:
            found = await self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if found:
                return found.strip()
        raise UnknownBuild(f"{self._directory} has no branch {self._branch or 'main'!r}", hint="Run `git fetch` in it.")

    async def _log(self, revision: str, *limits: str) -> Sequence[Commit]:
        """Newest first."""
        arguments = ("--first-parent", "--encoding=UTF-8", "--no-color", "-z", _FORMAT, *limits, revision, "--")
        listed = await self._run("log", *arguments)
        return [self._read(record) for record in listed.split("\0") if record]

    def _read(self, record: str) -> Commit:
        try:
            sha, parents, seconds, message = record.split("\x1f", 3)
            when = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError, OSError) as exc:
            raise Unreadable(f"git describes a commit of {self._directory} in a way bisector does not know") from exc
        return line.read_commit(sha=sha, parents=parents.split(), committed_at=when, message=message)

    async def _run(self, *arguments: str) -> str:
        """What git prints; nothing when it refuses, which it does for whatever is not there."""
        done = await self._git(*arguments)
        if done.returncode == 0:
            return done.stdout.decode(errors="replace")
        asked = await self._git("rev-parse", "--git-dir")
        if asked.returncode != 0:
            said = asked.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
            raise UsageError(f"{self._directory} is no git repository", hint=f"git says: {said[0]}")
        return ""

    async def _git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self._directory), "--no-pager", "-c", "log.showSignature=false", *arguments]
        try:
            with anyio.fail_after(_PATIENCE):
                return await anyio.run_process(command, env=_environment(), check=False)
        except TimeoutError as exc:
            raise Unavailable(f"git does not come to an end in {self._directory}") from exc
        except OSError as exc:
            raise UsageError(
                f"git cannot be run ({exc.strerror})", hint="Install git, or leave out --repo to ask GitHub."
            ) from exc


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LEADING_ELSEWHERE}
    return {**kept, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
