"""The lab for a developer: ``up`` prints the configuration that points bisector at it, and runs until it is told."""

from __future__ import annotations

import os
import signal
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event
from types import FrameType

import click
from platformdirs import user_cache_path

from . import commits
from .lab import Lab
from .scenario import Scenario

_FOLDER = user_cache_path("bisector-lab")
_CONFIG = _FOLDER / "lab.toml"
_PID = _FOLDER / "lab.pid"
_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group()
def main() -> None:
    """A stand-in, on loopback, for Docker Hub, the wheel index and GitHub around 2026-07-31."""


@main.command()
@click.option("--without-wheel", multiple=True, metavar="SHA", help="A commit the wheel index has nothing for.")
@click.option("--stale", type=_DAY, help="A night whose image carries the wheel of the night before.")
@click.option("--vanished", type=_DAY, help="A night whose tag is listed and gone.")
@click.option("--repushed", type=_DAY, help="A night whose tag was pushed again five days later.")
@click.option("--cu129", is_flag=True, help="A second family, cu129-nightly.")
@click.option("--cu130", is_flag=True, help="A family that stopped in April, cu130-nightly.")
@click.option("--as-of", type=click.DateTime(), help="The moment it is, UTC.  [default: after the last night]")
@click.option("--keep", type=int, help="How many tags survive the clean-up; upstream's is 14.  [default: all]")
@click.option("--token-seconds", type=int, default=300, show_default=True, help="How long a registry token holds.")
@click.option("--pull-limit", type=int, default=100, show_default=True, help="Manifests that may be got.")
@click.option("--github-limit", type=int, default=5000, show_default=True, help="Requests GitHub answers.")
def up(
    *,
    without_wheel: tuple[str, ...],
    stale: datetime | None,
    vanished: datetime | None,
    repushed: datetime | None,
    cu129: bool,
    cu130: bool,
    as_of: datetime | None,
    keep: int | None,
    token_seconds: int,
    pull_limit: int,
    github_limit: int,
) -> None:
    """Bring the lab up and keep it until Ctrl-C or `down`."""
    if _running() is not None:
        raise click.ClickException("The lab is up already; `down` ends it.")
    scenario = Scenario(
        without_wheels=frozenset(map(_full_hash, without_wheel)),
        stale=_day(stale),
        vanished=_day(vanished),
        repushed=_day(repushed),
        cu129=cu129,
        cu130=cu130,
        as_of=as_of.replace(tzinfo=UTC) if as_of else None,
        keep=keep,
        token_seconds=token_seconds,
        pull_limit=pull_limit,
        github_limit=github_limit,
    )
    over = Event()

    def end(_: int, __: FrameType | None) -> None:
        over.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    click.echo("Bringing the lab up; the first time takes half a minute.", err=True)
    with Lab(scenario, cache=_FOLDER) as lab:
        _CONFIG.write_text(lab.config_toml())
        _PID.write_text(str(os.getpid()))
        try:
            click.echo(lab.config_toml())
            click.echo(f"The same is in {_CONFIG}; the plain registry is {lab.registry.url}.", err=True)
            click.echo("Ctrl-C ends the lab.", err=True)
            over.wait()
        finally:
            _PID.unlink(missing_ok=True)
            _CONFIG.unlink(missing_ok=True)


@main.command()
def down() -> None:
    """End the lab that is up."""
    pid = _running()
    if pid is None:
        raise click.ClickException("The lab is not up.")
    os.kill(pid, signal.SIGTERM)


@main.command()
def status() -> None:
    """Print the configuration of the lab that is up."""
    pid = _running()
    if pid is None:
        raise click.ClickException("The lab is not up.")
    click.echo(_CONFIG.read_text())
    click.echo(f"Process {pid}; configuration {_CONFIG}", err=True)


def _running() -> int | None:
    """The lab's process, if there is one that is a lab indeed."""
    try:
        pid = int(_PID.read_text())
        arguments = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if b"up" in arguments and any(b"lab" in argument for argument in arguments) else None


def _day(moment: datetime | None) -> date | None:
    return moment.date() if moment else None


def _full_hash(beginning: str) -> str:
    commit = commits.find(beginning)
    if commit is None:
        raise click.BadParameter(f"no commit of the lab, or several, begin with {beginning}")
    return commit.sha


main(prog_name="lab")
