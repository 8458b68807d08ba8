"""Where an image's parts come from: a registry, a directory, an archive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bisector.model import Digest


class BlobSource(Protocol):
    """Gives out content by digest."""

    async def manifest(self, digest: Digest) -> bytes:
        """A manifest or an index, checked against its digest.

        Raises:
            UnknownBuild: There is none.
            Unreadable: It is longer than any manifest, or something else.
            Unavailable: It cannot be reached.
        """

    def blob(self, digest: Digest, size: int) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The content, piece by piece; it may be left early.

        Whoever reads it to the end has read ``size`` bytes that have this digest; otherwise ``Unreadable`` was raised.
        """


async def whole(source: BlobSource, digest: Digest, size: int) -> bytes:
    """A small blob at once, checked."""
    async with source.blob(digest, size) as pieces:
        return b"".join([piece async for piece in pieces])
