"""Test build after build from the near end."""

from __future__ import annotations

from bisector.search.walk import Walk


def sweep(walk: Walk, k: int) -> list[int]:
    """Up to k positions to test next; none once the change nearest to the start is bracketed without a hole.

    A range with two given ends is tested throughout, so that every other change in it is seen as well.
    """
    last = len(walk.builds) - 1
    if not walk.closed and (bracket := walk.bracket()):
        last = bracket[1]
    return walk.untested(range(last + 1))[:k]
