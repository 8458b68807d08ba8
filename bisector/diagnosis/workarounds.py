"""Reads the workarounds that bisector knows, ``data/workarounds.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from bisector import reference
from bisector.diagnosis.audit import Workaround
from bisector.errors import ConfigError


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[workaround]]``, as TOML has it; what the keys mean stands at ``Workaround``."""

    name: str
    why: str
    remove_when: str
    cost: str
    value: str | None = None
    below: float | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workaround: tuple[_Entry, ...]


@cache
def shipped() -> tuple[Workaround, ...]:
    """The workarounds that bisector ships with.

    Raises:
        ConfigError: They are missing or damaged.
    """
    return read(reference.load("workarounds"))


def read(document: Mapping[str, Any]) -> tuple[Workaround, ...]:
    """Workarounds from the content of a TOML file.

    Raises:
        ConfigError: A key is unknown or missing, or a pattern is none.
    """
    try:
        entries = msgspec.convert(document, _File).workaround
        return tuple(
            Workaround(
                name=re.compile(entry.name),
                value=None if entry.value is None else re.compile(entry.value),
                below=entry.below,
                why=entry.why,
                remove_when=entry.remove_when,
                cost=entry.cost,
            )
            for entry in entries
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"The list of workarounds is not in order: {error}.") from error
    except re.error as error:
        raise ConfigError(f"A pattern in the list of workarounds is no regular expression: {error}.") from error
