"""The commands around the night's work: doing it, telling it again, and trying who is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from bisector.cli.app import Settings, bisector

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
_WATCH = (
    click.option("--source", "sources", multiple=True, metavar="S", help="Watch this stream instead (repeatable)."),
    click.option("--arch", "archs", multiple=True, metavar="ARCH", help="Watch this architecture (repeatable)."),
)


def _watching(command: Any) -> Any:
    for option in reversed(_WATCH):
        command = option(command)
    return command


@bisector.command()
@_watching
@click.option("--commits", is_flag=True, help="With --arch: go on to the commit of a change.")
@click.option(
    "--post",
    type=click.Choice(["change", "always", "never"]),
    default="change",
    show_default=True,
    help="When something is posted.",
)
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as an HTML page too.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "any"]),
    help="Exit 1 for news: a loss or a slower build, or any. [default: exit 0 when it ran]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and said; list, write nothing, post nothing.")
@_JSON
@click.pass_obj
def nightly(settings: Settings, /, **options: Any) -> int:
    """Cron's command: harvest what is watched, compare, search where something changed, report, post.

    What is watched and who is told is in the configuration: [[watch]] and [[post]]. A second run of the same night
    finds nothing new and says nothing. Two at once: the second exits 4.
    """
    from bisector.cli import watching  # noqa: PLC0415 - heavy imports wait until a command runs

    return watching.nightly(settings, **options)


@bisector.command()
@_watching
@click.option(
    "--format",
    type=click.Choice(["console", "markdown", "html", "json"]),
    default="console",
    show_default=True,
    help="The form.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to. [default: stdout]")
@click.pass_obj
def report(settings: Settings, /, **options: Any) -> int:
    """The last night, and how everything stands by what the history knows. Asks nothing of the network."""
    from bisector.cli import watching  # noqa: PLC0415

    return watching.report(settings, **options)


@bisector.command()
@click.option("--test", is_flag=True, required=True, help="Reach every receiver, without telling any news.")
@click.option("--to", "names", multiple=True, metavar="NAME", help="Only this receiver (repeatable).")
@_JSON
@click.pass_obj
def notify(settings: Settings, /, *, test: bool, **options: Any) -> int:  # noqa: ARG001 - there is no other way yet
    """Try who is told: chats get a post that says it is a trial, GitHub and files are only reached."""
    from bisector.cli import watching  # noqa: PLC0415

    return watching.notify(settings, **options)
