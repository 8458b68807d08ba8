"""Every loss that a series of answers shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bisector.model import Answer, Loss


def visible_losses(answers: Iterable[tuple[str, Answer | None]]) -> tuple[Loss, ...]:
    """The losses in (build, answer) pairs, oldest first; ``None`` marks a build that was not tested.

    A change from good to bad across a build that was not tested is left out: where it happened is not known yet.
    ``last_bad`` and ``regained_at`` are the last build seen bad and the first seen good after it; a bisection may have
    left builds between those two untested.
    """
    losses: list[Loss] = []
    last_good: str | None = None
    untestable: list[str] = []
    lasting = False
    for build, answer in answers:
        match answer:
            case Answer.GOOD:
                if lasting:
                    losses[-1] = replace(losses[-1], regained_at=build)
                last_good, untestable, lasting = build, [], False
            case Answer.BAD:
                if lasting:
                    losses[-1] = replace(losses[-1], last_bad=build)
                elif last_good is not None:
                    losses.append(
                        Loss(last_good=last_good, lost_at=build, last_bad=build, untestable=tuple(untestable))
                    )
                    lasting = True
                last_good = None
            case Answer.UNTESTABLE:
                untestable.append(build)
            case _:
                last_good = None
    return tuple(losses)
