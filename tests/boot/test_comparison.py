from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.boot.comparison import compare, spread
from bisector.trials import Comparison, Pass, Standing

NAMES = ("before", "after")
OPPOSITE = {
    Standing.BETTER: Standing.WORSE,
    Standing.WORSE: Standing.BETTER,
    Standing.TIE: Standing.TIE,
    Standing.AMBIGUOUS: Standing.AMBIGUOUS,
}
TIMES = st.lists(st.floats(0.5, 500), min_size=3, max_size=12)


def passes(times: Sequence[float]) -> list[Pass]:
    return [
        Pass(
            asked=5,
            completed=5,
            tpot_ms=time,
            ttft_ms=10 * time,
            throughput=1000 / time if time else 0.0,
            warm_up=False,
            at=datetime(2026, 11, 29, tzinfo=UTC),
            raw={},
        )
        for time in times
    ]


def compared(before: Sequence[float], after: Sequence[float], *, smallest_effect: float = 0.05) -> Comparison:
    return compare(passes(before), passes(after), names=NAMES, smallest_effect=smallest_effect)


@pytest.mark.parametrize(
    ("before", "after", "standing"),
    [
        # measured with the CPU build, an engine step slowed by 20 and by 24 ms (facts/boot.md)
        ([25.32, 24.98, 24.92], [28.96, 28.07, 28.82], Standing.WORSE),
        ([28.96, 28.07, 28.82], [25.32, 24.98, 24.92], Standing.BETTER),
        ([25.32, 24.98, 24.92], [25.23, 24.98, 25.32], Standing.TIE),
        # the same model without it, on a loaded machine: nothing to be told
        ([2.43, 2.46, 2.21], [2.8, 3.6, 3.4], Standing.AMBIGUOUS),
        # sure, and too small to matter
        ([100.0, 100.1, 99.9], [102.0, 102.1, 101.9], Standing.TIE),
        # of two passes there is no spread
        ([25.0, 25.0], [30.0, 30.0], Standing.AMBIGUOUS),
        # tokens that came in one piece
        ([25.0, 25.0, 25.0], [0.0, 25.0, 25.0], Standing.AMBIGUOUS),
        ([], [25.0, 25.0, 25.0], Standing.AMBIGUOUS),
    ],
)
def test_what_two_sets_of_passes_show(before: list[float], after: list[float], standing: Standing) -> None:
    assert compared(before, after).standing is standing


def test_the_change_is_told_as_a_fraction_with_its_noise() -> None:
    measure = compared([20.0, 20.2, 19.8], [24.0, 24.2, 23.8]).measures[0]
    assert measure.change == pytest.approx(0.2)
    assert 0 < measure.noise < 0.1


def test_more_passes_settle_what_few_leave_open() -> None:
    noisy = [25.0, 26.0, 24.5]
    slower = [27.5, 28.5, 27.0]
    assert compared(noisy, slower).standing is Standing.AMBIGUOUS
    assert compared(noisy * 6, slower * 6).standing is Standing.WORSE


def test_throughput_that_falls_is_slower_too() -> None:
    by_name = {measure.name: measure for measure in compared([20.0] * 3, [24.0] * 3).measures}
    assert by_name["throughput"].change == pytest.approx(0.2)
    assert by_name["throughput"].standing is Standing.WORSE


@given(TIMES, TIMES)
def test_the_other_way_round_is_the_opposite(before: list[float], after: list[float]) -> None:
    assert compared(after, before).standing is OPPOSITE[compared(before, after).standing]


@given(TIMES)
def test_a_build_is_never_faster_or_slower_than_itself(times: list[float]) -> None:
    assert compared(times, times).standing in {Standing.TIE, Standing.AMBIGUOUS}


@given(TIMES, TIMES, st.floats(0.1, 10))
def test_the_unit_does_not_matter(before: list[float], after: list[float], factor: float) -> None:
    measure = compared(before, after).measures[0]
    scaled = compared([time * factor for time in before], [time * factor for time in after]).measures[0]
    assert scaled.change == pytest.approx(measure.change, abs=1e-6)
    assert scaled.noise == pytest.approx(measure.noise, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"), [([], float("inf")), ([1.0], float("inf")), ([10, 11, 10], 0.1), ([0.0, 1.0], float("inf"))]
)
def test_spread(values: list[float], expected: float) -> None:
    assert spread(values) == pytest.approx(expected)
