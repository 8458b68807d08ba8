"""A night with everything its other forms are made from."""

from __future__ import annotations

import msgspec

from bisector.report.grid import Grid, GridCell
from bisector.report.night.page import page
from bisector.report.plain.builds import build_fields, entry_fields
from bisector.report.plain.envelope import Document, cost_fields, head, timestamp
from bisector.report.plain.history import rows_body
from bisector.report.plain.regression import finding_body
from bisector.results import ArchNight, News, Night, Rows, StreamNight


def night_document(found: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> Document:
    """A night with everything its other forms are made from; the first lines are theirs, word for word."""
    report = page(found, boots=boots, benchmarks=benchmarks)
    return head("nightly") | {
        "at": timestamp(found.at),
        "headlines": list(report.headlines),
        "streams": [_stream(*pair) for pair in zip(found.streams, report.grids, strict=True)],
        "news": [_news(news) for news in found.news],
        "stages": msgspec.to_builtins(found.stages),
        "not_measured": list(found.not_measured),
        "boots": rows_body(boots)["rows"] if boots else [],
        "benchmarks": rows_body(benchmarks)["rows"] if benchmarks else [],
        "cost": cost_fields(found.cost),
    }


def _news(news: News) -> Document:
    return {
        "kind": news.kind,
        "key": news.key,
        "source": news.source,
        "arch": news.arch,
        "sentence": news.sentence,
        "finding": finding_body(news.finding) if news.finding else None,
    }


def _stream(stream: StreamNight, drawn: Grid) -> Document:
    return {
        "source": stream.source,
        "platform": stream.platform,
        "newest_at": timestamp(stream.newest_at),
        "archs": [_arch(stands) for stands in stream.archs],
        "builds": [
            entry_fields(entry) | {"kernels": dict(zip(drawn.archs, map(_cell, row.cells), strict=True))}
            for entry, row in zip(stream.entries, drawn.rows, strict=True)
        ],
        "changes": msgspec.to_builtins(drawn.changes),
        "harvest": msgspec.to_builtins(stream.harvest),
    }


def _arch(stands: ArchNight) -> Document:
    return {
        "arch": stands.arch,
        "verdict": stands.verdict.answer,
        "reason": stands.verdict.reason,
        "newest": build_fields(stands.newest) if stands.newest else None,
        "pin": build_fields(stands.pin) if stands.pin else None,
        "losses": msgspec.to_builtins(stands.losses),
    }


def _cell(cell: GridCell) -> Document:
    return {"says": cell.kind, "operations": cell.operations, "reason": cell.reason}
