"""Observations, places and times as the text that the history file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args

import msgspec

from bisector.errors import Unreadable
from bisector.model import Build, CommitWheel, Location, Observation

_decoder = msgspec.json.Decoder(Observation)
_PLACES: Mapping[str, type[Location]] = {kind.__name__: kind for kind in get_args(Location)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a build's files are; see :class:`~bisector.model.Build`."""

    location: Location | None = None
    witness: CommitWheel | None = None
    elsewhere: tuple[Location, ...] = ()


def encode(observation: Observation) -> str:
    """The whole observation as one JSON object.

    Raises:
        Unreadable: It holds text that no file of JSON can hold (lone surrogates, from names that are not Unicode).
    """
    try:
        return msgspec.json.encode(observation, enc_hook=_plain).decode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"What was read in {observation.digest!r} holds text that is not Unicode.") from error


def decode(document: str) -> Observation | None:
    """The observation, or ``None`` when this bisector cannot understand the document: then it is as if not there."""
    try:
        return _decoder.decode(document)
    except msgspec.MsgspecError:
        return None


def encode_places(build: Build) -> str:
    """``{"location": {"RemoteImage": {…}}, …}``: each place under the name of its kind."""
    return msgspec.json.encode(
        {
            "location": _place(build.location),
            "witness": _place(build.witness),
            "elsewhere": [_place(place) for place in build.elsewhere],
        }
    ).decode()


def decode_places(text: str | None) -> Places:
    """The places; one of a kind that this bisector does not know is left out."""
    if text is None:
        return Places()
    document = msgspec.json.decode(text)
    witness = _read_place(document.get("witness"))
    return Places(
        location=_read_place(document.get("location")),
        witness=witness if isinstance(witness, CommitWheel) else None,
        elsewhere=tuple(place for it in document.get("elsewhere", ()) if (place := _read_place(it))),
    )


def _place(place: Location | None) -> Mapping[str, object] | None:
    return {type(place).__name__: msgspec.to_builtins(place)} if place else None


def _read_place(document: Mapping[str, object] | None) -> Location | None:
    for kind, fields in (document or {}).items():
        try:
            return msgspec.convert(fields, _PLACES[kind])
        except (KeyError, msgspec.ValidationError):
            return None
    return None


def encode_strings(strings: tuple[str, ...]) -> str:
    """A JSON array."""
    return msgspec.json.encode(strings).decode()


def encode_time(moment: datetime) -> str:
    """ISO-8601, UTC, always with microseconds, so that text sorts as time: ``2026-11-29T05:30:00.000000Z``.

    A time without a zone is UTC already, as everywhere in bisector.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def decode_time(text: str) -> datetime:
    """The moment, UTC."""
    return datetime.fromisoformat(text)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError
