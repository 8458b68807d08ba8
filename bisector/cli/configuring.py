"""The commands around the configuration."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from bisector.cli.app import Settings, bisector


@bisector.group()
def config() -> None:
    """The configuration: begin one, see where each value comes from, find mistakes in it."""


@config.command("init")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def init(file: Path | None) -> int:
    """Write a commented configuration into FILE, by default where it is looked for; nothing is overwritten."""
    from bisector.cli import values  # noqa: PLC0415 - heavy imports wait until a command runs

    return values.init(file)


@config.command("show")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def show(context: click.Context, /, *, as_json: bool) -> int:
    """Every value, and whether the command line, the environment, the file or the default says so."""
    from bisector.cli import values  # noqa: PLC0415

    return values.show(context, as_json=as_json)


@config.command("check")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def check(settings: Settings, /, *, as_json: bool) -> int:
    """Find mistakes, each by the name of its key: exit 0 if there is none, 2 if there are."""
    from bisector.cli import values  # noqa: PLC0415

    return values.check(settings, as_json=as_json)
