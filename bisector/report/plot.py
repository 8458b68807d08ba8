"""Benchmark trends drawn by matplotlib, an optional extra, as SVG that takes its colours from the page around it.

No text from outside is drawn: only dates and numbers.
"""

from __future__ import annotations

import io
import re
from importlib.util import find_spec

from bisector.report.measured import Point, Trend

_INK, _MUTED, _LINE = "#010101", "#020202", "#030303"
_VARIABLES = {_INK: "var(--accent)", _MUTED: "var(--muted)", _LINE: "var(--line)"}
_SIZE = (5.0, 2.1)
"""Inches: small, so that its letters can still be read where a telephone is as wide as the plot."""


def can_plot() -> bool:
    """Whether the library that draws is installed."""
    return find_spec("matplotlib") is not None


def svg(trend: Trend) -> str:
    """The medians as a line, and around each the range of its passes; needs ``can_plot``."""
    from matplotlib import dates, rc_context  # noqa: PLC0415 - an optional extra, and slow to import
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The salt names the parts of this plot apart from those of the others on its page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": trend.title, "font.size": 9, "axes.linewidth": 0.7}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        points = trend.points
        moments = [float(dates.date2num(point.at)) for point in points]  # type: ignore[no-untyped-call]
        axes.errorbar(
            moments,
            [point.tpot for point in points],
            yerr=[*zip(*map(_reach, points), strict=True)],
            color=_INK,
            ecolor=_MUTED,
            marker="o",
            markersize=3.2,
            linewidth=1.2,
            elinewidth=1,
            capsize=2.5,
        )
        around = max(1.0, (moments[-1] - moments[0]) * 0.04)
        axes.set_xlim(moments[0] - around, moments[-1] + around)
        axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=6))  # type: ignore[no-untyped-call]
        years = points[0].at.year != points[-1].at.year
        day = dates.DateFormatter("%Y-%m" if years else "%m-%d")  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(day)
        axes.margins(y=0.18)
        axes.grid(axis="y", color=_LINE, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(colors=_MUTED, length=0, pad=5)
        axes.spines[:].set_visible(False)
        axes.spines["bottom"].set(visible=True, color=_LINE)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _embedded(written.getvalue())


def _reach(point: Point) -> tuple[float, float]:
    """How far the passes reach below and above the median."""
    return max(0.0, point.tpot - point.best), max(0.0, point.worst - point.tpot)


def _embedded(drawn: str) -> str:
    """A part of a page instead of a file: without a head of its own, fixed colours, sizes and fonts."""
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", drawn, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', drawn)
    drawn = re.sub(r"<svg[^>]*>", f'<svg {box[0] if box else ""} aria-hidden="true" focusable="false">', drawn, count=1)
    drawn = re.sub(r'(<g) id="[^"]*"', r"\1", drawn)
    drawn = drawn.replace("xlink:href", "href")
    drawn = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", drawn)
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour, variable)
    return re.sub(r"\n\s*", "\n", drawn)
