"""The data that bisector ships with itself, in an installed wheel and in a checkout alike."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bisector import arch
from bisector.errors import ConfigError, UnknownArchitecture

_PACKAGE = Path(__file__).parent
_REINSTALL = "Reinstall bisector: its own data is missing or damaged."


def load(name: str, *, package: Path = _PACKAGE) -> Mapping[str, Any]:
    """The file ``NAME.toml``.

    Args:
        name: ``gpus`` for ``gpus.toml``.
        package: The directory of the package. A wheel has the data inside it, a checkout beside it.

    Raises:
        ConfigError: It is not there, or is not TOML.
    """
    try:
        return tomllib.loads(text(f"{name}.toml", package=package))
    except ValueError as error:
        raise ConfigError(f"The reference data {name}.toml cannot be read: {error}.", hint=_REINSTALL) from error


def text(name: str, *, package: Path = _PACKAGE) -> str:
    """The file of this name, as it stands.

    Raises:
        ConfigError: It is not there.
    """
    for directory in (package / "data", package.parent / "data"):
        path = directory / name
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise ConfigError(f"The reference data {path} cannot be read: {error}.", hint=_REINSTALL) from error
    raise ConfigError(f"The reference data {name} is not there.", hint=_REINSTALL)


@cache
def gpus(*, package: Path = _PACKAGE) -> Mapping[str, str]:
    """GPU name → architecture: ``{"GeForce RTX 5090": "sm120", …}``.

    Raises:
        ConfigError: The table is missing, or not one list of names for each architecture.
    """
    table: dict[str, str] = {}
    for architecture, group in load("gpus", package=package).items():
        match group:
            case {"names": [*names]} if all(isinstance(name, str) for name in names):
                table |= dict.fromkeys(names, _known(architecture))
            case _:
                raise ConfigError(f"gpus.toml has no list of names under {architecture!r}.", hint=_REINSTALL)
    return MappingProxyType(table)


def _known(architecture: str) -> str:
    try:
        return arch.parse(architecture, {}).name
    except UnknownArchitecture as error:
        raise ConfigError(f"gpus.toml names the architecture {architecture!r}.", hint=_REINSTALL) from error
