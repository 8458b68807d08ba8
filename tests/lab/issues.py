"""The issues of one repository, as GitHub serves them: https://docs.github.com/en/rest/issues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .website import Answer, Request, as_json

TOKEN: Final = "ghp_lab0123456789"  # noqa: S105 - it opens nothing but the lab


@dataclass(slots=True)
class Issue:
    """An issue, with everything that ever happened to it."""

    number: int
    title: str
    body: str
    labels: list[str]
    state: str = "open"
    comments: list[str] = field(default_factory=list)
    edits: int = 0


class Issues:
    """Lists, opens, edits and comments; only for who has the token.

    Attributes:
        all: Every issue, oldest first.
    """

    def __init__(self, repository: str) -> None:
        self._place = f"/repos/{repository}"
        self.all: list[Issue] = []

    def answer(self, request: Request, path: str) -> Answer | None:
        """The answer, or ``None`` where it is not about issues."""
        found = re.fullmatch(rf"{re.escape(self._place)}(/issues)?(?:/(\d+))?(/comments)?", path)
        if found is None:
            return None
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return as_json({"message": "Bad credentials", "status": "401"}, status=401)
        content = json.loads(request.body or b"{}")
        if not found[1]:
            return as_json({"full_name": self._place, "has_issues": True, "permissions": {"push": True}})
        if not found[2]:
            return self._open(content) if request.method == "POST" else self._list(request.query)
        issue = self.all[int(found[2]) - 1]
        if found[3]:
            return self._comments(issue, request, content)
        if request.method == "PATCH":
            issue.edits += 1
            issue.title, issue.body = content.get("title", issue.title), content.get("body", issue.body)
            issue.state = content.get("state", issue.state)
        return as_json(_shown(issue))

    def _open(self, content: Mapping[str, Any]) -> Answer:
        issue = Issue(len(self.all) + 1, content["title"], content["body"], content["labels"])
        self.all.append(issue)
        return as_json(_shown(issue), status=201)

    def _list(self, query: Mapping[str, str]) -> Answer:
        wanted = set(filter(None, query.get("labels", "").split(",")))
        state = query.get("state", "open")
        chosen = [
            issue for issue in reversed(self.all) if wanted <= set(issue.labels) and state in {"all", issue.state}
        ]
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        return as_json([_shown(issue) for issue in chosen[(page - 1) * size : page * size]])

    def _comments(self, issue: Issue, request: Request, content: Mapping[str, Any]) -> Answer:
        if request.method == "POST":
            issue.comments.append(content["body"])
            return as_json({"id": len(issue.comments), "body": content["body"]}, status=201)
        return as_json([{"id": number, "body": body} for number, body in enumerate(issue.comments)])


def _shown(issue: Issue) -> dict[str, Any]:
    return {
        "number": issue.number,
        "state": issue.state,
        "title": issue.title,
        "body": issue.body,
        "labels": [{"name": name} for name in issue.labels],
        "user": {"login": "bisector"},
    }
