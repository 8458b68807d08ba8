"""One layer, read as it streams by: decompressed, walked, and what matters of it kept."""

from __future__ import annotations

import hashlib
from typing import Final

from bisector.artifacts.image.harvest import Harvest
from bisector.artifacts.image.inflate import Inflate
from bisector.artifacts.image.record import LayerRecord
from bisector.artifacts.image.scope import Scope
from bisector.artifacts.image.tar import TarWalk
from bisector.errors import Unreadable
from bisector.model import Digest
from bisector.ports import Selection

_MOST_INFLATED: Final = 1 << 36
"""Bytes a layer may expand to."""


class LayerReading:
    """Reads one layer.

    Args:
        selection: What is wanted.
        scope: Where.
        diff_id: The digest the decompressed layer must have, to check it; then nothing is left out.
        name: What to call the layer in an error.
    """

    def __init__(
        self, selection: Selection, scope: Scope, *, diff_id: Digest | None = None, name: str = "A layer"
    ) -> None:
        self._inflate = Inflate()
        self._harvest = Harvest(selection, scope, may_stop=not scope.key and diff_id is None)
        self._walk = TarWalk(self._harvest)
        self._diff_id = diff_id
        self._seen = hashlib.sha256()
        self._inflated = 0
        self._read = 0
        self._name = name

    @property
    def satisfied(self) -> bool:
        """Nothing that follows can matter; the stream may be closed."""
        return self._harvest.stopped

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            Unreadable: This is no layer, or one that an engine would refuse.
        """
        self._read += len(data)
        # Behind the end of the archive only the digest can still tell something.
        if not self._walk.ended or self._diff_id is not None:
            for piece in self._inflate.feed(data):
                self._take(piece)

    def finish(self) -> LayerRecord:
        """The record; after the last byte, or once :attr:`satisfied`.

        Raises:
            Unreadable: The layer is cut off, contradicts itself, or has another digest than its image says.
        """
        if not self._walk.ended or self._diff_id is not None:
            for piece in self._inflate.finish():
                self._take(piece)
        self._walk.finish()
        if self._diff_id is not None and f"sha256:{self._seen.hexdigest()}" != self._diff_id:
            raise Unreadable(f"{self._name} has another content than the image's configuration says (wrong diffID)")
        return self._harvest.record(read=self._read, verified=self._diff_id is not None)

    def _take(self, piece: bytes) -> None:
        self._inflated += len(piece)
        if self._inflated > _MOST_INFLATED:
            raise Unreadable(f"{self._name} expands to more than {_MOST_INFLATED >> 30} GiB")
        if self._diff_id is not None:
            self._seen.update(piece)
        if not self._walk.ended:
            self._walk.feed(piece)
