"""A configuration begun, shown and checked. Imported only when a command runs."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click

from bisector import reference
from bisector.cli.app import Settings
from bisector.cli.requests import question
from bisector.cli.watching import watches
from bisector.config.paths import default_config_path
from bisector.config.secret import secret
from bisector.config.sections import Config
from bisector.errors import BisectorError, ConfigError, UsageError
from bisector.http import Http, redacted
from bisector.ports import Gauge, Receiver
from bisector.report.phrases import clean, count
from bisector.report.plain.envelope import encode, head
from bisector.results import ExitCode
from bisector.wiring.receivers import receivers
from bisector.wiring.sources import check_source

_SECTIONS = ("pypi", "dockerhub", "registries", "wheels", "github")
_SECRETS = ("url", "token")
_ONE_VARIABLE = re.compile(r"\$\{\w+\}")
_SHOWN = (str, int, float, Path, list, tuple)
"""What a default can be; anything else is click's way to say that there is none."""
_ORIGINS = {"COMMANDLINE": "command line", "ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value in force, and who says so: command line, environment, file or default."""

    key: str
    value: Any
    origin: str


def init(file: Path | None) -> int:
    """Write the commented configuration."""
    path = file or default_config_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # It may come to hold a secret, so it is its owner's alone.
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(reference.text("config.toml"), encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(f"{path} is there already", hint="Name a new file; nothing is overwritten.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="Name another file.") from error
    click.echo(f"Wrote {path}. Every line that begins with # shows a default or an example.")
    return ExitCode.HOLDS


def show(context: click.Context, *, as_json: bool) -> int:
    """Every value in force."""
    settings: Settings = context.obj
    values = [*_global_values(context), *_section_values(settings.config), *_command_values(context, settings.config)]
    if as_json:
        rows = [{"key": value.key, "value": value.value, "from": value.origin} for value in values]
        path = settings.config.path
        click.echo(encode(head("config") | {"file": str(path) if path else None, "values": rows}))
        return ExitCode.HOLDS
    click.echo(f"# file: {settings.config.path or f'none; {default_config_path()} would be read'}")
    for value in values:
        click.echo(clean(f"{value.key} = {msgspec.json.encode(value.value).decode()}  # {value.origin}"))
    return ExitCode.HOLDS


def check(settings: Settings, *, as_json: bool) -> int:
    """Every mistake."""
    mistakes = list(_mistakes(settings.config))
    if as_json:
        rows = [{"key": key, "error": error.message, "hint": error.hint} for key, error in mistakes]
        click.echo(encode(head("config") | {"ok": not rows, "mistakes": rows}))
    elif not mistakes:
        watched = sum(len(watch.archs) for watch in settings.config.watch)
        told = len(settings.config.post)
        click.echo(f"No mistake found: {count(watched, 'architecture')} watched, {count(told, 'receiver')}.")
    else:
        for key, error in mistakes:
            click.echo(clean(f"{key}: {error.message}. {error.hint}"))
    return ExitCode.USAGE if mistakes else ExitCode.HOLDS


# --- what is in force ------------------------------------------------------------------------------------------------


def _global_values(context: click.Context) -> Iterator[Value]:
    root = context.find_root()
    for option in _options(root.command):
        name = str(option.name)
        if name == "config":
            continue
        source = root.get_parameter_source(name)
        origin = _ORIGINS.get(source.name if source else "", "default")
        yield Value(key=name.replace("_", "-"), value=_plain(root.params[name]), origin=origin)


def _section_values(config: Config) -> Iterator[Value]:
    document = _document(config)
    for name in _SECTIONS:
        said = document.get(name, {})
        for key, value in _pairs(getattr(config, name)):
            shown = redacted(value) if isinstance(value, str) and "@" in value else value
            yield Value(key=f"{name}.{key}", value=shown, origin="file" if key in said else "default")
    for name in ("watch", "post"):
        for number, (entry, said) in enumerate(zip(getattr(config, name), document.get(name, []), strict=True)):
            for key, value in _pairs(entry):
                shown = _masked(value) if name == "post" and key in _SECRETS else value
                yield Value(key=f"{name}[{number}].{key}", value=shown, origin="file" if key in said else "default")


def _command_values(context: click.Context, config: Config) -> Iterator[Value]:
    group = context.find_root().command
    for name, command in sorted(getattr(group, "commands", {}).items()):
        for option in _options(command):
            if option.name in {"as_json", "help", "test"}:
                continue
            key = (option.name or "").replace("_", "-")
            variable = f"BISECTOR_{name}_{option.name}".replace("-", "_").upper()
            if variable in os.environ:
                yield Value(key=f"{name}.{key}", value=os.environ[variable], origin="environment")
            elif option.name in config.defaults.get(name, {}):
                yield Value(key=f"{name}.{key}", value=config.defaults[name][option.name], origin="file")
            elif isinstance(value := option.get_default(context), _SHOWN):
                yield Value(key=f"{name}.{key}", value=_plain(value), origin="default")


def _options(command: click.Command) -> Iterator[click.Option]:
    return (option for option in command.params if isinstance(option, click.Option) and option.name != "version")


def _pairs(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    yield from msgspec.to_builtins(struct).items()


def _plain(value: object) -> Any:
    return str(value) if isinstance(value, Path) else value


def _masked(value: str | None) -> str | None:
    """A secret that is only named may be shown; one that is written down may not."""
    if value is None or _ONE_VARIABLE.fullmatch(value):
        return value
    scheme, separator, _ = value.partition("://")
    return f"{scheme}://(hidden)" if separator else "(hidden)"


def _document(config: Config) -> Mapping[str, Any]:
    return tomllib.loads(config.path.read_text(encoding="utf-8")) if config.path else {}


# --- what is wrong ---------------------------------------------------------------------------------------------------


def _mistakes(config: Config) -> Iterator[tuple[str, BisectorError]]:
    for number, watch in enumerate(config.watch):
        key = f"watch[{number}]"
        yield from _tried(f"{key}.source", lambda watch=watch: check_source(watch.source))
        for arch in watch.archs:
            yield from _tried(f"{key}.archs", lambda arch=arch, watch=watch: question(arch, watch.require))
    if config.watch:
        yield from _tried("watch", lambda: watches(config))
    yield from _tried("github.token-file", lambda: secret(None, config.github.token_file, what="the token of [github]"))
    if config.pypi.ca_file and not Path(config.pypi.ca_file).is_file():
        yield "pypi.ca-file", ConfigError(f"There is no file {config.pypi.ca_file}", hint="Check the path.")
    try:
        told, gauges = receivers(config, Http())
        named: dict[str, Receiver | Gauge] = {one.name: one for one in told} | {one.name: one for one in gauges}
    except ConfigError as error:
        yield "post", error
        return
    for number, post in enumerate(config.post):
        yield from _tried(f"post[{number}] ({post.name})", named[post.name].check)


def _tried(key: str, attempt: Any) -> Iterator[tuple[str, BisectorError]]:
    try:
        attempt()
    except BisectorError as error:
        yield key, error
