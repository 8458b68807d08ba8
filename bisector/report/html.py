"""The night report as one page that needs nothing but itself: no script, font, picture or request elsewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import jinja2
import markupsafe

from bisector.report.grid import Cell, counts
from bisector.report.measured import Trend, trend_line
from bisector.report.night.page import page
from bisector.report.phrases import command_line, count
from bisector.report.plot import can_plot, svg
from bisector.results import Night, Rows

_ROWS_SHOWN = 30
"""Builds in sight; the older ones unfold."""
_CHANGES_SHOWN = 20


_DATE = re.compile(r"\(?\b(?:20\d\d-)?\d\d-\d\d\b\)?", re.ASCII)


def html(night: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> str:
    """The page of a night.

    Args:
        night: The night.
        boots: Rows of the history's view ``boot_results``, newest first.
        benchmarks: Rows of its view ``benchmark_trend``; drawn where matplotlib is installed.
    """
    report = page(night, boots=boots, benchmarks=benchmarks)
    return _template().render(
        page=report, cells=tuple(Cell), rows_shown=_ROWS_SHOWN, changes_shown=_CHANGES_SHOWN, can_plot=can_plot()
    )


@cache
def _template() -> jinja2.Template:
    """The template, kept beside this file; what is put in is escaped, and what is missing is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "count": count,
        "counts": counts,
        "command_line": command_line,
        "trend_line": trend_line,
        "plot": _plot,
    }
    environment.filters["dated"] = _dated
    return environment.get_template("page.html")


def _dated(words: str) -> markupsafe.Markup:
    """Words whose dates are not broken in two."""
    return markupsafe.Markup(_DATE.sub(r'<span class="date">\g<0></span>', str(markupsafe.escape(words))))  # noqa: S704


def _plot(trend: Trend) -> markupsafe.Markup:
    # Drawn from dates and numbers alone: there is nothing from outside in it to escape.
    return markupsafe.Markup(svg(trend))  # noqa: S704
