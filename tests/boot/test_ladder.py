from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.boot.ladder import next_context
from bisector.trials import Rung


def climb(fits: int, *, start: int, goal: int, step: int, estimate: int | None = None) -> list[Rung]:
    """Climb where every context up to ``fits`` boots, and a refusal names ``estimate``."""
    rungs: list[Rung] = []
    while (context := next_context(rungs, start=start, goal=goal, step=step)) is not None:
        boots = context <= fits
        rungs.append(Rung(context=context, boots=boots, estimated=None if boots else estimate))
        assert len(rungs) < 60
    return rungs


def test_it_doubles_up_to_the_goal() -> None:
    rungs = climb(10**9, start=8192, goal=250_000, step=4096)
    assert [rung.context for rung in rungs] == [8192, 16384, 32768, 65536, 131072, 250_000]


def test_the_estimate_of_a_refusal_is_put_to_the_proof() -> None:
    rungs = climb(16256, start=8192, goal=32768, step=64, estimate=16256)
    assert [(rung.context, rung.boots) for rung in rungs] == [
        (8192, True),
        (16384, False),
        (16256, True),
        (16320, False),
    ]


def test_an_estimate_that_is_wrong_does_not_end_the_search() -> None:
    longest = max(rung.context for rung in climb(12_000, start=8192, goal=32768, step=64, estimate=16256) if rung.boots)
    assert 12_000 - 64 < longest <= 12_000


def test_nothing_is_tried_where_not_even_the_start_boots() -> None:
    assert [rung.context for rung in climb(100, start=8192, goal=250_000, step=4096)] == [8192]


@pytest.mark.parametrize("goal", [1, 4096, 8191, 8192])
def test_a_goal_below_the_start_is_one_boot(goal: int) -> None:
    assert [rung.context for rung in climb(10**9, start=8192, goal=goal, step=4096)] == [goal]


@given(
    fits=st.integers(1, 300_000),
    start=st.integers(1, 20_000),
    goal=st.integers(1, 250_000),
    step=st.integers(1, 5000),
    estimate=st.none() | st.integers(1, 300_000),
)
def test_the_longest_that_boots_is_found_to_within_a_step(
    fits: int, start: int, goal: int, step: int, estimate: int | None
) -> None:
    rungs = climb(fits, start=start, goal=goal, step=step, estimate=estimate)
    contexts = [rung.context for rung in rungs]
    assert len(set(contexts)) == len(contexts)
    assert all(1 <= context <= goal for context in contexts)
    longest = max((rung.context for rung in rungs if rung.boots), default=0)
    if fits >= goal:
        assert longest == goal
    elif fits >= min(start, goal):
        assert fits - step <= longest <= fits
    else:
        assert len(rungs) == 1
