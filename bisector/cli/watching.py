"""The night's work from its options to its report. Imported only when a command runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import rich_click as click
from rich.console import Console

from bisector.cli.app import PLATFORM, SOURCE, Settings
from bisector.cli.night_forms import Measured, measured_of, rendered, summary, write
from bisector.cli.requests import question
from bisector.config.sections import Config, WatchConfig
from bisector.errors import ConfigError, UsageError
from bisector.jobs.nightly import Nightly
from bisector.jobs.posting import When, try_out
from bisector.jobs.probe import first_error
from bisector.jobs.recorded import Recording
from bisector.jobs.retold import retell
from bisector.jobs.standing import Watch
from bisector.model import Asked, Platform
from bisector.ports import Event
from bisector.report.phrases import safe
from bisector.report.plain.answers import answer_document
from bisector.report.plain.envelope import encode, head
from bisector.report.progress import ConsoleProgress
from bisector.results import ExitCode, NewsKind, Night, Stage
from bisector.wiring.clock import SystemClock
from bisector.wiring.night import bench_of, open_night, open_receivers, the_history

_REGRESSIONS = {NewsKind.LOST, NewsKind.SLOWER}
_KEPT = ("at", "headlines", "news", "stages", "not_measured", "cost")
"""What of a night is kept in the journal: how the streams stand is in the history already."""


def nightly(
    settings: Settings,
    *,
    sources: tuple[str, ...],
    archs: tuple[str, ...],
    commits: bool,
    post: str,
    page: Path | None,
    fail_on: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Do the night's work, print its report and give the exit code."""
    watched = watches(settings.config, sources=sources, archs=archs, commits=commits)
    clock = settings.clock or SystemClock()
    recording = Recording()
    progress = ConsoleProgress(
        Console(stderr=True, highlight=False), verbose=settings.verbose, quiet=settings.quiet or as_json
    )
    asked = Asked(command="nightly", arguments={"post": post}, question="What changed since the last night?")

    def tell(event: Event, /) -> None:
        recording(event)
        progress(event)

    async def work(db: Path) -> tuple[Night, Measured]:
        async with open_night(
            settings.config,
            db,
            clock,
            progress=tell,
            allow_full_download=settings.allow_full_download,
            run=lambda: recording.run,
        ) as opened:
            job = Nightly(
                watches=watched,
                resolve=opened.rooms.resolve,
                probe=opened.rooms.probe,
                backlog=opened.rooms.backlog,
                outbox=opened.outbox,
                receivers=opened.receivers,
                gauges=opened.gauges,
                open_bench=opened.open_bench,
                when=When(post),
                rehearsal=dry_run,
            )
            async with recording.of(asked, opened.rooms.journal, progress):
                night = await job.run()
                document = answer_document(night)
                recording.outcome = "news" if night.news else "nothing new"
                recording.result = {key: document[key] for key in _KEPT}
            return night, await measured_of(opened.records)

    with the_history(settings.db, clock, rehearsal=dry_run) as db, progress, first_error():
        night, measured = anyio.run(work, db)
    if page and not dry_run:
        write(page, rendered("html", night, measured))
    write(None, rendered("json" if as_json else "console", night, measured))
    click.echo(summary(night, rehearsal=dry_run), err=True)
    failing = night.news if fail_on == "any" else [news for news in night.news if news.kind in _REGRESSIONS]
    return ExitCode.REGRESSION if fail_on and failing else night.exit_code


def report(
    settings: Settings, *, sources: tuple[str, ...], archs: tuple[str, ...], output: Path | None, **form: str
) -> int:
    """Tell the last night again, in any form."""
    watched = watches(settings.config, sources=sources, archs=archs)
    clock = settings.clock or SystemClock()

    async def work() -> tuple[Night, Measured]:
        async with open_night(settings.config, settings.db, clock) as opened:
            rooms = opened.rooms
            night = await retell(
                watched, resolve=rooms.resolve, probe=rooms.probe, records=opened.records, journal=rooms.journal
            )
            return night, await measured_of(opened.records)

    with first_error():
        night, measured = anyio.run(work)
    write(output, rendered(form["format"], night, measured, to_terminal=output is None))
    return night.exit_code


def notify(settings: Settings, *, names: tuple[str, ...], as_json: bool) -> int:
    """Reach every receiver."""
    known = [post.name for post in settings.config.post]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"There is no receiver {unknown[0]!r}", hint=f"Known: {', '.join(known) or 'none'}.")
    if not known:
        raise ConfigError("Nobody is told: the configuration has no [[post]]", hint="Add one; see `config init`.")

    async def work() -> Sequence[Stage]:
        async with open_receivers(settings.config) as told:
            wanted = [one for one in told if not names or one.name in names]
            return await try_out(sorted(wanted, key=lambda one: known.index(one.name)))

    with first_error():
        stages = anyio.run(work)
    if as_json:
        rows = [{"name": stage.name, "ok": stage.ok, "says": stage.says} for stage in stages]
        reached = all(stage.ok for stage in stages)
        click.echo(encode(head("notify") | {"ok": reached, "receivers": rows}))
    else:
        for stage in stages:
            click.echo(f"{'✓' if stage.ok else '✗'} {stage.name}: {safe(stage.says)}")
    return ExitCode.HOLDS if all(stage.ok for stage in stages) else ExitCode.UNAVAILABLE


def watches(
    config: Config, *, sources: tuple[str, ...] = (), archs: tuple[str, ...] = (), commits: bool = False
) -> list[Watch]:
    """What is watched: what the command line says, or else the configuration.

    Raises:
        ConfigError: Nothing is, or one stream twice.
        UsageError: A stream is named without an architecture.
        UnknownArchitecture: There is no such GPU.
    """
    if sources and not archs:
        raise UsageError("--source needs --arch too", hint="Say which GPU is asked about, such as --arch sm120.")
    named = tuple(
        WatchConfig(source=source, archs=archs, platform=PLATFORM, commits=commits) for source in sources or (SOURCE,)
    )
    wanted = named if archs else config.watch
    if not wanted:
        raise ConfigError(
            "Nothing is watched: the configuration has no [[watch]]",
            hint="Add one with `bisector config init`, or name an architecture with --arch.",
        )
    seen: set[tuple[str, str]] = set()
    for one in wanted:
        if (one.source, one.platform) in seen:
            raise ConfigError(
                f"{one.source} is watched twice for {one.platform}", hint="Name all its archs in one [[watch]]."
            )
        seen.add((one.source, one.platform))
    return [_watch(one) for one in wanted]


def _watch(one: WatchConfig) -> Watch:
    questions = {asked.device: asked for asked in (question(arch, one.require) for arch in one.archs)}
    return Watch(
        source=one.source,
        platform=Platform(one.platform),
        questions=tuple(questions.values()),
        commits=one.commits,
        stopped_after=timedelta(days=one.stopped_after),
        limit=one.limit,
        bench=bench_of(one.profile, one.host) if one.profile else None,
    )
