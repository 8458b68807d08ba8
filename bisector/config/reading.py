"""A configuration file read, and every mistake in it named by its key."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bisector.config.paths import default_config_path
from bisector.config.sections import LISTS, SECTIONS, Config
from bisector.errors import ConfigError


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
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is not TOML: {error}") from error
    defaults: dict[str, Any] = {}
    for key, value in document.items():
        if key in SECTIONS or key in LISTS:
            continue
        if key in options and isinstance(value, dict):
            _refuse_unknown(path, f"[{key}] ", value, options[key])
            defaults[key] = {_option(name): setting for name, setting in value.items()}
        elif key in options.get("", ()) and not isinstance(value, dict):
            defaults[_option(key)] = value
        else:
            _refuse_unknown(path, "", [key], [*SECTIONS, *LISTS, *filter(None, options), *options.get("", ())])
            raise ConfigError(f"{key!r} in {path} has a value of the wrong kind")
    sections: dict[str, Any] = {
        name: _converted(path, f"[{name}]", document.get(name, {}), kind) for name, kind in SECTIONS.items()
    }
    sections |= {name: _converted(path, f"[[{name}]]", document.get(name, []), kind) for name, kind in LISTS.items()}
    return Config(path=path, defaults=defaults, **sections)


def _option(name: str) -> str:
    return name.replace("-", "_")


def _converted(path: Path, name: str, value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name} in {path}: {error}") from error


def _refuse_unknown(path: Path, where: str, keys: Collection[str], allowed: Collection[str]) -> None:
    for key in keys:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(allowed))}."
            raise ConfigError(f"Unknown key {where}{key!r} in {path}", hint=hint)
