"""The search itself: ends first, then the strategy, then what it all means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from bisector.errors import UnknownBuild
from bisector.model import (
    Answer,
    FoundBetween,
    Inconclusive,
    Loss,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Outcome,
    Verdict,
)
from bisector.search.bisection import bisect
from bisector.search.evidence import Evidence
from bisector.search.losses import visible_losses
from bisector.search.sweep import sweep
from bisector.search.walk import Walk
from bisector.search.words import Direction, Strategy


class Search:
    """Looks for one change in a stream of builds.

    Args:
        builds: Build ids, oldest first, each once.
        strategy: Sweep or bisect.
        direction: A loss, or its fix.
        good: A build said to be good; it is tested first.
        bad: A build said to be bad; it is tested first.
        limit: How many builds, counted from where the search starts, are looked at when the other end is open.
        ordinals: Numbers by build id that never change, such as the order in which builds were first seen. They let
            searches over different ranges choose the same builds. Without one, the place in ``builds`` counts.
        costs: What testing a build costs, by build id, in any unit above zero. A build that is not listed is taken to
            be as dear as the dearest that is. Only a bisection weighs them.

    Raises:
        UnknownBuild: An end is not among the builds.
    """

    def __init__(
        self,
        builds: Sequence[str],
        *,
        strategy: Strategy,
        direction: Direction = Direction.LOSS,
        good: str | None = None,
        bad: str | None = None,
        limit: int = 60,
        ordinals: Mapping[str, int] | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self._builds = tuple(builds)
        self._places = {build: place for place, build in enumerate(self._builds)}
        self._strategy = strategy
        self._direction = direction
        self._good = good
        self._bad = bad
        self._limit = limit
        self._ordinals = ordinals or {}
        self._costs = costs or {}
        self._evidence = Evidence()
        for end in (good, bad):
            if end is not None:
                self._require(end)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The last verdict of each build that has one; those of ``infra`` never count and are not here."""
        return self._evidence.verdicts

    @property
    def reversed(self) -> bool:
        """Whether the ends are given in the wrong order: a loss needs good before bad, a fix bad before good."""
        if self._good is None or self._bad is None:
            return False
        good, bad = self._places[self._good], self._places[self._bad]
        return bad < good if self._direction is Direction.LOSS else good < bad

    def record(self, build: str, verdict: Verdict) -> None:
        """Take a verdict; a later one for the same build replaces it, except that ``infra`` replaces nothing.

        Raises:
            UnknownBuild: It is not one of the builds.
        """
        self._require(build)
        self._evidence.record(build, verdict)

    def next(self, k: int = 1) -> tuple[str, ...]:
        """Up to k (at least one) builds worth testing now, the most useful first; none when there is an outcome."""
        step = self._step(k)
        return step if isinstance(step, tuple) else ()

    def outcome(self) -> Outcome | None:
        """What was found, or ``None`` while there is something to test."""
        step = self._step(1)
        return None if isinstance(step, tuple) else step

    def losses(self) -> tuple[Loss, ...]:
        """Every loss the verdicts show, in the range or outside it, oldest first.

        Losses whose beginning is not settled yet are left out. After a bisection, ``last_bad`` and ``regained_at`` are
        as far as was seen: untested builds may lie between those two.
        """
        return visible_losses((build, self._evidence.answer(build)) for build in self._builds)

    def window(self) -> tuple[str, str, int, int] | None:
        """The range still in question: builds before and after, builds between, tests left if one runs at a time.

        ``None`` while one side is unknown, or when the ends do not hold.
        """
        if self._question_ends() is not None:
            return None
        walk = self._walk()
        bracket = walk.bracket()
        if bracket is None:
            return None
        near, far = bracket
        if self._strategy is Strategy.SWEEP:
            steps = len(sweep(walk, len(walk.builds)))
        else:
            steps = len(walk.untested(range(near + 1, far))).bit_length()
        return (*walk.chronological(near, far), far - near - 1, steps)

    # --- one step ----------------------------------------------------------------------------------------------------

    def _step(self, k: int) -> Outcome | tuple[str, ...]:
        """Builds to test, or the outcome when there are none: what both ``next`` and ``outcome`` are made of."""
        step = self._follow(k)
        failure = self._evidence.failure()
        if failure is None or not isinstance(step, tuple):
            return step
        before, after = (self.window() or (None, None))[:2]
        return Inconclusive(reason=failure, before=before, after=after)

    def _follow(self, k: int) -> Outcome | tuple[str, ...]:
        if not self._builds:
            return Inconclusive(reason="there are no builds to look at")
        ends = dict.fromkeys(end for end in (self._good, self._bad) if end is not None)
        if untested := [end for end in ends if self._evidence.answer(end) is None]:
            return tuple(untested[:k])
        if (question := self._question_ends()) is not None:
            return question
        walk = self._walk()
        if self._direction is Direction.FIX and (still_bad := self._unfixed(walk)):
            return still_bad
        positions = (sweep if self._strategy is Strategy.SWEEP else bisect)(walk, k)
        return tuple(walk.builds[at] for at in positions) or self._conclude(walk)

    def _question_ends(self) -> Outcome | None:
        """What is wrong with the ends that were given, as far as they were tested."""
        expected = ((self._good, Answer.GOOD), (self._bad, Answer.BAD))
        failed, untestable = [], []
        for end, answer in expected:
            found = None if end is None else self._evidence.answer(end)
            if end is None or found is None or found is answer:
                continue
            if found is Answer.UNTESTABLE:
                untestable.append(f"{end}, given as {answer}, could not be tested")
            else:
                failed.append((end, answer, self.verdicts[end]))
        if failed:
            return NotReproduced(ends=tuple(failed))
        if untestable:
            return Inconclusive(reason=" and ".join(untestable))
        if self.reversed:
            order = "newer" if self._direction is Direction.LOSS else "older"
            return Inconclusive(reason=f"{self._good} is good and {order} than {self._bad}, which is bad")
        return None

    # --- the range ---------------------------------------------------------------------------------------------------

    def _walk(self) -> Walk:
        """The range as the direction and the ends have it; the package says which way is walked when."""
        good = None if self._good is None else self._places[self._good]
        bad = None if self._bad is None else self._places[self._bad]
        newest = len(self._builds) - 1
        near, far = Answer.BAD, Answer.GOOD
        if self._direction is Direction.LOSS:
            start, end = newest if bad is None else bad, good
        elif bad is not None:
            start, end = bad, good
        else:
            start, end = newest if good is None else good, None
            near, far = far, near
        backwards = self._direction is Direction.LOSS or bad is None
        if end is None:
            reach = self._limit - 1
            end = max(0, start - reach) if backwards else min(newest, start + reach)
        places = range(start, end - 1, -1) if backwards else range(start, end + 1)
        builds = tuple(self._builds[place] for place in places)
        dearest = max(self._costs.values(), default=1.0)
        return Walk(
            builds=builds,
            answers=tuple(self._evidence.answer(build) for build in builds),
            near=near,
            far=far,
            backwards=backwards,
            closed=good is not None and bad is not None,
            ordinals=tuple(self._ordinals.get(build, self._places[build]) for build in builds),
            costs=tuple(self._costs.get(build, dearest) for build in builds) if self._costs else None,
        )

    # --- what it means -----------------------------------------------------------------------------------------------

    def _unfixed(self, walk: Walk) -> Inconclusive | None:
        """The newest testable build being bad, when a fix is looked for from there."""
        first = walk.first()
        if walk.near is Answer.BAD or first is None or walk.answers[first] is not Answer.BAD:
            return None
        build = walk.builds[first]
        return Inconclusive(reason=f"{build}, the newest build that could be tested, is still bad", before=build)

    def _conclude(self, walk: Walk) -> Outcome:
        """The outcome when there is nothing left to test."""
        bracket = walk.bracket()
        if bracket is None:
            return self._without_change(walk)
        change = walk.name_change(*bracket)
        if self._strategy is Strategy.BISECT and walk.closed and isinstance(change, FoundBetween):
            answers = [walk.answers[at] for at in walk.tested()]
            if sum(pair == (walk.near, walk.far) for pair in pairwise(answers)) > 1:
                return self._sequence(walk)
        return change

    def _sequence(self, walk: Walk) -> NonMonotone:
        builds = sorted((walk.builds[at] for at in walk.tested()), key=self._places.__getitem__)
        return NonMonotone(seen=tuple((build, self.verdicts[build].answer) for build in builds))

    def _without_change(self, walk: Walk) -> Outcome:
        tested = walk.tested()
        if not tested:
            return Inconclusive(reason=f"none of the {len(walk.builds)} builds looked at could be tested")
        first = tested[0]
        if walk.answers[first] is Answer.BAD:
            return self._never_good(walk)
        if first > 0:
            newest, build = walk.builds[0], walk.builds[first]
            return Inconclusive(reason=f"{newest} could not be tested; {build} before it is good", before=build)
        return NoRegression(tested=len(tested))

    def _never_good(self, walk: Walk) -> Inconclusive:
        """Every build tested is bad: it was lost outside the range, or was never there, or is not fixed yet."""
        tested = walk.tested()
        last, furthest = walk.builds[-1], walk.builds[tested[-1]]
        if last == self._builds[0 if walk.backwards else -1]:
            extent = f"{last} is the {'oldest' if walk.backwards else 'newest'} build there is"
        else:
            extent = f"the limit of {self._limit} builds is reached at {last}"
        sampled = f" out of {len(walk.builds)}" if len(tested) < len(walk.builds) else ""
        looked_at = f"none of the {len(tested)} builds looked at{sampled} has it"
        if len(tested) == 1:
            looked_at = f"{furthest}, the only build looked at{sampled}, does not have it"
        reason = f"{looked_at}; {extent}"
        if walk.backwards:
            return Inconclusive(reason=reason, after=furthest)
        return Inconclusive(reason=reason, before=furthest)

    def _require(self, build: str) -> None:
        if build not in self._places:
            raise UnknownBuild(f"{build} is not among the builds of this search")
