"""What a history can do without: said first, then deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bisector.history.codec import encode_time
from bisector.history.database import Database, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """Rows of one kind that can go, and about how many bytes they hold."""

    what: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Rows that prove nothing, or nothing that others do not prove as well."""

    table: str
    size: str
    dispensable: str


_KINDS: Mapping[str, _Kind] = {
    "what layers of images hold": _Kind(table="layers", size="length(record)", dispensable="recorded_at < :before"),
    "readings that a deeper or newer one of the same content answers for": _Kind(
        table="observations",
        size="3 * length(document)",  # the document, and the rows that repeat it with their indexes
        dispensable="""observed_at < :before AND EXISTS (
            SELECT *
            FROM observations AS better
            WHERE better.digest = observations.digest AND better.id <> observations.id
                AND better.depth IN (observations.depth, 'kernels')
                AND better.probe_version >= observations.probe_version
        )""",
    ),
    "runs that have ended": _Kind(
        table="runs",
        size="""length(arguments) + coalesce(length(result), 0)
            + (SELECT coalesce(sum(length(build) + length(reason) + 50), 0) FROM run_steps WHERE run_id = runs.id)""",
        dispensable="ended_at < :before",
    ),
    # What the reports told is kept: forgotten, it would be told again while it lasts.
    "posts that were sent": _Kind(
        table="posts", size="length(body)", dispensable="sent_at < :before AND receiver <> 'report'"
    ),
}


async def prune(database: Database, *, before: datetime, dry_run: bool) -> tuple[Freed, ...]:
    """Delete what is older than a moment and can be spared, and give its space back to the disk.

    Builds, the best reading of each content, boots and benchmarks are never deleted.

    Returns:
        What was deleted, or with ``dry_run`` what would be.

    Raises:
        HistoryUnavailable: The file cannot be read or written.
    """
    values = {"before": encode_time(before)}
    if dry_run:
        return tuple([_freed(what, await database.fetch(_count(kind), values)) for what, kind in _KINDS.items()])
    freed = []
    async with database.writing() as connection:
        for what, kind in _KINDS.items():
            counted = await connection.execute_fetchall(_count(kind), values)
            freed.append(_freed(what, [tuple(row) for row in counted]))
            await connection.execute(f"DELETE FROM {kind.table} WHERE {kind.dispensable}", values)  # noqa: S608
    if any(kind.rows for kind in freed):
        await database.vacuum()
    return tuple(freed)


def _count(kind: _Kind) -> str:
    return f"SELECT count(*), coalesce(sum({kind.size}), 0) FROM {kind.table} WHERE {kind.dispensable}"  # noqa: S608


def _freed(what: str, rows: list[Row]) -> Freed:
    ((count, size),) = rows
    return Freed(what=what, rows=int(str(count)), bytes=int(str(size)))
