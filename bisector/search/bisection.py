"""Test few builds: find both sides of a change, then halve what lies between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from bisector.model import Answer
from bisector.search.dividers import dividers
from bisector.search.walk import Walk

_GALLOP = 4
"""How much further each look back goes; never worse than doubling for changes six or more builds away."""

_STRIDE = 2
"""How far apart builds are looked at while nothing shows that there was a change at all."""

_SAMPLES_PER_DOUBLING = 3
"""How many builds a range may cost, per doubling of its length, before an unexplained change is given up."""


def bisect(walk: Walk, k: int) -> list[int]:
    """Up to k positions to test next; none when the nearest visible change is closed, or none came in sight."""
    if wanted := _distinct(_look_back(walk), k):
        return wanted
    if bracket := walk.bracket():
        return _distinct(_narrow(walk, *bracket, k), k)
    return _sample(walk, k)


def _distinct(positions: Iterable[int], k: int) -> list[int]:
    return list(islice(dict.fromkeys(positions), k))


def _look_back(walk: Walk) -> Iterator[int]:
    """Positions at growing distance that have to be tested before both sides of a change are known.

    The end in effect comes first. When it shows the far answer already, the change nearest to it may be over again, and
    growing steps would pass over it: every other build is looked at until one shows the near answer, so that only an
    interval of a single build can hide. From there on the steps grow towards the far answer.
    """
    start = walk.first()
    if start is None:
        return
    if walk.answers[start] is None:
        yield start
    last = len(walk.builds) - 1
    near = next((at for at in walk.tested() if walk.answers[at] is walk.near), None)
    if near is None:
        for position in range(start + _STRIDE, last + 1, _STRIDE):
            yield from _land(walk, position, start, last)
    if near is not None and walk.bracket() is None:
        yield from _gallop(walk, near, last)


def _gallop(walk: Walk, start: int, end: int) -> Iterator[int]:
    """Positions to test among those 1, 4, 16, … from the start and the end itself, or one neighbour of each."""
    distance = 1
    while start + distance < end:
        yield from _land(walk, start + distance, start, end)
        distance *= _GALLOP
    if start < end:
        yield from _land(walk, end, start, end)


def _land(walk: Walk, position: int, near: int, far: int) -> Iterator[int]:
    """The position if it has to be tested; beside an untestable one, a neighbour within the two bounds.

    A position in a row of untestable ones gives nothing: its neighbours are likely to be no better.
    """
    if walk.answers[position] is None:
        yield position
    elif walk.answers[position] is Answer.UNTESTABLE:
        neighbours = [at for at in (position + 1, position - 1) if near <= at <= far]
        if all(walk.answers[at] is not Answer.UNTESTABLE for at in neighbours):
            yield from walk.untested(neighbours)[:1]


def _narrow(walk: Walk, near: int, far: int, k: int) -> Iterator[int]:
    """Positions to test between the two sides of a change, the most useful first.

    Untestable builds come alone or in rows. Beside a lone one a neighbour is tried. Around a row the testable ends are
    what is certain, so the gap is narrowed from the ends towards it: with 30 untestable in a row among 180, 14 tests on
    average where halving what is left takes 17. What lies among the untestable comes last, and nothing is left out.
    """
    skipped = [at for at in range(near + 1, far) if walk.answers[at] is Answer.UNTESTABLE]
    if any(later - earlier == 1 for earlier, later in pairwise(skipped)):
        sides = [(near, skipped[0]), (skipped[-1], far)]
        for start, end in sorted(sides, key=lambda side: side[0] - side[1]):
            yield from dividers(walk, start, end, k)
    else:
        for cut in dividers(walk, near, far, k):
            yield from _land(walk, cut, near, far)
    rest = walk.untested(range(near + 1, far))
    middle = len(rest) // 2
    yield from sorted(rest, key=lambda at: abs(at - rest[middle]))


def _sample(walk: Walk, k: int) -> list[int]:
    """The middles of the widest untested gaps, while there is a change to explain and the allowance lasts.

    Nothing but the far answer, or nothing that could be tested, leaves nothing to explain.
    """
    if all(walk.answers[at] is walk.far for at in walk.tested()):
        return []
    settled = [-1, *(at for at, answer in enumerate(walk.answers) if answer is not None), len(walk.builds)]
    allowance = _SAMPLES_PER_DOUBLING * len(walk.builds).bit_length() - (len(settled) - 2)
    gaps = sorted((near - far, near, far) for near, far in pairwise(settled) if far - near > 1)
    return [dividers(walk, near, far, 1)[0] for _, near, far in gaps[: max(0, min(k, allowance))]]
