"""Look at one build: from memory where possible, by reading where not. Every other job stands on this one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bisector.errors import NoBuildForPlatform, Unavailable, UnknownBuild
from bisector.model import (
    Build,
    CommitWheel,
    Cost,
    Depth,
    EngineImage,
    LocalImage,
    Location,
    Observation,
    RateLimit,
    RemoteImage,
)
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
        rate_limits: Host → what a registry last said of the pulls it still allows.
        commits: The stream that a build's witness belongs to: ``commits:vllm-project/vllm``.
        refresh: Read again even what is remembered.
        offline: Read nothing that is not remembered.
    """

    artifacts: Artifacts
    reader: KernelReader
    ledger: Ledger
    meter: Meter
    clock: Clock
    progress: Progress
    rate_limits: Callable[[], Mapping[str, RateLimit]]
    commits: str
    refresh: bool = False
    offline: bool = False

    def tally(self) -> Tally:
        """A new count, beginning now."""
        return Tally(self.meter, self.clock)

    async def recall(self, build: Build, depth: Depth) -> Observation | None:
        """What the history knows of this build's content, without reading anything."""
        if self.refresh:
            return None
        if build.digest is not None:
            return await self.ledger.observation(build.digest, depth, version=self.reader.version(depth))
        if not isinstance(build.location, CommitWheel):
            return None
        # What was once built of a commit does not change, so its name is as good as a digest.
        known = (await self.ledger.known([build])).get(build.id)
        deep_enough = known is not None and (known.depth is depth or known.depth is Depth.KERNELS)
        return known if known and deep_enough and known.probe_version >= self.reader.version(depth) else None

    async def glance(self, build: Build, depth: Depth, tally: Tally) -> Seen:
        """The cheapest look that answers: the history, then the wheel of the build's commit, then the build itself."""
        if known := await self.recall(build, depth):
            tally.from_history += 1
            return Seen(build=build, observation=known, from_history=True)
        if build.witness is not None:
            with contextlib.suppress(NoBuildForPlatform):
                seen = await self.look(witness_of(build, build.witness, self.commits), depth, tally)
                return replace(seen, build=build, by_witness=True)
        return await self.look(build, depth, tally)

    async def look(self, build: Build, depth: Depth, tally: Tally, *, all_libraries: bool = False) -> Seen:
        """The observation of the build itself, read at most once for each content.

        Raises:
            NoBuildForPlatform: The build has no files for the platform asked for.
            UnknownBuild: Its files are gone from every place that had them.
            Unreadable: The artifact is not what it should be.
            Unavailable: It cannot be reached.
        """
        if not all_libraries and (known := await self.recall(build, depth)):
            tally.from_history += 1
            return Seen(build=build, observation=known, from_history=True)
        if build.location is None:
            raise NoBuildForPlatform(f"{build.spec} has no files for {build.platform}")
        if self.offline:
            raise NoBuildForPlatform(f"{build.spec} was never read", hint="Search the stream itself, or harvest it.")
        self.progress(Probing(build=build))
        try:
            return await self._read(build, build.location, depth, tally, all_libraries=all_libraries)
        except UnknownBuild:
            for place in build.elsewhere:
                # A place that does not answer is no better than one that does not have it: the home said what is so.
                with contextlib.suppress(UnknownBuild, NoBuildForPlatform, Unavailable):
                    return await self._read(build, place, depth, tally, all_libraries=all_libraries)
            raise

    async def _read(self, build: Build, location: Location, depth: Depth, tally: Tally, *, all_libraries: bool) -> Seen:
        at_home = location == build.location
        # Names are at the end of a wheel; in an image they lie beside what they name, so the rest costs no more.
        if isinstance(location, RemoteImage | LocalImage | EngineImage):
            depth = Depth.KERNELS
        async with self.artifacts.open(location, digest=build.digest if at_home else None) as artifact:
            identified = build
            if build.digest is None or not at_home:
                identified = replace(build, digest=await artifact.digest())
                if not all_libraries and (known := await self.recall(identified, depth)):
                    tally.from_history += 1
                    await self.ledger.record(known, identified if at_home else None)
                    return Seen(build=identified, observation=known, from_history=True)
            tally.probes += 1
            observation = await self.reader.observe(artifact, depth, all_libraries=all_libraries)
        # Another place's copy has another digest; recorded under this build it would look like a second push.
        await self.ledger.record(observation, identified if at_home else None)
        return Seen(build=identified if at_home else build, observation=observation, from_history=False)


def witness_of(build: Build, wheel: CommitWheel, source: str) -> Build:
    """The commit whose wheel stands for a build, as a build of its own stream."""
    return Build(
        id=wheel.commit,
        source=source,
        spec=f"{source}@{wheel.commit}",
        platform=build.platform,
        location=wheel,
        commit=wheel.commit,
    )


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
