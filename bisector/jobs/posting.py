"""Telling: what is due is kept first, then sent, in order, and noted as sent."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from bisector.errors import BisectorError
from bisector.ports import Clock, Gauge, Outbox, Receiver
from bisector.results import Night, Stage


class When(StrEnum):
    """When something is posted."""

    ALWAYS = "always"
    CHANGE = "change"
    NEVER = "never"


async def keep(night: Night, receivers: Sequence[Receiver], outbox: Outbox, *, when: When) -> None:
    """Put into the outbox what each receiver is to be told of a night."""
    for receiver in receivers:
        told = await outbox.keys(receiver.name)
        await outbox.put(receiver.name, receiver.drafts(night, told, always=when is When.ALWAYS))


async def deliver(receiver: Receiver, outbox: Outbox, clock: Clock) -> Stage:
    """Send what a receiver is due; what fails is kept, and what comes after it waits for it."""
    posts = await outbox.due(receiver.name)
    for number, post in enumerate(posts):
        # The time is taken before: between the sending and the note of it there should be as little as possible.
        at = clock.now()
        try:
            await receiver.send(post)
        except BisectorError as error:
            await outbox.failed(post, error.message)
            left = len(posts) - number
            return Stage(name=_name(receiver), ok=False, says=f"{error.message}; {left} kept for the next time")
        await outbox.sent(post, at=at)
    return Stage(name=_name(receiver), ok=True, says=f"{len(posts)} sent" if posts else "nothing to say")


async def rehearse(night: Night, receiver: Receiver, outbox: Outbox, *, when: When) -> Stage:
    """What a receiver would be sent."""
    if when is When.NEVER:
        return Stage(name=_name(receiver), ok=True, says="would send nothing")
    told = await outbox.keys(receiver.name)
    lines = [draft.says for draft in receiver.drafts(night, told, always=when is When.ALWAYS)]
    kept = len(await outbox.due(receiver.name))
    lines = [f"{kept} kept from before", *lines] if kept else lines
    return Stage(name=_name(receiver), ok=True, says=f"would send {'; '.join(lines) or 'nothing'}")


async def show(night: Night, gauge: Gauge, outbox: Outbox) -> Stage:
    """Let a gauge show the night."""
    try:
        await gauge.show(night, pending=len(await outbox.due()))
    except BisectorError as error:
        return Stage(name=_name(gauge), ok=False, says=error.message)
    return Stage(name=_name(gauge), ok=True, says="written")


async def try_out(receivers: Sequence[Receiver | Gauge]) -> tuple[Stage, ...]:
    """Reach every receiver without telling any news."""
    return tuple([await _try(receiver) for receiver in receivers])


async def _try(receiver: Receiver | Gauge) -> Stage:
    try:
        return Stage(name=receiver.name, ok=True, says=await receiver.try_out())
    except BisectorError as error:
        return Stage(name=receiver.name, ok=False, says=f"{error.message}. {error.hint}")


def _name(receiver: Receiver | Gauge) -> str:
    return f"post to {receiver.name}"
