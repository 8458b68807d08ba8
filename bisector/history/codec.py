"""Observations and times as the text that the history file holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from bisector.errors import Unreadable
from bisector.model import Observation

_decoder = msgspec.json.Decoder(Observation)


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


def encode_strings(strings: tuple[str, ...]) -> str:
    """A JSON array."""
    return msgspec.json.encode(strings).decode()


def encode_time(moment: datetime) -> str:
    """ISO-8601, UTC, always with microseconds, so that text sorts as time: ``2026-11-29T05:30:00.000000Z``.

    A time without a zone is UTC already, as everywhere in bisector.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError
