"""GitHub's REST interface, as much of it as tells of a branch: https://docs.github.com/en/rest/commits/commits."""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote, urlencode

from . import commits
from .commits import PIN_FILE, Commit, history, pin_file
from .issues import Issues
from .website import Answer, Request, Website, as_json

_UNPAGED: Final = 250  # commits a comparison shows when no page is asked for
_HOUR: Final = 3600


class GitHub:
    """Serves one repository's main branch, and the issues of another.

    Attributes:
        remaining: Requests left in this hour.
        issues: The issues of ``operators/vllm-watch``.
    """

    def __init__(self, repository: str, *, limit: int) -> None:
        self._limit = limit
        self._reset = int(time.time()) + _HOUR
        self.remaining = limit
        self.issues = Issues("operators/vllm-watch")
        self.site = Website(self._answer)
        place = rf"/repos/{re.escape(repository)}"
        self._routes: Sequence[tuple[str, Callable[[Request, re.Match[str]], Answer]]] = (
            (rf"{place}/compare/([^/]+?)\.\.\.([^/]+)", self._compare),
            (rf"{place}/commits", self._list),
            (rf"{place}/commits/([^/]+)/pulls", self._pulls),
            (rf"{place}/commits/([^/]+)", self._one),
            (rf"{place}/contents/(.+)", self._contents),
        )

    def _answer(self, request: Request) -> Answer:
        if self.remaining <= 0:
            message = "API rate limit exceeded for 127.0.0.1. (Authenticated requests get a higher rate limit.)"
            return as_json({"message": message}, status=403, headers=self._limits())
        self.remaining -= 1
        path = unquote(request.path)
        answers = (route(request, found) for pattern, route in self._routes if (found := re.fullmatch(pattern, path)))
        answer = next(answers, None) or self.issues.answer(request, path) or _missing("Not Found")
        return Answer(status=answer.status, headers={**answer.headers, **self._limits()}, body=answer.body)

    def _limits(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self._limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-used": str(self._limit - self.remaining),
            "x-ratelimit-reset": str(self._reset),
            "x-ratelimit-resource": "core",
        }

    def _compare(self, request: Request, found: re.Match[str]) -> Answer:
        base, head = commits.find(found[1]), commits.find(found[2])
        if base is None or head is None:
            return _missing("Not Found")
        between = history()[base.number + 1 : head.number + 1]
        page, size = _paging(request, default=_UNPAGED)
        behind = max(0, base.number - head.number)
        body = {
            "status": "ahead" if between else "behind" if behind else "identical",
            "ahead_by": len(between),
            "behind_by": behind,
            "total_commits": len(between),
            "base_commit": self._summary(base),
            "merge_base_commit": self._summary(base if between else head),
            "commits": [self._summary(commit) for commit in between[(page - 1) * size : page * size]],
        }
        if page == 1:
            body["files"] = _changed(base, head, between)
        return as_json(body, headers=self._links(request, page, size, len(between)))

    def _list(self, request: Request, _: re.Match[str]) -> Answer:
        head = commits.find(request.query.get("sha", "main"))
        if head is None:
            return _missing("Not Found")
        try:
            since, until = (_moment(request.query.get(name)) for name in ("since", "until"))
        except ValueError:
            return as_json({"message": "since and until are ISO 8601 moments"}, status=422)
        path = request.query.get("path")
        chosen = [
            commit
            for commit in reversed(history()[: head.number + 1])
            if (since is None or commit.at >= since)
            and (until is None or commit.at <= until)
            and (path is None or path in commit.files)
        ]
        page, size = _paging(request, default=30)
        shown = [self._summary(commit) for commit in chosen[(page - 1) * size : page * size]]
        return as_json(shown, headers=self._links(request, page, size, len(chosen)))

    def _one(self, _: Request, found: re.Match[str]) -> Answer:
        commit = commits.find(found[1])
        if commit is None:
            return as_json({"message": f"No commit found for SHA: {found[1]}"}, status=422)
        before = history()[max(0, commit.number - 1)]
        files = _changed(before, commit, [commit])
        return as_json({**self._summary(commit), "files": files})

    def _pulls(self, _: Request, found: re.Match[str]) -> Answer:
        commit = commits.find(found[1])
        if commit is None:
            return as_json({"message": f"No commit found for SHA: {found[1]}"}, status=422)
        pull = {
            "number": commit.pull,
            "title": commit.title.rpartition(" (#")[0],
            "state": "closed",
            "html_url": f"{self.site.url}/vllm-project/vllm/pull/{commit.pull}",
            "merged_at": _text(commit.at),
            "merge_commit_sha": commit.sha,
            "user": {"login": "contributor"},
        }
        return as_json([pull])

    def _contents(self, request: Request, found: re.Match[str]) -> Answer:
        commit = commits.find(request.query.get("ref", "main"))
        if commit is None:
            return _missing(f"No commit found for the ref {request.query['ref']}")
        if found[1] != PIN_FILE:
            return _missing("Not Found")
        content = pin_file(commit.pin).encode()
        if "raw" in request.headers.get("accept", ""):
            return Answer(headers={"Content-Type": "application/vnd.github.raw+json; charset=utf-8"}, body=content)
        return as_json(
            {
                "type": "file",
                "name": PIN_FILE.rpartition("/")[2],
                "path": PIN_FILE,
                "sha": _blob(content),
                "size": len(content),
                "encoding": "base64",
                "content": base64.encodebytes(content).decode(),  # in lines, as GitHub wraps it
            }
        )

    def _summary(self, commit: Commit) -> dict[str, Any]:
        person = {"name": "Contributor", "email": "contributor@example.org", "date": _text(commit.at)}
        parents = [history()[commit.number - 1].sha] if commit.number else []
        return {
            "sha": commit.sha,
            "commit": {
                "author": person,
                "committer": {"name": "GitHub", "email": "noreply@github.com", "date": _text(commit.at)},
                "message": f"{commit.title}\n\nSigned-off-by: Contributor <contributor@example.org>",
            },
            "html_url": f"{self.site.url}/vllm-project/vllm/commit/{commit.sha}",
            "author": {"login": "contributor"},
            "parents": [{"sha": sha} for sha in parents],
        }

    def _links(self, request: Request, page: int, size: int, total: int) -> Mapping[str, str]:
        last = -(-total // size)
        targets = {"prev": page - 1 if page > 1 else 0, "next": page + 1 if page < last else 0}
        targets |= {"first": 1 if page > 1 else 0, "last": last if page < last else 0}
        links = [
            f'<{self.site.url}{request.path}?{urlencode({**request.query, "page": number})}>; rel="{name}"'
            for name, number in targets.items()
            if number
        ]
        return {"Link": ", ".join(links)} if links else {}


def _changed(before: Commit, after: Commit, between: Sequence[Commit]) -> list[dict[str, Any]]:
    files = []
    for path in sorted({path for commit in between for path in commit.files}):
        old, new = (pin_file(before.pin), pin_file(after.pin)) if path == PIN_FILE else ("before\n", "after\n")
        patch = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:]
        if not patch:
            continue  # changed there and back
        added = sum(line.startswith("+") for line in patch)
        removed = sum(line.startswith("-") for line in patch)
        files.append(
            {
                "sha": _blob(new.encode()),
                "filename": path,
                "status": "modified",
                "additions": added,
                "deletions": removed,
                "changes": added + removed,
                "patch": "\n".join(patch),
            }
        )
    return files


def _paging(request: Request, *, default: int) -> tuple[int, int]:
    def number(name: str, otherwise: int) -> int:
        text = request.query.get(name, "")
        return int(text) if text.isdecimal() and int(text) else otherwise

    return number("page", 1), min(number("per_page", default), max(100, default))


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _missing(message: str) -> Answer:
    return as_json({"message": message, "status": "404"}, status=404)
