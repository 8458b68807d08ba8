"""Where a build's files are read, and what they say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from bisector.model import (
    Depth,
    Digest,
    EvidenceKind,
    Location,
    Observation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What an artifact gave for a selection.

    Attributes:
        listed: Every path the selection wanted listed, sorted, with its size in bytes.
        contents: Path → bytes, for what it wanted read.
        digest: The artifact's content address.
    """

    listed: Mapping[str, int]
    contents: Mapping[str, bytes]
    digest: Digest


END_OF_LAYER: Final = "\U0010ffff"
"""Sorts after every path; see :meth:`Selection.satisfied`."""


class Selection(Protocol):
    """What a reader wants of an artifact: some paths only by name, few by content.

    ``key``, ``enters`` and ``satisfied`` are asked only where files come one after another: in image layers.
    """

    @property
    def key(self) -> str:
        """What is wanted, in a short word: whatever was read under an equal key need not be read again."""

    def lists(self, path: str) -> bool:
        """Whether the presence of this path matters."""

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        """Of the listed paths, those whose content is wanted; fewest first that suffice."""

    def enters(self, directory: str) -> bool:
        """Whether a path that matters could lie in or below this directory."""

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        """Given what a layer has shown so far and the path just passed, whether the rest of it cannot matter.

        Asked only of layers whose paths come in order, component by component, so that a directory that was left
        does not come back. ``last`` itself is not in ``listed`` yet; ``END_OF_LAYER`` means that everything passed,
        and asks whether the layers below can matter.
        """


class Artifact(Protocol):
    """Something that holds a build's files. Paths are relative to site-packages and use ``/``."""

    @property
    def evidence(self) -> EvidenceKind:
        """What kind of artifact this is."""

    async def digest(self) -> Digest:
        """The content address; may read the whole of a local file, never the whole of a remote one."""

    async def select(self, selection: Selection) -> FoundFiles:
        """List and read, in as few bytes as the artifact allows; every content is checked against its checksum.

        Raises:
            Unreadable: The artifact is there and is not what it should be.
            Unavailable: It cannot be reached.
        """


class Artifacts(Protocol):
    """Opens the artifact at a location."""

    def open(self, location: Location, *, digest: Digest | None) -> AbstractAsyncContextManager[Artifact]:
        """The artifact; ``digest`` is what the stream says of it, if anything."""


class KernelReader(Protocol):
    """Turns an artifact into an observation."""

    def version(self, depth: Depth) -> int:
        """The version of the code that reads at this depth."""

    async def observe(self, artifact: Artifact, depth: Depth, *, all_libraries: bool = False) -> Observation:
        """Read the artifact.

        What can be told about an unreadable library is told in the observation; only an artifact that cannot be
        opened at all raises.
        """
