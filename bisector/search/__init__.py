"""Which build to test next, and what the tests so far mean.

A search is a pure function of the verdicts recorded so far: ``next()`` proposes, ``record()`` takes a verdict,
``outcome()`` answers as soon as nothing is left to propose. So resume, replay, parallel probing and prefetch need
nothing of their own. Nothing here reads a clock, a file or the network.

What a search promises:

- ``Found`` names two neighbours of the stream that were both tested. ``FoundBetween`` names two with nothing between
  them but builds known to be untestable. No pair is ever named across a build that was not tested.
- With several losses the latest is the answer, and ``Search.losses()`` lists every one the verdicts show.
- ``NoRegression`` needs the newest build of the range to be good. If it cannot be tested, what it lost is unknown.
  A sweep has tested the whole range; a bisection every other build of it, so that a loss of one build can hide.
- Ends that were given are tested first, both of them, and an end that does not hold is ``NotReproduced``.

The direction decides from where the range is walked. A loss is looked for from the bad end, or from the newest build,
back in time. A fix with a known bad build is looked for from there forward: the first build that is good again. A fix
without one is looked for from the good end, or the newest build, back: the latest change from bad to good; if the
newest build that can be tested is still bad, nothing is fixed and nothing is named.

``NonMonotone`` is rare on purpose. Several changes in the verdicts of a bisection are no reason to withhold the latest
when its two sides are neighbours: that pair is true whatever else happened. Only when two given ends assert a single
change, more than one is seen, and untestable builds hide the latest, there is no single answer; the sequence of tested
builds is then the most that can be said. A verdict that is overruled later needs no outcome of its own: the search goes
on from what is then known.

Measured reasons: between two ends a bisection costs ⌈log2 n⌉ and cannot see a loss that was regained; a sweep costs n
and sees all.
"""

from bisector.search.search import Search
from bisector.search.words import Direction, Strategy

__all__ = ["Direction", "Search", "Strategy"]
