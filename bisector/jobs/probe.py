"""Look at one build: from memory where possible, by reading where not. Every other job stands on this one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bisector.errors import NoBuildForPlatform
from bisector.model import Build, Cost, Depth, Observation
from bisector.ports import Artifacts, Clock, KernelReader, Ledger, Meter, Probing, Progress
from bisector.results import Seen


@dataclass(slots=True)
class Tally:
    """Counts while a job runs; ``cost`` tells the sum once it is over."""

    meter: Meter
    clock: Clock
    probes: int = 0
    from_history: int = 0
    _requests: int = field(init=False)
    _bytes: int = field(init=False)
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        self._requests, self._bytes, self._start = self.meter.requests, self.meter.bytes, self.clock.monotonic()

    def cost(self, *, builds: int) -> Cost:
        """What was spent since this tally began."""
        return Cost(
            builds=builds,
            probes=self.probes,
            from_history=self.from_history,
            requests=self.meter.requests - self._requests,
            bytes=self.meter.bytes - self._bytes,
            seconds=round(self.clock.monotonic() - self._start, 3),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The tools a look needs.

    Attributes:
        artifacts: Opens what a build points to.
        reader: Reads what was opened.
        ledger: Remembers.
        meter: Counts bytes.
        clock: Tells the time.
        progress: Is told what happens.
        refresh: Read again even what is remembered.
    """

    artifacts: Artifacts
    reader: KernelReader
    ledger: Ledger
    meter: Meter
    clock: Clock
    progress: Progress
    refresh: bool = False

    def tally(self) -> Tally:
        """A new count, beginning now."""
        return Tally(self.meter, self.clock)

    async def recall(self, build: Build, depth: Depth) -> Observation | None:
        """What the history knows of this build's content, without reading anything."""
        if build.digest is None or self.refresh:
            return None
        return await self.ledger.observation(build.digest, depth, version=self.reader.version(depth))

    async def look(self, build: Build, depth: Depth, tally: Tally, *, all_libraries: bool = False) -> Seen:
        """The observation of one build, read at most once for each content.

        Raises:
            NoBuildForPlatform: The build has no files for the platform asked for.
            Unreadable: The artifact is not what it should be.
            Unavailable: It cannot be reached.
        """
        if build.location is None:
            raise NoBuildForPlatform(f"{build.spec} has no files for {build.platform}.")
        if not all_libraries and (known := await self.recall(build, depth)):
            tally.from_history += 1
            return Seen(build=build, observation=known, from_history=True)
        self.progress(Probing(build=build))
        async with self.artifacts.open(build.location, digest=build.digest) as artifact:
            digest = build.digest or await artifact.digest()
            identified = replace(build, digest=digest)
            if build.digest is None and not all_libraries and (known := await self.recall(identified, depth)):
                tally.from_history += 1
                return Seen(build=identified, observation=known, from_history=True)
            tally.probes += 1
            observation = await self.reader.observe(artifact, depth, all_libraries=all_libraries)
        await self.ledger.record(observation, identified)
        return Seen(build=identified, observation=observation, from_history=False)


@contextlib.contextmanager
def first_error() -> Iterator[None]:
    """Raise the first error out of a task group's bundle: one sentence is enough for a person."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        raise leaf from group
