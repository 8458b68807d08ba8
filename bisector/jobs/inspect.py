"""``inspect``: everything one build says of itself. ``diff``: what differs between two."""

from __future__ import annotations

from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve
from bisector.kernels.inventory import gained, lost, package_changes
from bisector.model import ANY_ARCH, Depth
from bisector.results import ArchChange, Difference, Inspection


async def inspect(spelling: str, *, resolve: Resolve, probe: Probe, all_libraries: bool = False) -> Inspection:
    """The inventory of one build."""
    tally = probe.tally()
    build = await resolve.build(spelling)
    seen = await probe.look(build, Depth.KERNELS, tally, all_libraries=all_libraries)
    return Inspection(seen=seen, cost=tally.cost(builds=1))


def in_order(arch: str) -> tuple[bool, int, str]:
    """Sorts sm90 before sm100, and what serves every architecture last."""
    return arch == ANY_ARCH, len(arch), arch


async def diff(before: str, after: str, *, resolve: Resolve, probe: Probe) -> Difference:
    """What ``after`` lost, gained and changed over ``before``."""
    tally = probe.tally()
    old = await probe.look(await resolve.build(before), Depth.KERNELS, tally)
    new = await probe.look(await resolve.build(after), Depth.KERNELS, tally)
    archs = sorted({*old.observation.kernels, *new.observation.kernels}, key=in_order)
    changes = (
        ArchChange(
            arch=arch,
            lost=lost(old.observation, new.observation, arch),
            gained=gained(old.observation, new.observation, arch),
        )
        for arch in archs
    )
    return Difference(
        before=old,
        after=new,
        archs=tuple(change for change in changes if change.lost or change.gained),
        packages=package_changes(old.observation, new.observation),
        gate=(old.observation.gate, new.observation.gate),
        cost=tally.cost(builds=2),
    )
