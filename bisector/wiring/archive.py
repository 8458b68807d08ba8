"""The history alone: for asking it, and for moving it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from bisector.history.journal import RunJournal
from bisector.history.pruning import Freed, prune
from bisector.history.queries import Queries
from bisector.history.store import History
from bisector.history.transfer import export, import_rows
from bisector.ports import Clock, Journal, Records
from bisector.wiring.clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The history alone: for asking it, and for moving it."""

    records: Records
    journal: Journal
    clock: Clock
    export: Callable[[BinaryIO], Awaitable[Mapping[str, int]]]
    import_rows: Callable[[BinaryIO], Awaitable[Mapping[str, int]]]
    prune: Callable[[datetime, bool], Awaitable[Sequence[Freed]]]


@asynccontextmanager
async def open_archive(db: Path) -> AsyncIterator[Archive]:
    """The history file, and nothing else."""
    clock = SystemClock()
    async with History.open(db, clock) as ledger:
        yield Archive(
            records=Queries(ledger.database, clock),
            journal=RunJournal(ledger.database, clock),
            clock=clock,
            export=lambda file: export(ledger.database, clock, file),
            import_rows=lambda file: import_rows(ledger.database, file),
            prune=lambda before, dry_run: prune(ledger.database, before=before, dry_run=dry_run),
        )
