"""A file of which only some parts are here."""

from __future__ import annotations

import io


class Missing(Exception):
    """Bytes ``first`` to ``last`` were wanted, both included, and are not here."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"bytes {first} to {last} are not here")
        self.first = first
        self.last = last


class SparseFile:
    """A binary file for reading, as far as :mod:`zipfile` asks for one.

    Args:
        size: The length of the whole file in bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._position = 0
        self._parts: dict[int, bytes] = {}

    def fill(self, first: int, data: bytes) -> None:
        """Have these bytes from offset ``first`` on."""
        self._parts[first] = data

    def drop(self, first: int) -> None:
        """Forget the part filled in at ``first``."""
        del self._parts[first]

    def has(self, first: int, last: int) -> bool:
        """Whether bytes ``first`` to ``last``, both included, are here in one part."""
        return any(start <= first and last < start + len(data) for start, data in self._parts.items())

    def read(self, count: int = -1) -> bytes:
        """Up to ``count`` bytes; fewer only at the end of the file.

        Raises:
            Missing: They are not all here.
        """
        left = max(0, self.size - self._position)
        end = self._position + (left if count < 0 else min(count, left))
        pieces = []
        while self._position < end:
            piece = self._piece(self._position, end)
            pieces.append(piece)
            self._position += len(piece)
        return b"".join(pieces)

    def _piece(self, start: int, end: int) -> bytes:
        for first, data in self._parts.items():
            if first <= start < first + len(data):
                return data[start - first : end - first]
        raise Missing(start, end - 1)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move as :meth:`io.IOBase.seek` does.

        Raises:
            OSError: That is before the beginning.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError("before the beginning of the file")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seekable(self) -> bool:
        """Always."""
        return True
