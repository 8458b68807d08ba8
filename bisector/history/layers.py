"""What layers of images hold, remembered by content: a layer shared by many images is read once."""

from __future__ import annotations

import zlib
from typing import Generic, Protocol, TypeVar

import msgspec
from anyio import to_thread

from bisector.history.codec import encode_time
from bisector.history.database import Database
from bisector.model import Digest
from bisector.ports import Clock

LARGEST_RECORD = 64 << 20
"""Bytes before compression: reading a layer again costs less than what such a record would."""

_LEVEL = 1

_KEEP = """
INSERT INTO layers (diff_id, key, verified, recorded_at, record)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (diff_id, key) DO UPDATE SET
    verified = excluded.verified, recorded_at = excluded.recorded_at, record = excluded.record
WHERE excluded.verified >= layers.verified
"""


class Verifiable(Protocol):
    """A record, whatever is in it, that says whether the layer's digest was checked."""

    @property
    def verified(self) -> bool:
        """The layer was read to its end, and its diffID is right."""


Record = TypeVar("Record", bound=Verifiable)


class Layers(Generic[Record]):
    """Remembers what somebody found in layers; what that is, only they know.

    Args:
        database: The history file.
        clock: Tells when a record was made.
        kind: The type of the records: a dataclass of plain values. One that no longer fits it is as if not there.
    """

    def __init__(self, database: Database, clock: Clock, kind: type[Record]) -> None:
        self._database = database
        self._clock = clock
        self._decoder = msgspec.msgpack.Decoder(kind)

    async def get(self, diff_id: Digest, key: str, *, verified: bool = False) -> Record | None:
        """The record of this layer for this search; with ``verified``, no other than a verified one.

        Raises:
            HistoryUnavailable: The file cannot be read.
        """
        rows = await self._database.fetch(
            "SELECT record FROM layers WHERE diff_id = :diff_id AND key = :key AND verified >= :verified",
            {"diff_id": diff_id, "key": key, "verified": verified},
        )
        packed = rows[0][0] if rows else None
        return await to_thread.run_sync(self._decode, packed) if isinstance(packed, bytes) else None

    async def put(self, diff_id: Digest, key: str, record: Record) -> None:
        """Remember it, unless it is too large; a verified record is not replaced by one that is not.

        Raises:
            HistoryUnavailable: The file cannot be written.
        """
        packed = await to_thread.run_sync(_encode, record)
        if packed is None:
            return
        async with self._database.writing() as connection:
            now = encode_time(self._clock.now())
            await connection.execute(_KEEP, (diff_id, key, record.verified, now, packed))

    def _decode(self, packed: bytes) -> Record | None:
        try:
            unpacked = zlib.decompressobj().decompress(packed, LARGEST_RECORD)
            return self._decoder.decode(unpacked)
        except (zlib.error, msgspec.MsgspecError):
            return None


def _encode(record: object) -> bytes | None:
    unpacked = msgspec.msgpack.encode(record)
    return zlib.compress(unpacked, _LEVEL) if len(unpacked) <= LARGEST_RECORD else None
