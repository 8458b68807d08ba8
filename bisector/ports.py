"""The few doors through which jobs reach the rooms.

A job knows these Protocols and nothing behind them; ``wiring.py`` decides what stands behind each. Whatever stands
there passes the contract tests in ``tests/contracts``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from bisector.model import Build, Depth, Digest, EvidenceKind, Location, Observation, Verdict


class BuildStream(Protocol):
    """An ordered series of builds of one thing."""

    @property
    def source(self) -> str:
        """The canonical spelling: ``pypi:vllm``."""

    async def builds(self) -> Sequence[Build]:
        """Every build the stream knows, oldest first.

        Raises:
            UnknownBuild: The thing itself does not exist.
            Unavailable: The place that lists it does not answer.
        """


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


class Ledger(Protocol):
    """The memory: observations by content, builds by stream."""

    async def observation(self, digest: Digest, depth: Depth, *, version: int) -> Observation | None:
        """The observation of this content at this depth or deeper, by this version of the probe or a later one."""

    async def record(self, observation: Observation, build: Build | None) -> None:
        """Store it before anything is concluded from it; a second time changes nothing."""

    async def see(self, builds: Sequence[Build]) -> None:
        """Note that a stream listed these builds now."""

    async def known(self, builds: Sequence[Build]) -> Mapping[str, Observation]:
        """The deepest observation of each of these builds that has one, by build id."""


class Clock(Protocol):
    """The time. Nothing else in bisector asks the machine for it."""

    def now(self) -> datetime:
        """The present, UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class Meter(Protocol):
    """Counts what goes over the network."""

    requests: int
    bytes: int


# --- progress --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A stream was listed."""

    source: str
    builds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """A build is about to be read."""

    build: Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A build got its verdict, from history or by reading."""

    build: Build
    verdict: Verdict
    from_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """The search knows its range better; ``steps_left`` is an estimate."""

    before: str
    after: str
    between: int
    steps_left: int


Event: TypeAlias = Listed | Probing | Probed | Narrowed


class Progress(Protocol):
    """Is told what happens while a job runs."""

    def __call__(self, event: Event, /) -> None:
        """Take note; must not raise and must not wait."""
