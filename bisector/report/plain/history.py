"""The history filled and asked: a harvest, rows of a table, a run step by step."""

from __future__ import annotations

import msgspec

from bisector.model import Run
from bisector.report.plain.envelope import Document, cost_fields, head, timestamp
from bisector.results import Harvest, Rows


def harvest_body(harvest: Harvest) -> Document:
    """What a harvest listed, read and left."""
    return {
        "sources": msgspec.to_builtins(harvest.sources),
        "cost": cost_fields(harvest.cost),
        "finished_at": timestamp(harvest.finished_at),
    }


def rows_body(rows: Rows) -> Document:
    """Rows by their columns' names, and whether there are more of them."""
    return {"rows": [dict(zip(rows.columns, row, strict=True)) for row in rows.rows], "more": rows.more}


def run_document(found: Run) -> Document:
    """A run, step by step."""
    return head("history") | {"run": msgspec.to_builtins(found)}
