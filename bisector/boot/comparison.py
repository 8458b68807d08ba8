"""Better, worse, a tie, or too noisy to tell: two sets of benchmark passes against each other. Pure.

The noise is taken from the passes themselves: the standard error of each median, from the median absolute deviation
(or half the range, where a few equal values would make that zero by chance). All arithmetic is on logarithms, so that
a comparison the other way round is the same answer the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log, log1p, sqrt
from statistics import median
from typing import Final

from bisector.trials import Comparison, Measure, Pass, Standing

LEAST: Final = 3
"""Fewer passes than that say nothing of their own spread."""

_NORMAL: Final = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
_OF_MEDIAN: Final = 1.2533  # the standard error of a median over that of a mean
_SURE: Final = 3.0  # standard errors
_FEW: Final = {3: 4.30, 4: 3.18}  # as many of them, by how few passes they come from (Student's t, 95 %)


def compare(
    before: Sequence[Pass], after: Sequence[Pass], *, names: tuple[str, str], smallest_effect: float
) -> Comparison:
    """How the second build stands against the first.

    Args:
        before: The warm and complete passes of the one.
        after: Those of the other.
        names: What the two are called.
        smallest_effect: A change below this fraction is none, however sure it is.
    """
    measures = (
        _measure("tpot_ms", [each.tpot_ms for each in before], [each.tpot_ms for each in after], smallest_effect),
        _measure(
            "throughput",
            [each.throughput for each in before],
            [each.throughput for each in after],
            smallest_effect,
            more_is_better=True,
        ),
        _measure("ttft_ms", [each.ttft_ms for each in before], [each.ttft_ms for each in after], smallest_effect),
    )
    return Comparison(before=names[0], after=names[1], passes=(len(before), len(after)), measures=measures)


def spread(values: Sequence[float]) -> float:
    """How far passes lie apart, as a fraction of their median; infinite while there are fewer than two."""
    if len(values) < 2 or min(values) <= 0:  # noqa: PLR2004 - one value has no spread
        return float("inf")
    return (max(values) - min(values)) / median(values)


def standing_of(change: float, noise: float, smallest_effect: float) -> Standing:
    """What a change of the logarithm means, known to within ``noise``."""
    least = log1p(smallest_effect)
    if abs(change) + noise < least:
        return Standing.TIE
    if abs(change) >= least and abs(change) > noise:
        return Standing.WORSE if change > 0 else Standing.BETTER
    return Standing.AMBIGUOUS


def _measure(
    name: str, before: Sequence[float], after: Sequence[float], smallest_effect: float, *, more_is_better: bool = False
) -> Measure:
    usable = min(len(before), len(after)) >= LEAST and min(*before, *after) > 0
    if not usable:
        # A median of nothing, or a time of zero (tokens that came in one piece), is no measurement.
        middles = (median(before) if before else 0.0, median(after) if after else 0.0)
        return Measure(
            name=name,
            before=middles[0],
            after=middles[1],
            change=0.0,
            noise=float("inf"),
            standing=Standing.AMBIGUOUS,
        )
    first, second = [log(value) for value in before], [log(value) for value in after]
    change = median(second) - median(first)
    if more_is_better:
        change = -change
    noise = sqrt(_uncertainty(first) ** 2 + _uncertainty(second) ** 2)
    return Measure(
        name=name,
        before=median(before),
        after=median(after),
        change=expm1(change),
        noise=expm1(noise),
        standing=standing_of(change, noise, smallest_effect),
    )


def _uncertainty(values: Sequence[float]) -> float:
    middle = median(values)
    deviation = _NORMAL * median(abs(value - middle) for value in values)
    few = 5
    if len(values) < few:
        deviation = max(deviation, (max(values) - min(values)) / 2)
    return _FEW.get(len(values), _SURE) * _OF_MEDIAN * deviation / sqrt(len(values))
