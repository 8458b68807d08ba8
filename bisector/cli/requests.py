"""From options to a request, from a request to a rendered answer. Imported only when a command runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio
import rich_click as click
from rich.console import Console

from bisector.arch import deepgemm_arch, parse
from bisector.cli.app import SOURCE, Interrupted, Settings
from bisector.errors import UnknownArchitecture, UsageError
from bisector.jobs.choose import parse_day
from bisector.jobs.find import Request
from bisector.jobs.probe import first_error
from bisector.jobs.recorded import Recording
from bisector.model import Asked, Platform
from bisector.ports import Event
from bisector.reference import gpus
from bisector.report import console as people
from bisector.report.plain.answers import answer_document
from bisector.report.plain.envelope import encode
from bisector.report.plain.regression import outcome_word
from bisector.report.progress import ConsoleProgress
from bisector.results import Question, Result
from bisector.search import Direction, Strategy
from bisector.wiring import Rooms, open_archive, open_rooms

R = TypeVar("R", bound=Result)


def question(arch: str, require: tuple[str, ...]) -> Question:
    """What ``--arch`` and ``--require`` ask of each build.

    Raises:
        UnknownArchitecture: No such GPU, or DeepGEMM has never had kernels for it.
    """
    device = parse(arch, gpus())
    served = deepgemm_arch(device)
    if served is None:
        raise UnknownArchitecture(
            f"DeepGEMM has no kernels for {device.name}, in any version",
            hint="It serves sm90, sm100, sm103, sm120 and sm121; other GPUs never reach it.",
        )
    return Question(device=device, served_by=served.by, note=served.note, require=require)


def regression(
    *,
    arch: str | None,
    source: str,
    good: str | None,
    bad: str | None,
    since: str | None,
    strategy: str,
    require: tuple[str, ...],
    find_fix: bool,
    prereleases: bool,
    commits: bool,
    every: str,
    by: str = "kernels",
    confirm: bool = False,
    profile: str | None = None,
    host: str = "local",
) -> Request:
    """The request that ``find-regression``'s options make.

    Raises:
        UsageError: An option's value does not fit, or one that is needed is missing.
    """
    if (by != "kernels" or confirm) and profile is None:
        raise UsageError("Missing option --profile", hint="It says how builds are booted: a file, or a shipped one.")
    if by == "tpot" and good is None:
        raise UsageError("Missing option --good", hint="Name the build whose speed the others are held to.")
    if by != "kernels" and (require or confirm):
        raise UsageError(f"--by {by} asks for no kernels", hint="Leave out --require and --confirm, or --by.")
    if arch is None:
        raise UsageError("Missing option --arch", hint="Name the GPU or its architecture, such as --arch sm120.")
    start = parse_day(since) if since else None
    if since and start is None:
        raise UsageError(f"--since {since} is not a date", hint="Write it as YYYY-MM-DD.")
    return Request(
        question=question(arch, require),
        source=source,
        good=good,
        bad=bad,
        since=start,
        strategy=None if strategy == "auto" else Strategy(strategy),
        direction=Direction.FIX if find_fix else Direction.LOSS,
        prereleases=prereleases,
        commits=commits,
        every=every,
        by=by,
        confirm=confirm,
        profile=profile,
        host=host,
    )


def asked_before(settings: Settings, run: str) -> dict[str, Any]:
    """The options of a run that is to be gone on with.

    Raises:
        UnknownRun: The history holds no such run.
        UsageError: It was another command.
    """

    async def look() -> Asked:
        async with open_archive(settings.db) as archive:
            return (await archive.journal.run(run)).asked

    asked = anyio.run(look)
    if asked.command != "find-regression":
        raise UsageError(f"Run {run} is of `bisector {asked.command}`, which has nothing to go on with")
    arguments = dict(asked.arguments)
    return arguments | {"require": tuple(_texts(arguments.get("require")))}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def answer(
    settings: Settings,
    job: Callable[[Rooms], Awaitable[R]],
    *,
    platform: str,
    as_json: bool,
    source: str = SOURCE,
    refresh: bool = False,
    verify: bool = False,
    clone: Path | None = None,
    asked: Asked | None = None,
) -> int:
    """Open the rooms, run a job, print its result and give its exit code.

    Args:
        settings: The global options.
        job: What to run.
        platform: Whose files are meant.
        as_json: Print one JSON object.
        source: Where a bare build id is looked up.
        refresh: Read again even what the history knows.
        verify: Check every digest.
        clone: A clone to read commits from.
        asked: The question as the journal is to keep it; ``None``: not at all.
    """
    talk = Console(stderr=True, highlight=False)
    recording = Recording()
    progress = ConsoleProgress(talk, verbose=settings.verbose, quiet=settings.quiet or as_json)

    def tell(event: Event, /) -> None:
        recording(event)
        progress(event)

    async def work() -> tuple[R, Mapping[str, Any]]:
        async with open_rooms(
            config=settings.config,
            db=settings.db,
            platform=Platform(platform),
            default_source=source,
            progress=tell,
            refresh=refresh,
            verify=verify,
            clone=clone,
            allow_full_download=settings.allow_full_download,
            clock=settings.clock,
        ) as rooms:
            if asked is None:
                result = await job(rooms)
                return result, answer_document(result)
            async with recording.of(asked, rooms.journal, progress):
                result = await job(rooms)
                document = answer_document(result) | {"run": recording.run}
                recording.outcome, recording.result = outcome_word(result), document
                return result, document

    try:
        with progress, first_error():
            result, document = anyio.run(work)
    except KeyboardInterrupt:
        resume = f"bisector find-regression --resume {recording.run}" if recording.run else None
        raise Interrupted(resume) from None
    if as_json:
        click.echo(encode(document))
    else:
        people.render(result, Console(highlight=False))
    return result.exit_code
