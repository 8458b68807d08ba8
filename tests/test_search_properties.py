"""What holds for every history: promises of the search, checked on random ones against an independent oracle."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model import (
    Answer,
    Found,
    FoundBetween,
    Inconclusive,
    Loss,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Outcome,
    Verdict,
)
from bisector.search import Direction, Search, Strategy

few = settings(deadline=None, max_examples=120)

VERDICTS = {
    "G": Verdict(answer=Answer.GOOD),
    "B": Verdict(answer=Answer.BAD),
    "U": Verdict(answer=Answer.UNTESTABLE),
}
MIRRORED = str.maketrans("GB", "BG")
"""Good and bad exchanged: a fix is a loss in a mirrored history read backwards."""

letters = st.text("GBU", min_size=1, max_size=60) | st.lists(
    st.tuples(st.sampled_from("GGBBU"), st.integers(1, 15)), min_size=1, max_size=6
).map(lambda runs: "".join(letter * length for letter, length in runs)[:60])
strategies = st.sampled_from(Strategy)
directions = st.sampled_from(Direction)
widths = st.integers(1, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A history, and how it is searched."""

    truth: str
    strategy: Strategy
    direction: Direction
    good: str | None
    bad: str | None
    limit: int
    costs: dict[str, float] | None

    def search(self) -> Search:
        return Search(
            [str(place) for place in range(len(self.truth))],
            strategy=self.strategy,
            direction=self.direction,
            good=self.good,
            bad=self.bad,
            limit=self.limit,
            costs=self.costs,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Given ends hold as a rule, but not always, and may be reversed."""
    truth = draw(letters)
    ends: dict[str, str | None] = {}
    for name, letter in (("good", "G"), ("bad", "B")):
        hold = [str(place) for place, found in enumerate(truth) if found == letter]
        anything = st.sampled_from([str(place) for place in range(len(truth))])
        ends[name] = draw(st.none() | (st.sampled_from(hold) if hold else st.none()) | anything)
    return Case(
        truth=truth,
        strategy=draw(strategies),
        direction=draw(directions),
        good=ends["good"],
        bad=ends["bad"],
        limit=draw(st.integers(1, 70)),
        costs=draw(st.none() | st.dictionaries(st.sampled_from("0123456789"), st.floats(0.1, 100), max_size=5)),
    )


def run(search: Search, truth: str, k: int = 1) -> tuple[Outcome, list[str]]:
    """Run to the end, checking on the way what holds in every state."""
    tested: list[str] = []
    while proposals := search.next(k):
        assert search.outcome() is None
        assert search.next(k) == proposals
        assert len(set(proposals)) == len(proposals) <= k
        assert not set(proposals) & set(search.verdicts)
        for build in proposals:
            search.record(build, VERDICTS[truth[int(build)]])
            tested.append(build)
        assert len(tested) <= len(truth)
    outcome = search.outcome()
    assert outcome is not None
    return outcome, tested


def named(change: tuple[int, int] | None) -> tuple[str, str] | None:
    return None if change is None else (str(change[0]), str(change[1]))


def pair(outcome: Outcome) -> tuple[str, str] | None:
    return (outcome.before, outcome.after) if isinstance(outcome, Found | FoundBetween) else None


def latest_change(
    truth: str, before: str, after: str, start: int = 0, stop: int | None = None
) -> tuple[int, int] | None:
    """The last place in the slice where one letter follows another, with nothing but untestable ones between."""
    found = [match.span(1) for match in re.finditer(f"(?=({before}U*{after}))", truth[start:stop])]
    return (start + found[-1][0], start + found[-1][1] - 1) if found else None


# --- on every history, for every way to search -----------------------------------------------------------------------


@few
@given(cases(), widths)
def test_a_named_pair_is_true_and_nothing_between_it_was_left_untested(case: Case, k: int) -> None:
    truth, search = case.truth, case.search()
    outcome, tested = run(search, truth, k)
    if isinstance(outcome, Found | FoundBetween):
        before, after = int(outcome.before), int(outcome.after)
        inside = [str(place) for place in range(before + 1, after)]
        assert truth[before] + truth[after] in {"GB", "BG"}
        assert set(truth[before + 1 : after]) <= {"U"}
        assert {outcome.before, outcome.after, *inside} <= set(tested)
        assert inside == list(outcome.untestable if isinstance(outcome, FoundBetween) else ())
        assert isinstance(outcome, FoundBetween) == bool(inside)
        assert search.window() == (outcome.before, outcome.after, len(inside), 0)


@few
@given(cases(), widths)
def test_every_loss_listed_is_true_and_the_named_one_is_among_them(case: Case, k: int) -> None:
    truth, search = case.truth, case.search()
    outcome, tested = run(search, truth, k)
    losses = search.losses()
    for loss in losses:
        good, lost, last = int(loss.last_good), int(loss.lost_at), int(loss.last_bad)
        assert (truth[good], truth[lost], truth[last]) == ("G", "B", "B")
        assert good < lost <= last
        assert list(loss.untestable) == [str(place) for place in range(good + 1, lost)]
        assert {loss.last_good, loss.lost_at, loss.last_bad, *loss.untestable} <= set(tested)
        if loss.regained_at is not None:
            assert truth[int(loss.regained_at)] == "G"
            assert last < int(loss.regained_at)
    if (found := pair(outcome)) and truth[int(found[0])] == "G":
        assert found in [(loss.last_good, loss.lost_at) for loss in losses]


@few
@given(cases(), widths, st.randoms())
def test_the_order_of_verdicts_does_not_matter(case: Case, k: int, random: Random) -> None:
    truth, search = case.truth, case.search()
    outcome, tested = run(search, truth, k)
    random.shuffle(tested)
    losses, window = search.losses(), search.window()
    again = case.search()
    for build in tested:
        again.record(build, VERDICTS[truth[int(build)]])
    assert (again.outcome(), again.losses(), again.window()) == (outcome, losses, window)


@few
@given(cases())
def test_no_regression_is_claimed_only_when_the_newest_in_range_is_good(case: Case) -> None:
    truth, search = case.truth, case.search()
    outcome, tested = run(search, truth)
    if isinstance(outcome, NoRegression):
        newest = max(int(build) for build in tested)
        assert truth[newest] == "G"
        assert newest == len(truth) - 1 or case.good == str(newest)
        assert outcome.tested == sum(truth[int(build)] != "U" for build in tested)
        if case.strategy is Strategy.SWEEP:
            oldest = min(int(build) for build in tested)
            assert latest_change(truth, "G", "B", oldest, newest + 1) is None


@few
@given(cases(), st.lists(st.sampled_from("ABI"), max_size=12))
def test_a_search_ends_however_often_it_is_asked_for_more(case: Case, trouble: list[str]) -> None:
    """Ambiguous answers (A) and failures of the infrastructure (I) come before the true ones."""
    truth, search = case.truth, case.search()
    records = 0
    while proposals := search.next():
        kind = trouble.pop() if trouble else "B"
        answers = {"A": Verdict(answer=Answer.AMBIGUOUS), "I": Verdict(answer=Answer.INFRA)}
        search.record(proposals[0], answers.get(kind, VERDICTS[truth[int(proposals[0])]]))
        records += 1
        assert records <= len(truth) + 12
    outcome = search.outcome()
    if isinstance(outcome, Found | FoundBetween):
        assert truth[int(outcome.before)] + truth[int(outcome.after)] in {"GB", "BG"}


# --- sweep -----------------------------------------------------------------------------------------------------------


@few
@given(letters, widths, st.integers(1, 70))
def test_an_open_sweep_finds_the_latest_loss_within_its_limit(truth: str, k: int, limit: int) -> None:
    search = Search([str(place) for place in range(len(truth))], strategy=Strategy.SWEEP, limit=limit)
    outcome, tested = run(search, truth, k)
    change = latest_change(truth, "G", "B", max(0, len(truth) - limit))
    assert pair(outcome) == named(change)
    assert len(tested) <= limit
    if change is not None:
        assert len(tested) < len(truth) - change[0] + k


@few
@given(letters, widths, directions, st.data())
def test_a_closed_sweep_finds_the_right_change_and_lists_all(
    truth: str, k: int, direction: Direction, data: st.DataObject
) -> None:
    first, last = ("G", "B") if direction is Direction.LOSS else ("B", "G")
    truth = first + truth + last
    low = data.draw(st.sampled_from([place for place in range(len(truth) - 1) if truth[place] == first]))
    ends = {"G": low, "B": len(truth) - 1} if first == "G" else {"B": low, "G": len(truth) - 1}
    builds = [str(place) for place in range(len(truth))]
    search = Search(builds, strategy=Strategy.SWEEP, direction=direction, good=str(ends["G"]), bad=str(ends["B"]))
    outcome, tested = run(search, truth, k)
    if direction is Direction.LOSS:
        change = latest_change(truth, "G", "B", low)
    else:
        backwards = latest_change(truth[::-1], "G", "B", 0, len(truth) - low)
        assert backwards is not None
        change = (len(truth) - 1 - backwards[1], len(truth) - 1 - backwards[0])
    assert pair(outcome) == named(change)
    assert sorted(map(int, tested)) == list(range(low, len(truth)))
    assert len(search.losses()) == len(re.findall(r"(?=GU*B)", truth[low:]))


@few
@given(letters, widths, st.sets(st.integers(0, 59)))
def test_known_verdicts_save_a_sweep_tests_and_change_nothing(truth: str, k: int, known: set[int]) -> None:
    builds = [str(place) for place in range(len(truth))]
    cold_outcome, cold = run(Search(builds, strategy=Strategy.SWEEP), truth)
    warm_search = Search(builds, strategy=Strategy.SWEEP)
    known &= set(range(len(truth)))
    for place in known:
        warm_search.record(str(place), VERDICTS[truth[place]])
    outcome, warm = run(warm_search, truth)
    assert outcome == cold_outcome
    assert set(warm) == set(cold) - {str(place) for place in known}
    assert run(Search(builds, strategy=Strategy.SWEEP), truth, k)[0] == cold_outcome


# --- bisect ----------------------------------------------------------------------------------------------------------


@few
@given(st.integers(1, 250), st.data())
def test_a_bisection_of_one_change_keeps_its_bound(gaps: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(1, gaps))
    truth = "G" * change + "B" * (gaps + 1 - change)
    builds = [str(place) for place in range(gaps + 1)]
    offset = data.draw(st.integers(0, 10_000))
    costs = data.draw(st.none() | st.dictionaries(st.sampled_from(builds), st.floats(0.1, 100)))
    search = Search(
        builds,
        strategy=Strategy.BISECT,
        good="0",
        bad=str(gaps),
        ordinals={build: offset + int(build) for build in builds},
        costs=costs,
    )
    for place in data.draw(st.sets(st.integers(0, gaps), max_size=6)):
        search.record(str(place), VERDICTS[truth[place]])
    outcome, tested = run(search, truth)
    assert outcome == Found(before=str(change - 1), after=str(change))
    assert len(tested) <= math.ceil(math.log2(gaps)) + 2


@few
@given(st.integers(2, 250), st.integers(1, 8), st.data())
def test_parallel_bisection_takes_the_fewest_rounds(gaps: int, k: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(1, gaps))
    truth = "G" * change + "B" * (gaps + 1 - change)
    search = Search([str(place) for place in range(gaps + 1)], strategy=Strategy.BISECT, good="0", bad=str(gaps))
    for place in (0, gaps):
        search.record(str(place), VERDICTS[truth[place]])
    rounds = 0
    while proposals := search.next(k):
        rounds += 1
        for build in proposals:
            search.record(build, VERDICTS[truth[int(build)]])
    assert search.outcome() == Found(before=str(change - 1), after=str(change))
    assert (k + 1) ** (rounds - 1) < gaps


@few
@given(letters)
def test_a_bisection_with_ends_always_names_a_change(truth: str) -> None:
    truth = f"G{truth}B"
    last = str(len(truth) - 1)
    search = Search([str(place) for place in range(len(truth))], strategy=Strategy.BISECT, good="0", bad=last)
    outcome, _ = run(search, truth)
    assert isinstance(outcome, Found | FoundBetween)
    assert truth[int(outcome.before)] == "G"


@few
@given(letters, widths, st.sets(st.integers(0, 59)))
def test_a_bisection_gives_up_only_on_several_changes_of_which_the_latest_is_hidden(
    truth: str, k: int, known: set[int]
) -> None:
    truth = f"G{truth}B"
    last = len(truth) - 1
    search = Search([str(place) for place in range(len(truth))], strategy=Strategy.BISECT, good="0", bad=str(last))
    for place in known & set(range(last)):
        search.record(str(place), VERDICTS[truth[place]])
    outcome, _ = run(search, truth, k)
    if isinstance(outcome, NonMonotone):
        assert "".join(truth[int(build)] for build, _ in outcome.seen).count("GB") > 1
        assert all(VERDICTS[truth[int(build)]].answer is answer for build, answer in outcome.seen)
        before, after, between, _ = search.window() or ("", "", 0, 0)
        assert between > 0
        assert truth[int(before) : int(after) + 1] == f"G{'U' * between}B"
    else:
        assert isinstance(outcome, Found | FoundBetween)
        assert truth[int(outcome.before)] == "G"


@few
@given(letters, st.integers(0, 12))
def test_an_interrupted_bisection_goes_on_where_it_was(truth: str, done: int) -> None:
    builds = [str(place) for place in range(len(truth))]
    outcome, tested = run(Search(builds, strategy=Strategy.BISECT), truth)
    resumed = Search(builds, strategy=Strategy.BISECT)
    for build in tested[:done]:
        resumed.record(build, VERDICTS[truth[int(build)]])
    assert run(resumed, truth) == (outcome, tested[done:])


@few
@given(st.integers(1, 60), st.integers(1, 60))
def test_an_open_bisection_finds_the_one_loss_of_a_stream(good: int, bad: int) -> None:
    truth = ("G" * good + "B" * bad)[-60:]
    outcome, tested = run(Search([str(place) for place in range(len(truth))], strategy=Strategy.BISECT), truth)
    if "G" in truth:
        place = truth.index("B")
        assert outcome == Found(before=str(place - 1), after=str(place))
        assert len(tested) <= 14
    else:
        assert isinstance(outcome, Inconclusive)


# --- fix -------------------------------------------------------------------------------------------------------------


@few
@given(letters, widths, strategies, st.integers(1, 70), st.data())
def test_a_fix_after_a_bad_build_mirrors_a_loss_before_one(
    truth: str, k: int, strategy: Strategy, limit: int, data: st.DataObject
) -> None:
    """Read backwards, the first build good again after a bad one is the last build good before it."""
    last = len(truth) - 1
    bad = data.draw(st.integers(0, last))
    good = data.draw(st.none() | st.integers(0, last))
    builds = [str(place) for place in range(last + 1)]

    def search(direction: Direction, builds: list[str]) -> Search:
        return Search(
            builds,
            strategy=strategy,
            direction=direction,
            bad=str(bad),
            good=None if good is None else str(good),
            limit=limit,
            ordinals=dict.fromkeys(builds, 1),
        )

    fix, fix_tested = run(search(Direction.FIX, builds), truth, k)
    loss, loss_tested = run(search(Direction.LOSS, builds[::-1]), truth, k)
    assert fix_tested == loss_tested
    assert type(fix) is type(loss)
    if isinstance(fix, NotReproduced):
        assert fix == loss
    assert pair(fix) == (None if (found := pair(loss)) is None else found[::-1])


@few
@given(letters, widths, strategies)
def test_a_fix_from_the_newest_build_mirrors_a_loss_of_the_exchanged_history(
    truth: str, k: int, strategy: Strategy
) -> None:
    truth = truth.rstrip("UB") + "G"
    builds = [str(place) for place in range(len(truth))]
    fix, fix_tested = run(Search(builds, strategy=strategy, direction=Direction.FIX), truth, k)
    loss, loss_tested = run(Search(builds, strategy=strategy), truth.translate(MIRRORED), k)
    assert fix_tested == loss_tested
    assert pair(fix) == pair(loss)
    if pair(fix) is None:
        assert isinstance(fix, NoRegression)
        assert isinstance(loss, Inconclusive)


@few
@given(letters, widths)
def test_losses_of_a_full_sweep_are_all_there_are(truth: str, k: int) -> None:
    builds = [str(place) for place in range(len(truth))]
    search = Search(builds, strategy=Strategy.SWEEP)
    for build in builds:
        search.record(build, VERDICTS[truth[int(build)]])
    assert search.next(k) == ()
    expected = []
    for match in re.finditer(r"(?=(G)(U*)(B[BU]*)(G?))", truth):
        last_bad = match.start(3) + match[3].rindex("B")
        expected.append(
            Loss(
                last_good=str(match.start(1)),
                lost_at=str(match.start(3)),
                last_bad=str(last_bad),
                regained_at=str(match.start(4)) if match[4] else None,
                untestable=tuple(str(place) for place in range(match.start(2), match.end(2))),
            )
        )
    assert search.losses() == tuple(expected)
