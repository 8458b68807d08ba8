"""A ledger in memory, which passes the same contract as the history file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bisector.model import Build, Depth, Digest, Observation, Platform


class MemoryLedger:
    """What a ledger knows, in plain attributes that a test may look at.

    Attributes:
        observations: By digest, depth and probe version.
        seen: Each listing that was noted, in order.
    """

    def __init__(self) -> None:
        self.observations: dict[tuple[Digest, Depth, int], Observation] = {}
        self.seen: list[tuple[Build, ...]] = []
        self._digests: dict[tuple[str, str, Platform], Digest] = {}

    async def observation(self, digest: Digest, depth: Depth, *, version: int) -> Observation | None:
        enough = [
            candidate
            for candidate in self.observations.values()
            if candidate.digest == digest
            and candidate.probe_version >= version
            and candidate.depth in {depth, Depth.KERNELS}
        ]
        return max(enough, key=lambda it: (it.probe_version, it.depth is Depth.KERNELS), default=None)

    async def record(self, observation: Observation, build: Build | None) -> None:
        self.observations.setdefault((observation.digest, observation.depth, observation.probe_version), observation)
        if build is not None:
            self._meet(build, build.digest or observation.digest)

    async def see(self, builds: Sequence[Build]) -> None:
        self.seen.append(tuple(builds))
        for build in builds:
            self._meet(build, build.digest)

    async def known(self, builds: Sequence[Build]) -> Mapping[str, Observation]:
        found: dict[str, Observation] = {}
        for build in builds:
            digest = build.digest or self._digests.get((build.source, build.id, build.platform))
            readings = [candidate for candidate in self.observations.values() if candidate.digest == digest]
            deepest = max(readings, key=lambda it: (it.depth is Depth.KERNELS, it.probe_version), default=None)
            if deepest is not None:
                found.setdefault(build.id, deepest)
        return found

    def _meet(self, build: Build, digest: Digest | None) -> None:
        if digest is not None:
            self._digests[build.source, build.id, build.platform] = digest
