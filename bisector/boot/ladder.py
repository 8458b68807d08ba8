"""Which context to try next: doubling up to the goal, then halving down to the longest that boots. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.trials import Rung


def next_context(rungs: Sequence[Rung], *, start: int, goal: int, step: int) -> int | None:
    """The next context to boot with, in tokens; ``None`` when the longest that boots is known.

    The longest is known when the goal boots, when even the start does not, or when what boots and what does not lie
    no more than a step apart. Where a refusal comes with an estimate, that is tried first, and then one step more:
    two boots instead of many, and the estimate is put to the proof.

    Args:
        rungs: What was tried, in any order.
        start: The first context.
        goal: The one that is wanted.
        step: Contexts between start and goal are multiples of it, as far as no estimate says otherwise.
    """
    longest = max((rung.context for rung in rungs if rung.boots), default=None)
    refused = min((rung.context for rung in rungs if not rung.boots), default=None)
    if refused is None:
        if longest is None:
            return min(start, goal)
        return min(2 * longest, goal) if longest < goal else None
    if longest is None or refused - longest <= step:
        return None
    estimates = {rung.estimated for rung in rungs if rung.estimated is not None}
    for estimate in sorted(estimates, reverse=True):
        if longest < estimate < refused:
            return estimate
        if longest == estimate and estimate + step < refused:
            return estimate + step
    middle = (longest + refused) // 2 // step * step
    return middle if longest < middle < refused else (longest + refused) // 2
