"""A wheel, read in as few bytes as it takes: the directory at its end, then the members that are wanted."""

from __future__ import annotations

import anyio.to_thread

from bisector.artifacts.archive import Archive, Run
from bisector.artifacts.bounds import keep_bounds
from bisector.artifacts.spans import Spans
from bisector.artifacts.sparse import Missing, SparseFile
from bisector.errors import Unreadable
from bisector.model import Digest, EvidenceKind
from bisector.ports import FoundFiles, Selection

_TAIL = 768 << 10
"""Bytes of the first request: the directories of vLLM's wheels have 0.53 to 0.65 MB, so that one is enough."""
_LARGEST_DIRECTORY = 32 << 20
_MOST_STEPS_BACK = 4
"""From the end to the two records of a zip64 directory, and to the directory."""


class Wheel:
    """A wheel whose parts come from anywhere.

    Args:
        spans: The wheel's bytes.
        name: What to call it in messages.
        tail: How many bytes at its end to ask for first.
    """

    def __init__(self, spans: Spans, *, name: str, tail: int = _TAIL) -> None:
        self._spans = spans
        self._name = name
        self._tail = tail
        self._opened: tuple[SparseFile, Archive] | None = None

    @property
    def evidence(self) -> EvidenceKind:
        """A wheel."""
        return EvidenceKind.WHEEL

    async def digest(self) -> Digest:
        """The SHA-256 of the wheel where it is known or the wheel is on this machine.

        Otherwise :meth:`Archive.fingerprint`, which stands for the same content without reading it.
        """
        known = await self._spans.digest()
        if known is None:
            _, archive = await self._open()
            # Opening may have meant to fetch the whole wheel; then its digest is known now.
            known = await self._spans.digest() or archive.fingerprint()
        return known

    async def select(self, selection: Selection) -> FoundFiles:
        """List from the directory alone, then fetch and check what is to be read.

        Raises:
            Unreadable: It is no wheel, is damaged, or exceeds :mod:`bisector.artifacts.bounds`.
            Unavailable: It cannot be reached.
        """
        file, archive = await self._open()
        listed = {path: size for path, size in sorted(archive.sizes.items()) if selection.lists(path)}
        wanted = tuple(dict.fromkeys(selection.reads(tuple(listed))))
        keep_bounds(wanted, listed, self._name)
        contents: dict[str, bytes] = {}
        for run in archive.runs(wanted):
            contents |= await self._members(file, archive, run)
        return FoundFiles(listed=listed, contents={path: contents[path] for path in wanted}, digest=await self.digest())

    async def _members(self, file: SparseFile, archive: Archive, run: Run) -> dict[str, bytes]:
        def inflate() -> dict[str, bytes]:
            return {path: archive.read(path) for path in run.paths}

        if file.has(run.first, run.last):
            return await anyio.to_thread.run_sync(inflate)
        file.fill(run.first, await self._spans.span(run.first, run.last))
        try:
            return await anyio.to_thread.run_sync(inflate)
        finally:
            file.drop(run.first)

    async def _open(self) -> tuple[SparseFile, Archive]:
        if self._opened is None:
            data, size = await self._spans.tail(self._tail)
            file, start = SparseFile(size), size - len(data)
            file.fill(start, data)
            for _ in range(_MOST_STEPS_BACK):
                try:
                    archive = await anyio.to_thread.run_sync(Archive, file, self._name)
                except Missing as missing:
                    first = missing.first
                else:
                    self._opened = file, archive
                    return self._opened
                if size - first > _LARGEST_DIRECTORY:
                    raise Unreadable(f"{self._name} has a directory larger than bisector reads")
                file.fill(first, await self._spans.span(first, start - 1))
                start = first
            raise Unreadable(f"{self._name} is not a zip archive: its directory is nowhere")
        return self._opened
