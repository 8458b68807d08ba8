"""What was seen in layers, remembered by what they contain: a layer shared by many images is read once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from bisector.artifacts.image.record import LayerRecord
from bisector.model import Digest

_MOST_BYTES: Final = 8 << 20
_BYTES_A_PATH: Final = 200


class LayerMemory(Protocol):
    """Remembers records by diffID, which recompressing does not change, and by what was looked for."""

    async def get(self, diff_id: Digest, key: str, *, verified: bool = False) -> LayerRecord | None:
        """The record of this layer for this search; with ``verified``, no other than a verified one."""

    async def put(self, diff_id: Digest, key: str, record: LayerRecord) -> None:
        """Remember it; a verified record is not replaced by one that is not."""


class RecentLayers:
    """Forgets the layers not asked for longest, and those too large to be kept at all."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._records: OrderedDict[tuple[Digest, str], LayerRecord] = OrderedDict()

    async def get(self, diff_id: Digest, key: str, *, verified: bool = False) -> LayerRecord | None:
        """The record, if it is still there."""
        known = self._records.get((diff_id, key))
        if known is None or (verified and not known.verified):
            return None
        self._records.move_to_end((diff_id, key))
        return known

    async def put(self, diff_id: Digest, key: str, record: LayerRecord) -> None:
        """Remember it, and forget others to make room."""
        known = self._records.get((diff_id, key))
        if known is not None and known.verified and not record.verified:
            return
        if _weight(record) > self._most_bytes:
            return
        if known is not None:
            self._bytes -= _weight(self._records.pop((diff_id, key)))
        self._records[diff_id, key] = record
        self._bytes += _weight(record)
        while self._bytes > self._most_bytes:
            _, forgotten = self._records.popitem(last=False)
            self._bytes -= _weight(forgotten)


def _weight(record: LayerRecord) -> int:
    paths = (record.listed, record.hardlinks, record.symlinks, record.others, record.directories, record.whiteouts)
    return sum(map(len, record.contents.values())) + _BYTES_A_PATH * sum(map(len, paths))
