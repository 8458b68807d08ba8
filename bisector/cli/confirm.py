"""``confirm``: the proof on the hardware."""

from __future__ import annotations

from typing import Any

import rich_click as click

from bisector.cli.app import SOURCE, Settings, bisector


@bisector.command()
@click.argument("builds", nargs=-1, required=True, metavar="BUILD…")
@click.option("--profile", required=True, metavar="P", help="How it is served: a file, or a shipped profile by name.")
@click.option(
    "--host",
    default="local",
    show_default=True,
    metavar="H",
    help="The engine: local, ssh://USER@HOST, tcp://HOST:2376 (TLS) or context:NAME.",
)
@click.option("--source", default=SOURCE, show_default=True, metavar="S", help="Where a bare build id is looked up.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def confirm(settings: Settings, /, *, builds: tuple[str, ...], **options: Any) -> int:
    """Boot builds, climb to the full context, send the heaviest request and benchmark warm.

    Exit 0 only if all holds. Of two builds of which one has the kernels and one has not, all holds when the first
    answers and the second fails for want of them; of other builds, when each answers and the last is no slower than
    the first. 4: this machine has not what the profile needs, or is in use.
    """
    from bisector.cli import proving  # noqa: PLC0415 - heavy imports wait until a command runs

    return proving.confirm(settings, builds, **options)
