"""The commands around the history: filling it, and asking it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import rich_click as click

from bisector.cli.app import PLATFORM, SOURCE, Settings, bisector

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
_SPAN = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@bisector.command()
@click.option(
    "--source", "sources", multiple=True, metavar="S", help=f"A stream to harvest (repeatable). [default: {SOURCE}]"
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Read at most N builds of each, newest first.")
@click.option("--platform", default=PLATFORM, show_default=True, metavar="OS/ARCH", help="Whose files are read.")
@click.option("--all-platforms", is_flag=True, help="Read linux/amd64 and linux/arm64.")
@_JSON
@click.pass_obj
def harvest(
    settings: Settings,
    /,
    *,
    sources: tuple[str, ...],
    limit: int | None,
    platform: str,
    all_platforms: bool,
    as_json: bool,
) -> int:
    """List streams, note what is new or gone, and read every build that was never read."""
    from bisector.cli import requests  # noqa: PLC0415 - heavy imports wait until a command runs
    from bisector.jobs.harvest import Target  # noqa: PLC0415
    from bisector.jobs.harvest import harvest as job  # noqa: PLC0415
    from bisector.model import Platform  # noqa: PLC0415

    platforms = ("linux/amd64", "linux/arm64") if all_platforms else (platform,)
    targets = [Target(source=source, platform=Platform(name)) for source in sources or (SOURCE,) for name in platforms]
    return requests.answer(
        settings,
        lambda rooms: job(targets, resolve=rooms.resolve, probe=rooms.probe, backlog=rooms.backlog, limit=limit),
        platform=platform,
        as_json=as_json,
    )


@bisector.command()
@click.option("--source", default=SOURCE, show_default=True, metavar="S", help="The stream of builds to try.")
@click.option("--platform", default=PLATFORM, show_default=True, metavar="OS/ARCH", help="Whose files are meant.")
@_JSON
@click.pass_obj
def doctor(settings: Settings, /, *, source: str, platform: str, as_json: bool) -> int:
    """What works from here, and what to do where it does not."""
    from bisector.cli import requests  # noqa: PLC0415
    from bisector.jobs.doctor import doctor as job  # noqa: PLC0415
    from bisector.wiring import Practice  # noqa: PLC0415

    return requests.answer(
        settings,
        lambda rooms: job(Practice(rooms, settings.db, source).examinations(), rooms.probe.clock),
        platform=platform,
        as_json=as_json,
        source=source,
    )


@bisector.group()
def history() -> None:
    """Ask the history: what every build was seen to contain, and every search and boot there was."""


def _since(_context: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | timedelta | None:
    """A date, or a span such as 30d before now."""
    if value is None:
        return None
    if span := _SPAN.fullmatch(value):
        return timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        return datetime.fromisoformat(f"{value}T00:00:00+00:00")
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither YYYY-MM-DD nor a span such as 30d, 12h or 2w") from None


def _subject(name: str, summary: str) -> None:
    """A command that shows one of the history's tables."""

    @history.command(name, help=summary)
    @click.option("--arch", metavar="ARCH", help="Only what is about this architecture.")
    @click.option("--since", callback=_since, metavar="WHEN", help="YYYY-MM-DD, or a span before now: 30d, 12h, 2w.")
    @click.option("--source", metavar="S", help="Only this stream.")
    @click.option("--build", metavar="B", help="Only this build; * stands for any letters.")
    @click.option("--op", metavar="OP", help="Only this operation.")
    @click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values on stdout.")
    @_JSON
    @click.pass_obj
    def command(settings: Settings, /, *, as_json: bool, as_csv: bool, **filters: Any) -> int:
        from bisector.cli import asking  # noqa: PLC0415

        return asking.table(settings, name, as_json=as_json, as_csv=as_csv, **filters)


for _name, _summary in (
    ("builds", "Every build ever met: digests, dates, whether it is gone."),
    ("kernels", "What each build has for each architecture."),
    ("losses", "When an architecture's kernels were lost and regained."),
    ("boots", "Every boot on the hardware and why it failed."),
    ("benchmarks", "What was measured on the hardware."),
    ("runs", "Every search, and how it ended."),
):
    _subject(_name, _summary)


@history.command()
@click.argument("query")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values on stdout.")
@_JSON
@click.pass_obj
def sql(settings: Settings, /, *, query: str, as_json: bool, as_csv: bool) -> int:
    """One SELECT over the tables and views, on a connection that cannot write."""
    from bisector.cli import asking  # noqa: PLC0415

    return asking.sql(settings, query, as_json=as_json, as_csv=as_csv)


@history.command()
@click.argument("run")
@_JSON
@click.pass_obj
def show(settings: Settings, /, *, run: str, as_json: bool) -> int:
    """Retell a search step by step."""
    from bisector.cli import asking  # noqa: PLC0415

    return asking.show(settings, run, as_json=as_json)


@history.command("export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.pass_obj
def export_(settings: Settings, /, *, file: Path) -> int:
    """Write the whole ledger, one JSON row a line, to FILE or stdout."""
    from bisector.cli import asking  # noqa: PLC0415

    return asking.export(settings, None if str(file) == "-" else file)


@history.command("import")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.pass_obj
def import_(settings: Settings, /, *, file: Path) -> int:
    """Add a ledger that was exported elsewhere; a second time changes nothing."""
    from bisector.cli import asking  # noqa: PLC0415

    return asking.import_rows(settings, None if str(file) == "-" else file)


@history.command()
@click.option("--older-than", callback=_since, required=True, metavar="WHEN", help="YYYY-MM-DD or a span: 90d, 52w.")
@click.option("--yes", is_flag=True, help="Do it; without this it only says what it would free.")
@_JSON
@click.pass_obj
def prune(settings: Settings, /, *, older_than: datetime | timedelta, yes: bool, as_json: bool) -> int:
    """Say what can be spared, and with --yes delete it. Evidence of what each build contains is always kept."""
    from bisector.cli import asking  # noqa: PLC0415

    return asking.prune(settings, older_than, really=yes, as_json=as_json)
