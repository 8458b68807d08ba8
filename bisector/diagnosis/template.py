"""Sentences with places for what a line tells: filled by name only, so that a log can put nothing but text there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PLACE = re.compile(r"\{(?P<name>\w+)(?:(?P<sign>[-/])(?P<other>\w+))?(?:\|(?P<fallback>[^{}]*))?\}")
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with places.

    ``{free}`` is the value of the group of that name, ``{free|some}`` the word after the bar where there is none,
    ``{total-free}`` a difference and ``{free/total}`` a quotient of two numbers, both with two decimals and rounded
    towards nought: who sets memory by them must not set too much.
    """

    text: str

    @property
    def names(self) -> frozenset[str]:
        """The groups it asks for and has no word in place of."""
        return frozenset(name for place in _places(self.text) if place["fallback"] is None for name in _operands(place))

    @property
    def mentions(self) -> frozenset[str]:
        """Every group it asks for."""
        return frozenset(name for place in _places(self.text) for name in _operands(place))

    def fill(self, values: Mapping[str, str]) -> str:
        """The sentence with its places filled; a place that nothing fills reads as its word, or as ``?``."""
        return _PLACE.sub(lambda place: _filling(place, values), self.text)


SILENT = Template("")
"""Of a signature that says nothing to people."""


def _places(text: str) -> list[re.Match[str]]:
    return list(_PLACE.finditer(text))


def _operands(place: re.Match[str]) -> list[str]:
    return [name for name in (place["name"], place["other"]) if name]


def _filling(place: re.Match[str], values: Mapping[str, str]) -> str:
    fallback = "?" if place["fallback"] is None else place["fallback"]
    value = values.get(place["name"])
    if value is None:
        return fallback
    if not place["sign"]:
        return value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
    left, right = _number(value), _number(values.get(place["other"], ""))
    if left is None or right is None or (place["sign"] == "/" and right == 0):
        return fallback
    result = left / right if place["sign"] == "/" else left - right
    return f"{int(result * 100) / 100:.2f}"


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
