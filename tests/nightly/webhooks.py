"""A web server that takes what is posted to it, and remembers it."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.lab.website import Answer, Request, Website


class Webhooks:
    """A receiver of webhooks.

    Attributes:
        taken: What it took, oldest first: the path and the decoded body.
        delay: Seconds before each answer.
    """

    def __init__(self) -> None:
        self.taken: list[tuple[str, Any]] = []
        self.delay = 0.0
        self.site = Website(self._answer)

    @property
    def address(self) -> str:
        """Where it is, as apprise writes a plain webhook."""
        return self.site.url.replace("http://", "json://") + "/hook"

    @property
    def titles(self) -> list[str]:
        """The titles of what it took at the plain webhook."""
        return [body["title"] for path, body in self.taken if path == "/hook"]

    def refuse(self, status: int, *, times: int = 1) -> None:
        """Answer the next ones so, and take nothing."""
        self.site.interrupt(Answer(status=status), times=times)

    def _answer(self, request: Request) -> Answer:
        time.sleep(self.delay)
        self.taken.append((request.path, json.loads(request.body)))
        return Answer(body=b"ok")

    def close(self) -> None:
        """Stop."""
        self.site.close()
