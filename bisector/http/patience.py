"""Trying again, and giving up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
import stamina

from bisector.errors import Unavailable
from bisector.http.failures import Again, host_of

# Its own hooks print to stdout when structlog is importable; stdout is for results.
stamina.instrumentation.set_on_retry_hooks([])

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to insist; all times in seconds.

    Attributes:
        attempts: Requests in all, the first one too.
        first_wait: Before the second attempt; doubled before each further one.
        longest_wait: What doubling stops at.
        jitter: Up to so much is added by chance, so that many clients do not return together.
        longest_asked: The longest wait a server may ask for; above it the answer is ``RateLimited``.
        longest_answer: What one answer, or one part of a file, may take however slowly it trickles.
        longest_download: The same for a whole file.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 8.0
    jitter: float = 0.5
    longest_asked: float = 60.0
    longest_answer: float = 300.0
    longest_download: float = 3600.0

    async def insist(self, url: str, attempt: Callable[[], Awaitable[_T]], *, within: float) -> _T:
        """What an attempt gives, tried again while it fails in ways that may pass; each may take ``within`` seconds.

        Raises:
            Unavailable: It did not pass, or another error of the attempt.
        """

        async def bounded() -> _T:
            try:
                with anyio.fail_after(within):
                    return await attempt()
            except TimeoutError as exc:
                raise Again(Unavailable(f"{host_of(url)} is too slow: no whole answer in {within:.0f} s")) from exc

        trying = stamina.AsyncRetryingCaller(
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.first_wait,
            wait_max=self.longest_wait,
            wait_jitter=self.jitter,
        )
        try:
            return await trying(_pause, bounded)
        except Again as again:
            raise again.error from again.__cause__


def _pause(error: Exception) -> bool | float:
    """Whether stamina should try again, and after how long."""
    if not isinstance(error, Again):
        return False
    _log.debug("%s; trying again", error.error.message)
    return True if error.wait is None else error.wait
