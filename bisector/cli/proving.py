"""From the options of a proof to its answer. Imported only when a command runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import rich_click as click
from rich.console import Console

from bisector.boot.profile import Profile, find_profile
from bisector.cli.app import Settings
from bisector.jobs.confirm import Proof
from bisector.jobs.probe import first_error
from bisector.jobs.recorded import Recording
from bisector.model import Asked
from bisector.ports import Event
from bisector.report import console as people
from bisector.report import plain
from bisector.report.confirmation import confirmation_document, confirmation_parts, confirmation_word
from bisector.report.progress import ConsoleProgress
from bisector.trials import Confirmation
from bisector.wiring import Rooms, open_rooms
from bisector.wiring.proof import open_proof


def confirm(settings: Settings, builds: tuple[str, ...], *, profile: str, host: str, source: str, as_json: bool) -> int:
    """Prove builds on the hardware, print what came of it and give the exit code."""
    served = find_profile(profile)

    async def job(proof: Proof, rooms: Rooms) -> Confirmation:
        return await proof.confirm(builds, resolve=rooms.resolve, probe=rooms.probe)

    arguments: dict[str, Any] = {"builds": list(builds), "profile": profile, "host": host, "source": source}
    asked = Asked(
        command="confirm",
        arguments=arguments,
        question=f"whether {', '.join(builds)} hold with {served.name}",
        arch=served.arch,
    )
    return _answer(settings, job, served=served, host=host, source=source, asked=asked, as_json=as_json)


def _answer(
    settings: Settings,
    job: Callable[[Proof, Rooms], Awaitable[Confirmation]],
    *,
    served: Profile,
    host: str,
    source: str,
    asked: Asked,
    as_json: bool,
) -> int:
    recording = Recording()
    # The steps of boots go to stderr, where they are no part of the answer: with --json too, for it takes minutes.
    progress = ConsoleProgress(Console(stderr=True, highlight=False), verbose=settings.verbose, quiet=settings.quiet)

    def tell(event: Event, /) -> None:
        recording(event)
        progress(event)

    async def work() -> tuple[Confirmation, plain.Document]:
        async with (
            open_rooms(
                config=settings.config,
                db=settings.db,
                platform=served.platform,
                default_source=source,
                progress=tell,
                allow_full_download=settings.allow_full_download,
            ) as rooms,
            recording.of(asked, rooms.journal, progress),
        ):
            proof = await open_proof(rooms, served, host=host, run=recording.run)
            result = await job(proof, rooms)
            document = confirmation_document(result) | {"run": recording.run}
            recording.outcome, recording.result = confirmation_word(result), document
            return result, document

    with progress, first_error():
        result, document = anyio.run(work)
    if as_json:
        click.echo(plain.encode(document))
    else:
        people.show(confirmation_parts(result), Console(highlight=False))
    return result.exit_code
