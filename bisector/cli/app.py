"""The group, its global options, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rich_click as click
from click.exceptions import Abort, ClickException, Exit
from rich.console import Console

from bisector.config.paths import default_history_path
from bisector.config.reading import load
from bisector.config.sections import Config
from bisector.errors import BisectorError, UsageError
from bisector.ports import Clock

USAGE, FAULT, INTERRUPTED = 2, 70, 130

PLATFORM = "linux/amd64"
SOURCE = "dockerhub:vllm/vllm-openai"


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a command that can be gone on with.

    Attributes:
        resume: The command that does; ``None``: the same again.
    """

    def __init__(self, resume: str | None) -> None:
        super().__init__()
        self.resume = resume


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The global options, as every command receives them, and the time; ``None``: this machine's."""

    config: Config
    db: Path
    quiet: bool
    verbose: bool
    allow_full_download: bool
    clock: Clock | None = None


def _load_config(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Config:
    """Read the configuration before the other options, whose defaults it may hold."""
    group = context.command
    assert isinstance(group, click.Group)  # noqa: S101 - this is the callback of the group's own option
    options: dict[str, Collection[str]] = {"": _option_names(group)}
    options |= {name: _option_names(command) for name, command in group.commands.items()}
    config = load(path, options=options)
    context.default_map = dict(config.defaults)
    return config


def _option_names(command: click.Command) -> Collection[str]:
    unsettable = {"config", "help", "version", "json"}
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    return {option.name.replace("_", "-") for option in options if option.name} - unsettable


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=_load_config,
    help="Configuration file. [default: config.toml in the user's configuration directory]",
)
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    default=default_history_path,
    show_default="history.db in the user's state directory",
    help="History database.",
)
@click.option(
    "--allow-full-download",
    is_flag=True,
    help="Fetch whole wheels where the server cannot give parts of them (hundreds of MB each).",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("-v", "--verbose", is_flag=True, help="A line on stderr for everything that happens.")
@click.version_option(version("bisector"), prog_name="bisector")
@click.pass_context
def bisector(context: click.Context, /, config: Config, **options: Any) -> None:
    """Find the build that lost an architecture's kernels, without a GPU and without pulling it.

    Exit codes: 0 nothing lost, 1 regression found or a check failed, 2 usage or configuration,
    3 inconclusive, 4 something outside is unavailable, 70 a fault in bisector, 130 interrupted.
    """
    context.obj = Settings(config=config, clock=context.obj, **options)


def register() -> None:
    """Put every command on the group."""
    from bisector.cli import commands, configuring, confirm, logs, nights, records  # noqa: F401, PLC0415 - importing them does it


def run(arguments: Sequence[str], *, clock: Clock | None = None) -> int:
    """Run one command line and give its exit code; ``clock`` tells another time than this machine's."""
    register()
    # A service manager's stop is an interruption like Ctrl-C: what was read is kept, and the way on is printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = bisector.main(
            list(arguments), prog_name="bisector", standalone_mode=False, auto_envvar_prefix="BISECTOR", obj=clock
        )
    except Exit as leave:
        return leave.exit_code
    except (KeyboardInterrupt, Abort) as stop:
        resume = stop.resume if isinstance(stop, Interrupted) else None
        _say("Interrupted; what was read is kept. To go on:", f"  {resume or shlex.join(['bisector', *arguments])}")
        return INTERRUPTED
    except ClickException as error:
        if "--json" not in arguments:
            error.show()
            return USAGE
        return _fail(UsageError(error.format_message()), as_json=True)
    except BisectorError as error:
        return _fail(error, as_json="--json" in arguments)
    except BrokenPipeError:
        # The reader of our output has gone; nothing more can be told, and Python must not try at exit.
        sys.stdout = None
        return 0
    except Exception:  # noqa: BLE001 - the last resort: exit 1 would tell a script "regression found"
        traceback.print_exc()
        _say("This is a fault in bisector itself; please report it with the lines above.")
        return FAULT
    return result if isinstance(result, int) else 0


def _fail(error: BisectorError, *, as_json: bool) -> int:
    if as_json:
        from bisector.report.plain.envelope import error_document  # noqa: PLC0415 - only here, so that --help stays quick

        click.echo(json.dumps(error_document(error)))
    _say(f"Error: {error.message}.", error.hint)
    return error.exit_code


def _say(*lines: str) -> None:
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    for line in lines:
        console.print(line)
