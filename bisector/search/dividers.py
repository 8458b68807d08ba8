"""Where to cut a gap, so that the fewest tests remain and a later search can use them again."""

from __future__ import annotations

import math

from bisector.search.walk import Walk

_ZERO = 64
"""Zero ends in more zero bits than any ordinal a stream will reach."""


def dividers(walk: Walk, near: int, far: int, k: int) -> list[int]:
    """Up to k positions strictly between two others, cutting the gap into nearly equal parts.

    No part is longer than (k+1)^(r-1), where r = ⌈log_{k+1}(far - near)⌉, so r rounds always suffice. Within that bound
    a position near the ideal cut is preferred whose ordinal ends in the most zero bits: a search over a shifted range
    then meets mostly builds that were tested before (98 % instead of 40 %, for 2 % more tests). Where costs differ,
    the most information per cost is preferred instead, within the same bound.
    """
    gap = far - near
    k = min(k, gap - 1)
    longest = 1
    while longest * (k + 1) < gap:
        longest *= k + 1
    cuts: list[int] = []
    previous = near
    for number in range(1, k + 1):
        left = k - number
        nearest = max(previous + 1, far - (left + 1) * longest)
        furthest = min(previous + longest, far - left - 1)
        previous = _choose(walk, range(nearest, furthest + 1), near + gap * number / (k + 1), gap / (k + 1))
        cuts.append(previous)
    return cuts


def _choose(walk: Walk, allowed: range, ideal: float, part: float) -> int:
    """The best of the allowed positions around the ideal one; ``part`` is the length of each part it separates."""
    within = [at for at in allowed if abs(at - ideal) < part]
    costs = walk.costs
    if costs is not None and len({costs[at] for at in within}) > 1:
        return max(within, key=lambda at: (_information(at - ideal, part) / costs[at], -abs(at - ideal)))
    # With one cut, a third of a part on either side is the middle third of the gap.
    middle = [at for at in within if abs(at - ideal) <= part / 3]
    if not middle:
        return min(allowed, key=lambda at: abs(at - ideal))
    return max(middle, key=lambda at: (_trailing_zeros(walk.ordinals[at]), -abs(at - ideal)))


def _information(offset: float, part: float) -> float:
    """The bits gained from separating two parts that far off their common border."""
    share = 0.5 + offset / (2 * part)
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


def _trailing_zeros(ordinal: int) -> int:
    return (ordinal & -ordinal).bit_length() - 1 if ordinal else _ZERO
