"""``builds``: a stream, and what the history knows of each build, gone ones too. Reads no build."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.arch import DEEP_GEMM
from bisector.jobs.probe import Probe, witness_of
from bisector.jobs.resolve import Resolve
from bisector.kernels.inventory import has_kernels
from bisector.model import Build, KernelSummary
from bisector.results import Timeline, TimelineEntry


async def timeline(source: str, *, resolve: Resolve, probe: Probe) -> Timeline:
    """List a stream, put back in their places the builds that it no longer lists, and lay the history beside it."""
    tally = probe.tally()
    builds = await resolve.stream(source)
    return Timeline(
        source=builds[-1].source if builds else source,
        entries=await entries(builds, probe),
        cost=tally.cost(builds=len(builds)),
    )


async def entries(builds: Sequence[Build], probe: Probe) -> tuple[TimelineEntry, ...]:
    """These builds, each with what the history knows of it."""
    known = await probe.ledger.summaries(builds)
    # Where nobody read the build itself, the wheel of its commit says what is known.
    witnesses = {
        build.id: witness_of(build, build.witness, probe.commits)
        for build in builds
        if build.witness and build.id not in known
    }
    by_commit = await probe.ledger.summaries(tuple(witnesses.values()))
    known = {name: by_commit[witness.id] for name, witness in witnesses.items() if witness.id in by_commit} | dict(
        known
    )
    return tuple(_entry(build, known.get(build.id)) for build in builds)


def _entry(build: Build, summary: KernelSummary | None) -> TimelineEntry:
    if summary is None:
        return TimelineEntry(build=build)
    kernels = {arch.name: has_kernels(summary, arch.name) for arch in DEEP_GEMM}
    return TimelineEntry(build=build, summary=summary, kernels=kernels)
