"""From options to a request, from a request to a rendered answer. Imported only when a command runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import rich_click as click
from rich.console import Console

from bisector.arch import deepgemm_arch, parse
from bisector.cli.app import SOURCE, Settings
from bisector.errors import UnknownArchitecture, UsageError
from bisector.jobs.choose import parse_day
from bisector.jobs.find import Request
from bisector.jobs.probe import first_error
from bisector.model import Platform
from bisector.reference import gpus
from bisector.report import console as people
from bisector.report import plain
from bisector.report.progress import ConsoleProgress
from bisector.results import Check, Difference, Finding, Inspection, Plan, Question, Timeline
from bisector.search import Direction, Strategy
from bisector.wiring import Rooms, open_rooms

R = TypeVar("R", bound=Check | Difference | Finding | Inspection | Plan | Timeline)


def question(arch: str, require: tuple[str, ...]) -> Question:
    """What ``--arch`` and ``--require`` ask of each build.

    Raises:
        UnknownArchitecture: No such GPU, or DeepGEMM has never had kernels for it.
    """
    device = parse(arch, gpus())
    served = deepgemm_arch(device)
    if served is None:
        raise UnknownArchitecture(
            f"DeepGEMM has no kernels for {device.name}, in any version.",
            hint="It serves sm90, sm100, sm103, sm120 and sm121; other GPUs never reach it.",
        )
    return Question(device=device, served_by=served.by, note=served.note, require=require)


def regression(
    *,
    arch: str,
    source: str,
    good: str | None,
    bad: str | None,
    since: str | None,
    strategy: str,
    require: tuple[str, ...],
    find_fix: bool,
    prereleases: bool,
) -> Request:
    """The request that ``find-regression``'s options make.

    Raises:
        UsageError: An option's value does not fit.
    """
    start = parse_day(since) if since else None
    if since and start is None:
        raise UsageError(f"--since {since} is not a date.", hint="Write it as YYYY-MM-DD.")
    return Request(
        question=question(arch, require),
        source=source,
        good=good,
        bad=bad,
        since=start,
        strategy=None if strategy == "auto" else Strategy(strategy),
        direction=Direction.FIX if find_fix else Direction.LOSS,
        prereleases=prereleases,
    )


def answer(
    settings: Settings,
    job: Callable[[Rooms], Awaitable[R]],
    *,
    platform: str,
    as_json: bool,
    source: str = SOURCE,
    refresh: bool = False,
) -> int:
    """Open the rooms, run a job, print its result and give its exit code."""
    talk = Console(stderr=True, highlight=False)

    async def work() -> R:
        with ConsoleProgress(talk, verbose=settings.verbose, quiet=settings.quiet or as_json) as progress:
            async with open_rooms(
                config=settings.config,
                db=settings.db,
                platform=Platform(platform),
                default_source=source,
                progress=progress,
                refresh=refresh,
                allow_full_download=settings.allow_full_download,
            ) as rooms:
                return await job(rooms)

    with first_error():
        result = anyio.run(work)
    if as_json:
        click.echo(plain.encode(plain.document(result)))
    else:
        people.render(result, Console(highlight=False))
    return result.exit_code
