"""``doctor``: what works from here, and what to do where it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from bisector.errors import BisectorError
from bisector.ports import Clock
from bisector.results import Checkup, Health, HealthState

PATIENCE = 25.0
"""Seconds after which something that does not answer is taken not to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Something to try.

    Attributes:
        subject: What is tried: ``Docker Hub``.
        attempt: Tries it, and says in a phrase what it found; raises what went wrong.
        needed_for: What does not work without it.
        vital: Whether bisector is of no use without it; otherwise a failure is a warning.
    """

    subject: str
    attempt: Callable[[], Awaitable[str]]
    needed_for: str
    vital: bool = False


async def doctor(examinations: Sequence[Examination], clock: Clock) -> Checkup:
    """Try everything, at the same time, each for itself."""
    found: dict[int, Health] = {}

    async def examine(number: int, one: Examination) -> None:
        found[number] = await _try(one)

    async with anyio.create_task_group() as tasks:
        for number, one in enumerate(examinations):
            tasks.start_soon(examine, number, one)
    return Checkup(health=tuple(found[number] for number in sorted(found)), finished_at=clock.now())


async def _try(one: Examination) -> Health:
    worse = HealthState.FAIL if one.vital else HealthState.WARN
    try:
        with anyio.fail_after(PATIENCE):
            says = await one.attempt()
    except TimeoutError:
        says, hint = f"no answer in {PATIENCE:.0f} s", "Check the connection, and any proxy on the way."
    except BisectorError as error:
        says, hint = error.message, error.hint
    else:
        return Health(subject=one.subject, state=HealthState.OK, says=says)
    return Health(subject=one.subject, state=worse, says=says, hint=hint, needed_for=one.needed_for)
