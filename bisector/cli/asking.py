"""Asking the history and moving it. Imported only when a command runs."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import anyio
import rich_click as click
from rich.console import Console

from bisector.arch import parse
from bisector.cli.app import Settings
from bisector.errors import UnknownBuild, UsageError
from bisector.jobs.probe import first_error
from bisector.reference import gpus
from bisector.report import console as people
from bisector.report.plain.answers import answer_document
from bisector.report.plain.envelope import encode, head
from bisector.report.plain.history import run_document
from bisector.report.tables import rows_as_csv, run_parts
from bisector.report.words import count, size
from bisector.results import ExitCode, Filters, Rows, Subject
from bisector.wiring import Archive, open_archive

T = TypeVar("T")


def table(
    settings: Settings,
    subject: str,
    *,
    as_json: bool,
    as_csv: bool,
    arch: str | None,
    since: datetime | timedelta | None,
    source: str | None,
    build: str | None,
    op: str | None,
) -> int:
    """One of the history's tables."""
    named = parse(arch, gpus()).name if arch else None

    async def ask(archive: Archive) -> Rows:
        moment = archive.clock.now() - since if isinstance(since, timedelta) else since
        filters = Filters(arch=named, since=moment, source=source, build=build, op=op)
        return await archive.records.table(Subject(subject), filters)

    return _show(_with_archive(settings, ask), as_json=as_json, as_csv=as_csv)


def sql(settings: Settings, query: str, *, as_json: bool, as_csv: bool) -> int:
    """The answer to a query."""
    return _show(_with_archive(settings, lambda archive: archive.records.sql(query)), as_json=as_json, as_csv=as_csv)


def show(settings: Settings, run: str, *, as_json: bool) -> int:
    """A run, retold."""
    found = _with_archive(settings, lambda archive: archive.journal.run(run))
    if as_json:
        click.echo(encode(run_document(found)))
    else:
        people.show(run_parts(found), Console(highlight=False))
    return ExitCode.HOLDS


def export(settings: Settings, file: Path | None) -> int:
    """The ledger, into a file or onto stdout."""
    with ExitStack() as stack:
        target: BinaryIO = sys.stdout.buffer if file is None else stack.enter_context(_opened(file, "xb"))
        rows = _with_archive(settings, lambda archive: archive.export(target))
    _tell(settings, "exported", rows)
    return ExitCode.HOLDS


def import_rows(settings: Settings, file: Path | None) -> int:
    """A ledger from elsewhere, from a file or stdin."""
    with ExitStack() as stack:
        origin: BinaryIO = sys.stdin.buffer if file is None else stack.enter_context(_opened(file, "rb"))
        rows = _with_archive(settings, lambda archive: archive.import_rows(origin))
    _tell(settings, "imported", rows)
    return ExitCode.HOLDS


def prune(settings: Settings, older_than: datetime | timedelta, *, really: bool, as_json: bool) -> int:
    """What can be spared, said or done."""

    async def spare(archive: Archive) -> list[dict[str, Any]]:
        before = archive.clock.now() - older_than if isinstance(older_than, timedelta) else older_than
        freed = await archive.prune(before, not really)
        return [{"what": kind.what, "rows": kind.rows, "bytes": kind.bytes} for kind in freed]

    freed = _with_archive(settings, spare)
    if as_json:
        click.echo(encode(head("history") | {"done": really, "freed": freed}))
        return ExitCode.HOLDS
    for kind in freed:
        click.echo(f"{kind['what']}: {count(kind['rows'], 'row')}, about {size(kind['bytes'])}")
    click.echo("Deleted." if really else "Nothing was deleted; add --yes to do it.")
    return ExitCode.HOLDS


def _with_archive(settings: Settings, ask: Callable[[Archive], Awaitable[T]]) -> T:
    async def work() -> T:
        async with open_archive(settings.db) as archive:
            return await ask(archive)

    with first_error():
        return anyio.run(work)


def _show(rows: Rows, *, as_json: bool, as_csv: bool) -> int:
    if as_json:
        click.echo(encode(answer_document(rows)))
    elif as_csv:
        click.echo(rows_as_csv(rows), nl=False)
    else:
        people.render(rows, Console(highlight=False))
    return rows.exit_code


def _opened(file: Path, mode: str) -> BinaryIO:
    try:
        return file.open(mode)  # type: ignore[return-value] # both modes are binary
    except FileExistsError as error:
        raise UsageError(f"{file} is there already", hint="Name a new file; nothing is overwritten.") from error
    except OSError as error:
        raise UnknownBuild(f"{file} cannot be opened: {error.strerror}", hint="Check the path.") from error


def _tell(settings: Settings, done: str, rows: Mapping[str, int]) -> None:
    if not settings.quiet:
        what = ", ".join(f"{number:,} {name}" for name, number in rows.items() if number) or "nothing"
        click.echo(f"{done}: {what}", err=True)
