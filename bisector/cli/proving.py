"""From the options of a proof to its answer. Imported only when a command runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import rich_click as click
from rich.console import Console, RenderableType
from rich.text import Text

from bisector.boot.profiles import find_profile
from bisector.cli.app import SOURCE, Interrupted, Settings
from bisector.diagnosis.workarounds import shipped
from bisector.errors import UsageError
from bisector.jobs.booted import predicate
from bisector.jobs.confirm import confirm_finding, confirmed_exit_code
from bisector.jobs.find import Request, find
from bisector.jobs.needless import omissions
from bisector.jobs.probe import first_error
from bisector.jobs.recorded import Recording
from bisector.model import Asked, Platform
from bisector.ports import Event
from bisector.report import console as people
from bisector.report.confirmation import (
    confirmation_body,
    confirmation_document,
    confirmation_parts,
    confirmation_word,
    omission_document,
    omission_parts,
)
from bisector.report.plain.answers import answer_document
from bisector.report.plain.envelope import Document, encode
from bisector.report.plain.regression import outcome_word
from bisector.report.progress import ConsoleProgress
from bisector.results import Finding
from bisector.trials import Confirmation
from bisector.wiring import Rooms, open_rooms
from bisector.wiring.proof import open_proof


def confirm(settings: Settings, builds: tuple[str, ...], *, profile: str, host: str, source: str, as_json: bool) -> int:
    """Prove builds on the hardware, print what came of it and give the exit code."""
    served = find_profile(profile)

    async def job(rooms: Rooms, run: str | None) -> _Answer:
        proof = await open_proof(rooms, served, host=host, run=run)
        result = await proof.confirm(builds, resolve=rooms.resolve, probe=rooms.probe)
        return _Answer(
            parts=confirmation_parts(result),
            document=confirmation_document(result),
            word=confirmation_word(result),
            exit_code=result.exit_code,
        )

    arguments: dict[str, Any] = {"builds": list(builds), "profile": profile, "host": host, "source": source}
    asked = Asked(
        command="confirm",
        arguments=arguments,
        question=f"whether {', '.join(builds)} hold with {served.name}",
        arch=served.arch,
    )
    rooms = partial(
        open_rooms,
        config=settings.config,
        db=settings.db,
        platform=served.platform,
        default_source=source,
        allow_full_download=settings.allow_full_download,
    )
    return _answer(settings, job, rooms, asked=asked, as_json=as_json)


def try_without(settings: Settings, build: str, *, profile: str | None, host: str, as_json: bool) -> int:
    """Boot a build once without each workaround of a profile."""
    if profile is None:
        raise UsageError("Missing option --profile", hint="It says how the build is booted: a file, or a shipped one.")
    served = find_profile(profile)

    async def job(rooms: Rooms, run: str | None) -> _Answer:
        proof = await open_proof(rooms, served, host=host, run=run)
        result = await omissions(await rooms.resolve.build(build), shipped(), booting=proof.booting)
        return _Answer(
            parts=omission_parts(result),
            document=omission_document(result),
            word=f"{sum(each.needed is False for each in result.tried)} needless",
            exit_code=result.exit_code,
        )

    rooms = partial(
        open_rooms,
        config=settings.config,
        db=settings.db,
        platform=served.platform,
        default_source=SOURCE,
        allow_full_download=settings.allow_full_download,
    )
    asked = Asked(
        command="audit",
        arguments={"try": build, "profile": profile, "host": host},
        question=f"which workarounds of {served.name} {build} still needs",
        arch=served.arch,
    )
    return _answer(settings, job, rooms, asked=asked, as_json=as_json)


def find_regression(
    settings: Settings,
    request: Request,
    asked: Asked,
    *,
    platform: str,
    refresh: bool,
    verify: bool,
    clone: Path | None,
    as_json: bool,
) -> int:
    """A search that boots: its builds, or the two that it found."""
    served = find_profile(str(request.profile))

    async def job(rooms: Rooms, run: str | None) -> _Answer:
        proof = await open_proof(rooms, served, host=request.host, run=run)
        if request.by != "kernels":
            async with predicate(proof.booting, request.by) as tried:
                finding = await find(request, resolve=rooms.resolve, probe=rooms.probe, predicate=tried)
            return _found(finding, None)
        finding = await find(request, resolve=rooms.resolve, probe=rooms.probe)
        return _found(*await confirm_finding(finding, proof))

    rooms = partial(
        open_rooms,
        config=settings.config,
        db=settings.db,
        platform=Platform(platform),
        default_source=SOURCE,
        refresh=refresh,
        verify=verify,
        clone=clone,
        allow_full_download=settings.allow_full_download,
    )
    return _answer(settings, job, rooms, asked=asked, as_json=as_json, resumable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A result as people and as programs read it, in a word, and its exit code."""

    parts: Iterable[RenderableType]
    document: Document
    word: str | None
    exit_code: int


def _found(finding: Finding, confirmation: Confirmation | None) -> _Answer:
    document = answer_document(finding)
    parts = [*people.parts(finding)]
    code = finding.exit_code
    if confirmation is not None:
        document |= {"confirmation": confirmation_body(confirmation)}
        parts += [Text(), Text("On the hardware", style="bold"), *confirmation_parts(confirmation)]
        code = confirmed_exit_code(finding, confirmation)
    return _Answer(parts=parts, document=document, word=outcome_word(finding), exit_code=code)


def _answer(
    settings: Settings,
    job: Callable[[Rooms, str | None], Awaitable[_Answer]],
    rooms: Callable[..., AbstractAsyncContextManager[Rooms]],
    *,
    asked: Asked,
    as_json: bool,
    resumable: bool = False,
) -> int:
    recording = Recording()
    # The steps of boots go to stderr, where they are no part of the answer: with --json too, for it takes minutes.
    progress = ConsoleProgress(Console(stderr=True, highlight=False), verbose=settings.verbose, quiet=settings.quiet)

    def tell(event: Event, /) -> None:
        recording(event)
        progress(event)

    async def work() -> _Answer:
        async with rooms(progress=tell) as opened, recording.of(asked, opened.journal, progress):
            result = await job(opened, recording.run)
            document = result.document | {"run": recording.run}
            recording.outcome, recording.result = result.word, document
            return replace(result, document=document)

    try:
        with progress, first_error():
            result = anyio.run(work)
    except KeyboardInterrupt:
        resume = f"bisector find-regression --resume {recording.run}" if recording.run and resumable else None
        raise Interrupted(resume) from None
    if as_json:
        click.echo(encode(result.document))
    else:
        people.show(result.parts, Console(highlight=False))
    return result.exit_code
