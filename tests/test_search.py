"""Worked examples: what a person would expect of a search, on histories small enough to check by eye."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bisector.errors import UnknownBuild
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

GOOD, BAD, UNTESTABLE = (Verdict(answer=answer) for answer in (Answer.GOOD, Answer.BAD, Answer.UNTESTABLE))
INFRA, AMBIGUOUS = Verdict(answer=Answer.INFRA), Verdict(answer=Answer.AMBIGUOUS)
VERDICTS = {"G": GOOD, "B": BAD, "U": UNTESTABLE}

# The releases of vLLM whose bundled DeepGEMM has sm120 kernels (G) or has none (B).
VLLM = {
    **dict.fromkeys(("0.20.0", "0.20.1", "0.20.2", "0.21.0", "0.22.0", "0.22.1", "0.23.0", "0.24.0"), "B"),
    **dict.fromkeys(("0.25.0", "0.25.1", "0.26.0"), "G"),
    **dict.fromkeys(("0.27.0", "0.27.1"), "B"),
    **dict.fromkeys(("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"), "G"),
}
BOTH = pytest.mark.parametrize("strategy", list(Strategy))


def history(letters: str) -> dict[str, str]:
    """Builds named 0, 1, 2, … from oldest to newest."""
    return {str(place): letter for place, letter in enumerate(letters)}


def finish(search: Search, truth: Mapping[str, str], k: int = 1) -> tuple[Outcome | None, list[str]]:
    """Run to the end; the outcome and the builds tested in that order."""
    tested: list[str] = []
    while proposals := search.next(k):
        for build in proposals:
            search.record(build, VERDICTS[truth[build]])
            tested.append(build)
    return search.outcome(), tested


def sweep(
    letters: str,
    *,
    direction: Direction = Direction.LOSS,
    good: str | None = None,
    bad: str | None = None,
    limit: int = 60,
) -> Outcome | None:
    truth = history(letters)
    search = Search(list(truth), strategy=Strategy.SWEEP, direction=direction, good=good, bad=bad, limit=limit)
    return finish(search, truth)[0]


def bisect(letters: str) -> Outcome | None:
    truth = history(letters)
    return finish(Search(list(truth), strategy=Strategy.BISECT), truth)[0]


# --- the real stream -------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("k", [1, 4])
def test_the_loss_of_sm120_is_found_without_being_told_where_to_look(strategy: Strategy, k: int) -> None:
    search = Search(list(VLLM), strategy=strategy)
    outcome, _ = finish(search, VLLM, k)
    assert outcome == Found(before="0.26.0", after="0.27.0")
    (loss,) = search.losses()
    assert (loss.last_good, loss.lost_at) == ("0.26.0", "0.27.0")


def test_a_sweep_from_the_newest_stops_at_the_loss_and_knows_its_whole_extent() -> None:
    search = Search(list(VLLM), strategy=Strategy.SWEEP)
    _, tested = finish(search, VLLM)
    assert tested == list(VLLM)[:-10:-1]
    assert search.losses() == (Loss(last_good="0.26.0", lost_at="0.27.0", last_bad="0.27.1", regained_at="0.28.0"),)


@BOTH
def test_the_fix_of_a_known_bad_release_is_the_first_good_one_after_it(strategy: Strategy) -> None:
    search = Search(list(VLLM), strategy=strategy, direction=Direction.FIX, bad="0.27.1")
    assert finish(search, VLLM)[0] == Found(before="0.27.1", after="0.28.0")


@BOTH
@pytest.mark.parametrize(("good", "bad"), [("0.26.0", "0.27.1"), (None, "0.27.1"), ("0.25.0", "0.27.0")])
def test_ends_that_hold_lead_to_the_same_pair(strategy: Strategy, good: str | None, bad: str) -> None:
    search = Search(list(VLLM), strategy=strategy, good=good, bad=bad)
    assert finish(search, VLLM)[0] == Found(before="0.26.0", after="0.27.0")


def test_two_ends_and_one_release_between_cost_three_tests() -> None:
    search = Search(list(VLLM), strategy=Strategy.BISECT, good="0.26.0", bad="0.27.1")
    assert finish(search, VLLM)[1] == ["0.26.0", "0.27.1", "0.27.0"]


# --- ends ------------------------------------------------------------------------------------------------------------


@BOTH
def test_every_end_that_does_not_hold_is_named(strategy: Strategy) -> None:
    search = Search(list(VLLM), strategy=strategy, good="0.27.0", bad="0.26.0")
    outcome, tested = finish(search, VLLM)
    assert tested == ["0.27.0", "0.26.0"]
    assert outcome == NotReproduced(ends=(("0.27.0", Answer.GOOD, BAD), ("0.26.0", Answer.BAD, GOOD)))
    assert search.window() is None


@BOTH
def test_one_end_that_does_not_hold_is_named_after_both_were_tested(strategy: Strategy) -> None:
    search = Search(list(VLLM), strategy=strategy, good="0.26.0", bad="0.33.0")
    search.record("0.33.0", GOOD)
    assert search.outcome() is None
    assert search.next(8) == ("0.26.0",)
    search.record("0.26.0", GOOD)
    assert search.outcome() == NotReproduced(ends=(("0.33.0", Answer.BAD, GOOD),))


def test_one_build_cannot_be_both_ends() -> None:
    assert sweep("GGG", good="1", bad="1") == NotReproduced(ends=(("1", Answer.BAD, GOOD),))


def test_an_untestable_end_is_named() -> None:
    assert sweep("UGB", good="0", bad="2") == Inconclusive(reason="0, given as good, could not be tested")


def test_an_end_that_fails_outweighs_one_that_could_not_be_tested() -> None:
    assert sweep("UGG", good="0", bad="2") == NotReproduced(ends=(("2", Answer.BAD, GOOD),))


@pytest.mark.parametrize(
    ("direction", "good", "bad", "reason"),
    [
        (Direction.LOSS, "3", "1", "3 is good and newer than 1, which is bad"),
        (Direction.FIX, "0", "1", "0 is good and older than 1, which is bad"),
    ],
)
def test_ends_in_the_wrong_order_cost_two_tests_and_answer_nothing(
    direction: Direction, good: str, bad: str, reason: str
) -> None:
    truth = history("GBBG")
    search = Search(list(truth), strategy=Strategy.BISECT, direction=direction, good=good, bad=bad)
    assert search.reversed
    outcome, tested = finish(search, truth)
    assert outcome == Inconclusive(reason=reason)
    assert tested == [good, bad]
    assert search.window() is None


@pytest.mark.parametrize(("direction", "good", "bad"), [(Direction.LOSS, "0", "1"), (Direction.FIX, "3", "1")])
def test_ends_in_the_right_order_are_not_reversed(direction: Direction, good: str, bad: str) -> None:
    builds = list(history("GBBG"))
    assert not Search(builds, strategy=Strategy.SWEEP, direction=direction, good=good, bad=bad).reversed
    assert not Search(builds, strategy=Strategy.SWEEP, direction=direction, bad=bad).reversed


def test_builds_outside_the_stream_are_refused_by_name() -> None:
    with pytest.raises(UnknownBuild, match=r"^9\.9 is not among the builds"):
        Search(["1.0"], strategy=Strategy.SWEEP, bad="9.9")
    with pytest.raises(UnknownBuild, match=r"^9\.9 is not among the builds"):
        Search(["1.0"], strategy=Strategy.SWEEP).record("9.9", GOOD)


# --- what a range without given ends may claim -----------------------------------------------------------------------


def test_a_stream_without_builds_answers_nothing() -> None:
    assert sweep("") == Inconclusive(reason="there are no builds to look at")


def test_kernels_that_came_late_were_not_lost() -> None:
    assert sweep("BBBGG") == NoRegression(tested=5)


def test_a_sweep_counts_what_it_tested_and_not_what_it_could_not() -> None:
    assert sweep("GUG") == NoRegression(tested=2)


@BOTH
def test_a_newest_build_that_cannot_be_tested_may_have_lost_anything(strategy: Strategy) -> None:
    truth = history("GGU")
    outcome, _ = finish(Search(list(truth), strategy=strategy), truth)
    assert outcome == Inconclusive(reason="2 could not be tested; 1 before it is good", before="1")


def test_a_stream_that_never_had_it_is_told_from_a_limit_that_was_reached() -> None:
    assert sweep("BBBB") == Inconclusive(
        reason="none of the 4 builds looked at has it; 0 is the oldest build there is", after="0"
    )
    assert sweep("GBBB", limit=2) == Inconclusive(
        reason="none of the 2 builds looked at has it; the limit of 2 builds is reached at 2", after="2"
    )
    assert sweep("GBBB", limit=1) == Inconclusive(
        reason="3, the only build looked at, does not have it; the limit of 1 builds is reached at 3", after="3"
    )


@BOTH
def test_a_range_in_which_nothing_can_be_tested_says_so(strategy: Strategy) -> None:
    truth = history("UUUU")
    outcome, tested = finish(Search(list(truth), strategy=strategy), truth)
    assert outcome == Inconclusive(reason="none of the 4 builds looked at could be tested")
    assert len(tested) == 4


def test_a_good_end_bounds_the_range_instead_of_the_limit() -> None:
    assert sweep("BGGGGG", good="1", limit=2) == NoRegression(tested=5)
    assert sweep("GGBGBB", good="1", limit=2) == Found(before="3", after="4")


def test_a_bisection_that_found_all_good_says_how_few_it_asked() -> None:
    outcome = bisect("G" * 60)
    assert outcome == NoRegression(tested=30)


def test_a_bisection_that_found_all_bad_says_how_few_it_asked() -> None:
    outcome = bisect("B" * 100)
    assert outcome == Inconclusive(
        reason="none of the 18 builds looked at out of 60 has it; the limit of 60 builds is reached at 40", after="40"
    )


# --- untestable builds -----------------------------------------------------------------------------------------------


@BOTH
def test_a_gap_of_untestable_builds_is_an_answer_of_its_own(strategy: Strategy) -> None:
    truth = history("GGUUBB")
    search = Search(list(truth), strategy=strategy, good="0", bad="5")
    outcome, tested = finish(search, truth)
    assert outcome == FoundBetween(before="1", after="4", untestable=("2", "3"))
    assert {"2", "3"} <= set(tested)
    assert search.losses() == (Loss(last_good="1", lost_at="4", last_bad="5", untestable=("2", "3")),)


def test_a_fix_names_its_untestable_builds_in_the_order_of_the_stream() -> None:
    assert sweep("GBUUG", direction=Direction.FIX, bad="1") == FoundBetween(
        before="1", after="4", untestable=("2", "3")
    )


def test_the_first_untestable_build_costs_one_neighbour_and_a_second_moves_away() -> None:
    search = Search([str(place) for place in range(17)], strategy=Strategy.BISECT, good="0", bad="16")
    for build, verdict in (("0", GOOD), ("16", BAD)):
        search.record(build, verdict)
    steps: list[str] = []
    for _ in range(3):
        steps += search.next()
        search.record(steps[-1], UNTESTABLE)
    assert steps == ["8", "7", "12"]


def test_a_row_of_untestable_builds_is_walked_around_and_not_through() -> None:
    letters = "G" + "G" * 74 + "U" * 30 + "B" * 75 + "B"
    costs = []
    for change in (*range(1, 75), *range(106, 181)):
        truth = history("".join("U" if letter == "U" else "GB"[at >= change] for at, letter in enumerate(letters)))
        outcome, tested = finish(Search(list(truth), strategy=Strategy.BISECT, good="0", bad="180"), truth)
        assert outcome == Found(before=str(change - 1), after=str(change))
        costs.append(len(tested))
    assert max(costs) <= 15
    assert sum(costs) / len(costs) < 11


# --- verdicts that ask for more --------------------------------------------------------------------------------------


def test_two_infrastructure_failures_in_a_row_stop_the_run_with_what_is_known() -> None:
    search = Search(list("abcdefgh"), strategy=Strategy.BISECT, good="a", bad="h")
    search.record("a", GOOD)
    search.record("h", BAD)
    (middle,) = search.next()
    search.record(middle, INFRA)
    assert search.next() == (middle,)
    search.record(middle, INFRA)
    assert search.outcome() == Inconclusive(
        reason=f"the infrastructure failed twice in a row, on {middle} and on {middle}", before="a", after="h"
    )
    assert search.next(8) == ()
    assert dict(search.verdicts) == {"a": GOOD, "h": BAD}


def test_a_build_on_which_the_infrastructure_fails_twice_stops_the_run_too() -> None:
    search = Search(list("abc"), strategy=Strategy.SWEEP)
    for build, verdict in (("c", INFRA), ("b", BAD), ("c", INFRA)):
        search.record(build, verdict)
    assert search.outcome() == Inconclusive(reason="the infrastructure failed twice on c")
    search.record("c", BAD)
    assert search.outcome() is None


def test_an_infrastructure_failure_takes_nothing_back() -> None:
    search = Search(list("ab"), strategy=Strategy.SWEEP)
    for build, verdict in (("b", BAD), ("a", GOOD), ("a", INFRA), ("b", INFRA)):
        search.record(build, verdict)
    assert search.outcome() == Found(before="a", after="b")


def test_an_ambiguous_build_is_asked_three_times() -> None:
    search = Search(list("abc"), strategy=Strategy.SWEEP, good="a", bad="c")
    search.record("a", GOOD)
    search.record("c", BAD)
    for _ in range(3):
        assert search.next() == ("b",)
        search.record("b", AMBIGUOUS)
    assert search.outcome() == FoundBetween(before="a", after="c", untestable=("b",))
    search.record("b", BAD)
    assert search.outcome() == Found(before="a", after="b")


def test_deeper_evidence_overrules_the_cheap_look() -> None:
    search = Search(list("abcd"), strategy=Strategy.BISECT, good="a", bad="d")
    for build, verdict in (("a", GOOD), ("d", BAD), ("b", GOOD), ("c", BAD)):
        search.record(build, verdict)
    assert search.outcome() == Found(before="b", after="c")
    search.record("b", BAD)
    assert search.outcome() == Found(before="a", after="b")
    search.record("a", BAD)
    assert search.outcome() == NotReproduced(ends=(("a", Answer.GOOD, BAD),))


# --- several losses --------------------------------------------------------------------------------------------------


def test_the_latest_loss_is_named_and_every_one_is_listed() -> None:
    truth = history("GBGBBGGB")
    search = Search(list(truth), strategy=Strategy.SWEEP, good="0", bad="7")
    assert finish(search, truth, k=8)[0] == Found(before="6", after="7")
    assert search.losses() == (
        Loss(last_good="0", lost_at="1", last_bad="1", regained_at="2"),
        Loss(last_good="2", lost_at="3", last_bad="4", regained_at="5"),
        Loss(last_good="6", lost_at="7", last_bad="7"),
    )


def test_a_loss_across_an_untested_build_is_not_listed_yet() -> None:
    search = Search(list("abcd"), strategy=Strategy.BISECT)
    search.record("a", GOOD)
    search.record("d", BAD)
    assert search.losses() == ()


def test_a_bisection_names_the_latest_loss_it_sees_when_earlier_verdicts_show_two() -> None:
    truth = history("GBGGGGBB")
    search = Search(list(truth), strategy=Strategy.BISECT, good="0", bad="7")
    for build in ("1", "2"):
        search.record(build, VERDICTS[truth[build]])
    assert finish(search, truth)[0] == Found(before="5", after="6")


def test_two_changes_of_which_the_latest_is_hidden_have_no_single_answer() -> None:
    truth = history("GBGUB")
    search = Search(list(truth), strategy=Strategy.BISECT, good="0", bad="4")
    for build in ("1", "2"):
        search.record(build, VERDICTS[truth[build]])
    assert finish(search, truth)[0] == NonMonotone(
        seen=(("0", Answer.GOOD), ("1", Answer.BAD), ("2", Answer.GOOD), ("4", Answer.BAD))
    )


def test_without_given_ends_nobody_asserted_a_single_change() -> None:
    truth = history("GBGUB")
    search = Search(list(truth), strategy=Strategy.BISECT)
    for build in ("0", "1", "2"):
        search.record(build, VERDICTS[truth[build]])
    assert finish(search, truth)[0] == FoundBetween(before="2", after="4", untestable=("3",))


def test_a_bisection_asks_the_newest_build_before_it_believes_an_old_loss() -> None:
    search = Search(list("abcd"), strategy=Strategy.BISECT)
    search.record("a", GOOD)
    search.record("b", BAD)
    assert search.next() == ("d",)


# --- fixes -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_fix_without_a_known_bad_build_is_the_latest_regain(strategy: Strategy) -> None:
    truth = history("BGBBBBGG")
    assert finish(Search(list(truth), strategy=strategy, direction=Direction.FIX), truth)[0] == Found(
        before="5", after="6"
    )


@BOTH
def test_a_fix_that_was_lost_again_is_no_fix(strategy: Strategy) -> None:
    truth = history("BGBU")
    assert finish(Search(list(truth), strategy=strategy, direction=Direction.FIX), truth)[0] == Inconclusive(
        reason="2, the newest build that could be tested, is still bad", before="2"
    )


def test_a_bad_build_after_which_nothing_is_good_is_not_fixed_yet() -> None:
    assert sweep("GBBB", direction=Direction.FIX, bad="1") == Inconclusive(
        reason="none of the 3 builds looked at has it; 3 is the newest build there is", before="3"
    )


def test_a_stream_that_was_always_good_needs_no_fix() -> None:
    assert sweep("GGG", direction=Direction.FIX) == NoRegression(tested=3)


# --- which build next ------------------------------------------------------------------------------------------------


def test_the_window_tells_how_far_it_is() -> None:
    search = Search([str(place) for place in range(17)], strategy=Strategy.BISECT, good="0", bad="16")
    assert search.window() is None
    search.record("0", GOOD)
    assert search.window() is None
    search.record("16", BAD)
    assert search.window() == ("0", "16", 15, 4)
    search.record("8", BAD)
    assert search.window() == ("0", "8", 7, 3)


def test_a_sweep_estimates_what_it_still_has_to_test() -> None:
    search = Search(list("abcdef"), strategy=Strategy.SWEEP)
    search.record("f", BAD)
    search.record("c", GOOD)
    assert search.window() == ("c", "f", 2, 2)


def test_searches_over_shifted_ranges_choose_the_same_builds() -> None:
    ordinals = {str(place): place for place in range(200)}
    chosen = []
    for start in (100, 103, 106):
        builds = [str(place) for place in range(start, start + 50)]
        search = Search(builds, strategy=Strategy.BISECT, good=builds[0], bad=builds[-1], ordinals=ordinals)
        search.record(builds[0], GOOD)
        search.record(builds[-1], BAD)
        chosen.append(search.next())
    assert chosen == [("128",)] * 3


def test_a_cheap_build_is_preferred_where_the_bound_allows_it() -> None:
    builds = [str(place) for place in range(13)]
    costs = {**dict.fromkeys(builds, 10.0), "7": 1.0}
    search = Search(builds, strategy=Strategy.BISECT, good="0", bad="12", costs=costs)
    search.record("0", GOOD)
    search.record("12", BAD)
    assert search.next() == ("7",)


def test_several_proposals_cut_the_gap_into_equal_parts() -> None:
    search = Search([str(place) for place in range(28)], strategy=Strategy.BISECT, good="0", bad="27")
    search.record("0", GOOD)
    search.record("27", BAD)
    assert set(search.next(2)) == {"9", "18"}
