"""``builds``: a stream, and what the history knows of each build. Reads no build."""

from __future__ import annotations

from bisector.arch import DEEP_GEMM
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve
from bisector.kernels.inventory import carries
from bisector.model import Build, Observation
from bisector.results import Timeline, TimelineEntry


async def timeline(source: str, *, resolve: Resolve, probe: Probe) -> Timeline:
    """List a stream and lay the history beside it."""
    tally = probe.tally()
    builds = await resolve.stream(source)
    known = await probe.ledger.known(builds)
    return Timeline(
        source=builds[-1].source if builds else source,
        entries=tuple(_entry(build, known.get(build.id)) for build in builds),
        cost=tally.cost(builds=len(builds)),
    )


def _entry(build: Build, observation: Observation | None) -> TimelineEntry:
    if observation is None:
        return TimelineEntry(build=build)
    kernels = {arch.name: carries(observation, arch.name) for arch in DEEP_GEMM}
    return TimelineEntry(build=build, observation=observation, kernels=kernels)
