"""A branch as GitHub's REST interface tells of it: https://docs.github.com/en/rest/commits/commits."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from bisector.errors import (
    BisectorError,
    ConfigError,
    RateLimited,
    ReversedRange,
    Unavailable,
    UnknownBuild,
    Unreadable,
)
from bisector.http import Http, Reply, host_of
from bisector.model import Commit, DependencyPin
from bisector.streams import line
from bisector.streams.commits import parse_source
from bisector.streams.deepgemm_pin import PIN_FILES, read_pin
from bisector.streams.paging import continues, next_link

_PAGE_LIMIT = 64 << 20  # the first page of a comparison carries the patches of up to 300 files
_FILE_LIMIT = 4 << 20
_PER_PAGE = 100
_TOKEN = re.compile(r"[!-~]+")
_EPOCH = re.compile(r"[0-9]{1,11}")
_MISSING = frozenset({404, 409, 410, 422})
"""409 is an empty repository, 422 a commit that is not there."""

_T = TypeVar("_T")


class _Signature(msgspec.Struct):
    date: Annotated[datetime, msgspec.Meta(tz=True)]


class _Described(msgspec.Struct):
    message: str
    committer: _Signature


class _Parent(msgspec.Struct):
    sha: str


class _Entry(msgspec.Struct):
    sha: str
    commit: _Described
    parents: list[_Parent]

    def read(self) -> Commit:
        return line.read_commit(
            sha=self.sha,
            parents=[parent.sha for parent in self.parents],
            committed_at=self.commit.committer.date,
            message=self.commit.message,
        )


class _Comparison(msgspec.Struct):
    status: str
    total_commits: int
    commits: list[_Entry]


class _File(msgspec.Struct):
    encoding: str
    content: str


class GitHub:
    """One branch of a repository on GitHub, or on a server that speaks like it.

    Args:
        http: The door to the network.
        repository: ``vllm-project/vllm``.
        api_base: Where the interface answers, such as ``https://HOST``.
        token: Raises the limit of 60 requests an hour; sent to that host only, and shown nowhere.
        branch: The branch that dates are asked of.

    Raises:
        UnknownSource: The repository cannot be one.
        ConfigError: The token cannot be one.
    """

    def __init__(
        self, http: Http, *, repository: str, api_base: str, token: str | None = None, branch: str = "main"
    ) -> None:
        self._http = http
        self._repository = parse_source(f"commits:{repository}")
        self._url = f"{api_base.rstrip('/')}/repos/{self._repository}"
        self._branch = branch
        self._headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if token:
            if not _TOKEN.fullmatch(token.strip()):
                raise ConfigError("The GitHub token has characters that no token has")
            self._headers["Authorization"] = f"Bearer {token.strip()}"

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        base, head = line.checked(base), line.checked(head)
        commits: list[Commit] = []
        missing = f"{self._repository} has no commit {base[:12]}, or none {head[:12]}"
        query = urlencode({"per_page": _PER_PAGE, "page": 1})
        async with aclosing(self._pages(f"compare/{base}...{head}?{query}", _Comparison, missing)) as pages:
            async for page in pages:
                if page.status == "identical":
                    return ()
                if page.status == "behind":
                    raise ReversedRange(f"{base[:12]} comes after {head[:12]}")
                commits += [entry.read() for entry in page.commits]
                if max(page.total_commits, len(commits)) > line.LONGEST:
                    raise line.too_long(f"between {base[:12]} and {head[:12]}")
        # A comparison also shows what came in by the side of merges.
        return line.between(commits, base=base, head=head)

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        query = {"sha": self._branch, "since": _moment(start), "per_page": _PER_PAGE}
        if until is not None:
            query["until"] = _moment(until)
        commits: list[Commit] = []
        missing = f"There is no repository {self._repository} with a branch {self._branch!r}"
        async with aclosing(self._pages(f"commits?{urlencode(query)}", list[_Entry], missing)) as pages:
            async for page in pages:
                commits += [entry.read() for entry in page]
                if len(commits) > line.LONGEST:
                    raise line.too_long(f"on {self._branch} since {start:%Y-%m-%d}")
        steps = line.main_line(commits, from_tip=until is None)
        return [
            commit for commit in steps if start <= commit.committed_at and (not until or commit.committed_at <= until)
        ]

    async def commit(self, sha: str) -> Commit:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        sha = line.checked(sha)
        reply = await self._get(f"{self._url}/commits/{sha}", limit=_PAGE_LIMIT)
        entry = self._decoded(reply, _Entry, f"{self._repository} has no commit {sha[:12]}")
        if not entry.sha.startswith(sha):
            raise Unreadable(f"{host_of(self._url)} describes another commit than {sha[:12]}")
        return entry.read()

    async def pin(self, sha: str) -> DependencyPin | None:
        """As :class:`~bisector.streams.commits.CommitHistory` says."""
        sha = line.checked(sha)
        found = False
        for path in PIN_FILES:
            reply = await self._get(f"{self._url}/contents/{quote(path)}?ref={sha}", limit=_FILE_LIMIT)
            if reply.status in _MISSING:
                continue
            found = True
            if pin := read_pin(self._content(reply, path)):
                return pin
        if not found:
            await self.commit(sha)  # without the commit there are no files either
        return None

    def _content(self, reply: Reply, path: str) -> str:
        file = self._decoded(reply, _File, path)
        try:
            if file.encoding == "base64":
                return base64.b64decode(file.content).decode(errors="replace")
        except ValueError as exc:
            raise Unreadable(f"{host_of(self._url)} sent {path} damaged") from exc
        raise Unreadable(f"{host_of(self._url)} sent {path} in an encoding of its own")

    async def _pages(self, listing: str, kind: type[_T], missing: str) -> AsyncGenerator[_T, None]:
        url = f"{self._url}/{listing}"
        # One page more than the longest range needs, so that it is seen to be too long.
        for _ in range(line.LONGEST // _PER_PAGE + 1):
            reply = await self._get(url, limit=_PAGE_LIMIT)
            yield self._decoded(reply, kind, missing)
            link = next_link(reply.headers.get("link", ""))
            if link is None:
                return
            url = continues(url, link)
        raise Unreadable(f"{host_of(url)} goes on with pages that hold little, without end")

    async def _get(self, url: str, *, limit: int) -> Reply:
        reply = await self._http.get(url, headers=self._headers, limit=limit)
        if reply.status != 200 and reply.status not in _MISSING:  # noqa: PLR2004 - HTTP's own number
            raise self._refusal(reply)
        return reply

    def _decoded(self, reply: Reply, kind: type[_T], missing: str) -> _T:
        host = host_of(self._url)
        if reply.status in _MISSING:
            raise UnknownBuild(missing, hint=f"{host} does not know it; check the spelling.")
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise Unreadable(
                f"{host} tells of {self._repository} in a form that is not GitHub's",
                hint="Check the address of the GitHub interface in the configuration.",
            ) from exc

    def _refusal(self, reply: Reply) -> BisectorError:
        host = host_of(self._url)
        another_way = "Wait until then, configure a GitHub token, or name a local clone with --repo."
        if reply.status in {403, 429} and reply.headers.get("x-ratelimit-remaining", "").strip() == "0":
            reset = reply.headers.get("x-ratelimit-reset", "").strip()
            if _EPOCH.fullmatch(reset):
                until = f"before {datetime.fromtimestamp(int(reset), UTC):%Y-%m-%d %H:%M:%S} UTC"
            else:
                until = "for now"
            return RateLimited(f"{host} answers no more requests {until}", hint=another_way)
        if reply.status == 403 and "retry-after" in reply.headers:  # noqa: PLR2004 - HTTP's own number
            return RateLimited(f"{host} asks to wait {reply.headers['retry-after'][:40]} s", hint=another_way)
        if reply.status == 401 and "Authorization" in self._headers:  # noqa: PLR2004 - HTTP's own number
            return ConfigError(f"{host} does not accept the GitHub token", hint="Configure a valid one, or none.")
        return Unavailable(f"{host} answered {reply.status} for {self._repository}")


def _moment(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
