"""The configuration: one TOML file, endpoints and defaults. Unknown keys are refused by name.

Precedence: command line over ``BISECTOR_…`` over this file over the default. The sections named after commands hold
defaults of their options; click applies them, so each option is described in one place only.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from bisector.errors import ConfigError

T = TypeVar("T")


class PypiConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[pypi]``: the index to ask.

    Attributes:
        index: Its simple API; by default the index that pip is configured to use.
        ca_file: A certificate bundle to trust instead of the system's; by default pip's.
    """

    index: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a configuration file says.

    Attributes:
        path: The file, or ``None`` when there is none.
        pypi: ``[pypi]``.
        defaults: Command → option → value, for click.
    """

    path: Path | None = None
    pypi: PypiConfig = field(default_factory=PypiConfig)
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def default_config_path() -> Path:
    """Where the configuration is looked for when no ``--config`` names it."""
    return platformdirs.user_config_path("bisector") / "config.toml"


def default_history_path() -> Path:
    """Where the history is kept when no ``--db`` names it; ``STATE_DIRECTORY`` is systemd's."""
    return platformdirs.user_state_path("bisector") / "history.db"


def load(path: Path | None, *, options: Mapping[str, Collection[str]]) -> Config:
    """Read a configuration file.

    Args:
        path: The file; ``None`` reads the default one if it exists.
        options: For each command, the names of its options; the key ``""`` holds the global ones.

    Raises:
        ConfigError: The file is missing, is no TOML, or has a key or value that does not belong.
    """
    if path is None:
        path = default_config_path()
        if not path.exists():
            return Config()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is not TOML: {error}.") from error
    defaults: dict[str, Any] = {}
    for key, value in document.items():
        if key == "pypi":
            continue
        if key in options and isinstance(value, dict):
            _refuse_unknown(path, f"[{key}] ", value, options[key])
            defaults[key] = {_option(name): setting for name, setting in value.items()}
        elif key in options.get("", ()) and not isinstance(value, dict):
            defaults[_option(key)] = value
        else:
            _refuse_unknown(path, "", [key], ["pypi", *filter(None, options), *options.get("", ())])
            raise ConfigError(f"{key!r} in {path} has a value of the wrong kind.")
    return Config(path=path, pypi=_section(path, document, "pypi", PypiConfig), defaults=defaults)


def _option(name: str) -> str:
    return name.replace("-", "_")


def _section(path: Path, document: Mapping[str, Any], name: str, kind: type[T]) -> T:
    try:
        return msgspec.convert(document.get(name, {}), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[{name}] in {path}: {error}.") from error


def _refuse_unknown(path: Path, where: str, keys: Collection[str], allowed: Collection[str]) -> None:
    for key in keys:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(allowed))}."
            raise ConfigError(f"Unknown key {where}{key!r} in {path}.", hint=hint)
