"""One living issue for each loss, on GitHub: https://docs.github.com/en/rest/issues/issues."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bisector.errors import ConfigError, RateLimited, Unavailable, Unreadable
from bisector.http import Http, Reply, host_of
from bisector.ports import Draft, Post
from bisector.report.posting.issue import NOW_BEGINS, NOW_ENDS, IssuePost, Step, issue_drafts
from bisector.results import Night

_LIMIT = 16 << 20
_PER_PAGE = 100
_MOST_PAGES = 20
_LONGEST: Final = 65_536  # what GitHub takes as a body
_TOKEN = re.compile(r"[!-~]+")
_NOW = re.compile(f"{re.escape(NOW_BEGINS)}.*?{re.escape(NOW_ENDS)}", re.DOTALL)


class _Issue(msgspec.Struct):
    number: int
    state: str
    title: str
    body: str | None = None
    pull_request: dict[str, Any] | None = None


class _Comment(msgspec.Struct):
    body: str | None = None


class IssueTracker:
    """The issues of a repository, on GitHub or a server that speaks like it.

    Args:
        name: What the configuration calls it.
        http: The door to the network.
        repository: ``OWNER/NAME``.
        api_base: Where the interface answers.
        label: What its issues are found by, together with a mark in their body.
        token: Gives the token; ``None``: there is none.
    """

    def __init__(
        self, name: str, http: Http, *, repository: str, api_base: str, label: str, token: Callable[[], str | None]
    ) -> None:
        self.name = name
        self._http = http
        self._repository = repository
        self._url = f"{api_base.rstrip('/')}/repos/{repository}"
        self._label = label
        self._token = token

    def drafts(self, night: Night, told: Collection[str], *, always: bool) -> Sequence[Draft]:  # noqa: ARG002
        """A step for each issue that has to change: one is opened, edited or closed, whatever else is posted."""
        return [draft for draft in issue_drafts(night, told) if draft.key not in told]

    async def send(self, post: Post) -> None:
        """Take a step. Taken again, it changes nothing: the issue is found by its mark."""
        try:
            step = msgspec.json.decode(post.body, type=IssuePost)
        except msgspec.DecodeError as error:
            raise Unreadable(f"A post to {self.name} in the history cannot be understood") from error
        issue = await self._find(step.marker)
        match step.step:
            case Step.OPEN:
                if issue is None:
                    await self._open(step)
            case Step.EDIT:
                if issue is not None and issue.state == "open":
                    await self._edit(issue, step)
            case Step.CLOSE:
                if issue is not None and issue.state == "open":
                    await self._comment(issue, step)
                    await self._edit(issue, step, state="closed")

    def check(self) -> None:
        """Whether there is a token that could be one."""
        self._checked_token()

    async def try_out(self) -> str:
        """Ask whether issues can be written there, and write none."""
        told = self._decoded(await self._ask("GET", self._url), dict[str, Any])
        rights = told.get("permissions")
        if isinstance(rights, dict) and not rights.get("push", rights.get("triage")):
            raise ConfigError(
                f"The token may not label issues of {self._repository}", hint="Give it write access to issues."
            )
        if told.get("has_issues") is False:
            raise ConfigError(f"{self._repository} has no issues", hint="Turn them on in its settings.")
        return f"reached {self._repository}; an issue is opened when kernels are lost"

    async def _find(self, marker: str) -> _Issue | None:
        for page in range(1, _MOST_PAGES + 1):
            query = f"labels={quote(self._label, safe='')}&state=all&per_page={_PER_PAGE}&page={page}"
            issues: list[_Issue] = self._decoded(await self._ask("GET", f"{self._url}/issues?{query}"), list[_Issue])
            for issue in issues:
                if issue.pull_request is None and marker in (issue.body or ""):
                    return issue
            if len(issues) < _PER_PAGE:
                return None
        return None

    async def _open(self, step: IssuePost) -> None:
        body = f"{step.marker}\n{_now(step)}\n\n{step.evidence}"
        await self._ask(
            "POST",
            f"{self._url}/issues",
            {"title": step.title, "body": body[:_LONGEST], "labels": [self._label]},
        )

    async def _edit(self, issue: _Issue, step: IssuePost, *, state: str | None = None) -> None:
        old = issue.body or ""
        body = _NOW.sub(lambda _: _now(step), old, count=1) if _NOW.search(old) else f"{old}\n\n{_now(step)}"
        change = {} if body == old else {"body": body[:_LONGEST]}
        change |= {"state": state} if state else {}
        if change:
            await self._ask("PATCH", f"{self._url}/issues/{issue.number}", change)

    async def _comment(self, issue: _Issue, step: IssuePost) -> None:
        address = f"{self._url}/issues/{issue.number}/comments"
        mark = f"{step.marker[:-4]}:{step.step} -->"
        said = self._decoded(await self._ask("GET", f"{address}?per_page={_PER_PAGE}"), list[_Comment])
        if not any(mark in (comment.body or "") for comment in said):
            await self._ask("POST", address, {"body": f"{mark}\n{step.comment}"})

    async def _ask(self, method: str, url: str, content: Mapping[str, object] | None = None) -> Reply:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {self._checked_token()}",
        }
        if content is None:
            reply = await self._http.get(url, headers=headers, limit=_LIMIT)
        else:
            body = msgspec.json.encode(content)
            headers["Content-Type"] = "application/json"
            reply = await self._http.send(method, url, body=body, headers=headers, limit=_LIMIT)
        if reply.status in {200, 201}:
            return reply
        raise self._refusal(reply)

    def _refusal(self, reply: Reply) -> ConfigError | Unavailable:
        host = host_of(self._url)
        match reply.status:
            case 401:
                return ConfigError(f"{host} does not accept the token of {self.name}", hint="Configure a valid one.")
            case 403 | 429 if reply.headers.get("x-ratelimit-remaining", "").strip() == "0":
                return RateLimited(f"{host} answers no more requests for now")
            case 403 | 404 | 410:
                return ConfigError(
                    f"{host} does not let {self.name} write issues of {self._repository} ({reply.status})",
                    hint="Check the repository's name, that it has issues, and what the token may do.",
                )
            case _:
                return Unavailable(f"{host} answered {reply.status} for {self._repository}")

    def _decoded(self, reply: Reply, kind: Any) -> Any:
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unavailable(f"{host_of(self._url)} answers in a form that is not GitHub's") from error

    def _checked_token(self) -> str:
        token = (self._token() or "").strip()
        if not token:
            raise ConfigError(
                f"{self.name} has no token, and GitHub takes issues from nobody unknown",
                hint='Set GITHUB_TOKEN, or token-file in [[post]] kind = "github".',
            )
        if not _TOKEN.fullmatch(token):
            raise ConfigError(f"The token of {self.name} has characters that no token has")
        return token


def _now(step: IssuePost) -> str:
    return f"{NOW_BEGINS}\n{step.now}\n{NOW_ENDS}"
