"""Which tags of a repository are a series of builds, and what a tag itself tells. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bisector.errors import UnknownSource
from bisector.streams.tags import TAG

_PLACE = re.compile(r"(\{[^{}]*\}|\*)")
_PLACES: Mapping[str, str] = {
    "*": r"[A-Za-z0-9._-]*",
    "{commit}": r"(?P<commit>[0-9a-f]{7,40})",
    "{date}": r"(?P<date>[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})",
    "{month}": r"(?P<month>[0-9]{2}\.[0-9]{2})",
}
_LITERAL = re.compile(r"[A-Za-z0-9._-]*")
_MOST_PLACES = 4
"""Each further ``*`` multiplies the work of matching a tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagParts:
    """What a tag tells of its build.

    Attributes:
        commit: Full or abbreviated.
        date: The day, or the first day of the month, UTC.
    """

    commit: str | None = None
    date: datetime | None = None


class TagPattern:
    """A family of tags: ``nightly-{commit}``, ``nightly-dev-{date}-{commit}``, ``{month}-py3``, ``*``.

    ``{commit}`` stands for 7 to 40 hexadecimal digits, ``{date}`` for YYYYMMDD or YYYY-MM-DD, ``{month}`` for YY.MM,
    ``*`` for anything.

    Raises:
        UnknownSource: It is no pattern.
    """

    def __init__(self, text: str = "*") -> None:
        pieces = _PLACE.split(text)
        literals, places = pieces[::2], pieces[1::2]
        named = [place for place in places if place != "*"]
        if (
            not text
            or len(places) > _MOST_PLACES
            or len(set(named)) != len(named)
            or not _PLACES.keys() >= set(places)
            or not all(map(_LITERAL.fullmatch, literals))
        ):
            raise UnknownSource(
                f"{text!r} is no pattern of tags",
                hint="Write tags with {commit}, {date}, {month} and * where they differ: nightly-dev-{date}-{commit}.",
            )
        self.text = text
        self._expression = re.compile("".join(_PLACES.get(piece) or re.escape(piece) for piece in pieces))

    @property
    def dated(self) -> bool:
        """Whether a tag that fits tells when it was built."""
        return bool({"date", "month"} & self._expression.groupindex.keys())

    def read(self, tag: str) -> TagParts | None:
        """What a tag tells; ``None`` when it does not belong to the family."""
        found = self._expression.fullmatch(tag) if TAG.fullmatch(tag) else None
        if found is None:
            return None
        parts = found.groupdict()
        return TagParts(commit=parts.get("commit"), date=_day(parts.get("date"), parts.get("month")))


def _day(date: str | None, month: str | None) -> datetime | None:
    text, form = (date.replace("-", ""), "%Y%m%d") if date else (month, "%y.%m")
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC) if text else None
    except ValueError:
        return None  # digits that are no day
