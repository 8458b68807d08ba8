"""``harvest``: the crawler. Lists streams, notes what is new and what is gone, and reads what nobody has read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import anyio

from bisector.errors import BisectorError, Unavailable
from bisector.jobs.order import in_commit_order
from bisector.jobs.probe import Probe, Tally, first_error
from bisector.jobs.resolve import Resolve
from bisector.model import Answer, Build, Depth, Mark, Platform, Verdict
from bisector.ports import Backlog, Probed
from bisector.results import Harvest, HarvestedSource, Untold

AT_ONCE = 4
"""Builds read at the same time; a registry that wants fewer answers 429, and is obeyed."""

TRY_AGAIN = timedelta(days=1)
"""How long a build that could not be understood is left alone: it may be pushed again, or bisector learn to read it."""

STOP_AFTER = 2
"""So many builds of a stream that cannot be reached, one after the other, end its harvest until the next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One stream for one platform.

    Attributes:
        source: The stream.
        platform: Whose files.
    """

    source: str
    platform: Platform


async def harvest(
    targets: Sequence[Target], *, resolve: Resolve, probe: Probe, backlog: Backlog, limit: int | None = None
) -> Harvest:
    """Read every build that the history does not know, newest first; one failure does not stop the others.

    Args:
        targets: What to harvest.
        resolve: Lists streams.
        probe: Reads builds.
        backlog: Knows what is still to be read.
        limit: How many builds of each target are read at most.
    """
    tally = probe.tally()
    sources = [
        await _Harvester(target=one, resolve=resolve.on(one.platform), probe=probe, backlog=backlog, tally=tally).run(
            limit
        )
        for one in targets
    ]
    builds = sum(source.listed for source in sources)
    return Harvest(sources=tuple(sources), cost=tally.cost(builds=builds), finished_at=probe.clock.now())


@dataclass(slots=True, kw_only=True)
class _Harvester:
    target: Target
    resolve: Resolve
    probe: Probe
    backlog: Backlog
    tally: Tally
    read: list[str] = field(default_factory=list)
    untold: list[Untold] = field(default_factory=list)
    out_of_reach: int = 0

    async def run(self, limit: int | None) -> HarvestedSource:
        try:
            known = {
                build.id for build in await self.resolve.catalogue.remembered(self.target.source, self.target.platform)
            }
            builds, _ = await in_commit_order(await self.resolve.stream(self.target.source), self.resolve.history)
        except BisectorError as error:
            return HarvestedSource(source=self.target.source, platform=self.target.platform, error=error.message)
        await self.resolve.catalogue.arrange(builds)
        here = [build for build in builds if Mark.GONE not in build.marks]
        depth, version = Depth.KERNELS, self.probe.reader.version(Depth.KERNELS)
        waiting = list(reversed(await self.backlog.unread(here, depth, version=version)))
        wanted = waiting[:limit]
        await self._read(wanted)
        done = {*self.read, *(untold.build for untold in self.untold)}
        return HarvestedSource(
            source=here[-1].source if here else self.target.source,
            platform=self.target.platform,
            listed=len(here),
            new=tuple(build.id for build in here if build.id not in known),
            gone=tuple(build.id for build in builds if Mark.GONE in build.marks),
            read=tuple(self.read),
            untold=tuple(self.untold),
            left=tuple(build.id for build in waiting if build.id not in done),
        )

    async def _read(self, builds: Sequence[Build]) -> None:
        waiting = list(builds)

        async def reader() -> None:
            while waiting and self.out_of_reach < STOP_AFTER:
                await self._look(waiting.pop(0))

        with first_error():
            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE):
                    tasks.start_soon(reader)

    async def _look(self, build: Build) -> None:
        now = self.probe.clock.now()
        try:
            seen = await self.probe.look(build, Depth.KERNELS, self.tally)
        except Unavailable as error:
            self.out_of_reach += 1
            verdict = Verdict(answer=Answer.INFRA, reason=error.message)
        except BisectorError as error:
            verdict = Verdict(answer=Answer.UNTESTABLE, reason=error.message, expires_at=now + TRY_AGAIN)
            await self.backlog.give_up(build, verdict)
            self.untold.append(Untold(build=build.id, reason=error.message))
        else:
            self.out_of_reach = 0
            self.read.append(build.id)
            operations = sum(len(kernels) for kernels in seen.observation.kernels.values())
            verdict = Verdict(answer=Answer.GOOD, reason=f"read: {operations} operations")
        self.probe.progress(Probed(build=build, verdict=verdict, from_history=False))
