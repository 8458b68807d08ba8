"""A ledger in memory, which passes the same contract as the history file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bisector.errors import UnknownRun
from bisector.kernels.inventory import summarize
from bisector.model import (
    Asked,
    Build,
    Depth,
    Digest,
    KernelSummary,
    Mark,
    Observation,
    Platform,
    RemoteImage,
    Run,
    RunState,
    RunStep,
    Verdict,
)
from bisector.ports import Clock
from tests.fakes.clock import SteppingClock

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """A build as it was met last, and the place it was given."""

    build: Build
    listing: int
    place: int | None = None


class MemoryLedger:
    """What a ledger knows, in plain attributes that a test may look at.

    Attributes:
        observations: By digest, depth and probe version.
        seen: Each listing that was noted, in order.
        given_up: By source, name and platform, the builds that could not be looked at.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.observations: dict[tuple[Digest, Depth, int], Observation] = {}
        self.seen: list[tuple[Build, ...]] = []
        self.given_up: dict[tuple[str, str, Platform], Verdict] = {}
        self._clock = clock or SteppingClock()
        self._met: dict[tuple[str, str, Platform], _Met] = {}

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
            self._meet(replace(build, digest=build.digest or observation.digest))

    async def see(self, builds: Sequence[Build]) -> None:
        self.seen.append(tuple(builds))
        for build in builds:
            self._meet(build, listing=len(self.seen))

    async def known(self, builds: Sequence[Build]) -> Mapping[str, Observation]:
        found: dict[str, Observation] = {}
        for build in builds:
            digest = self._digest(build)
            readings = [candidate for candidate in self.observations.values() if candidate.digest == digest]
            deepest = max(readings, key=lambda it: (it.depth is Depth.KERNELS, it.probe_version), default=None)
            if deepest is not None:
                found.setdefault(build.id, deepest)
        return found

    async def summaries(self, builds: Sequence[Build]) -> Mapping[str, KernelSummary]:
        return {name: summarize(observation) for name, observation in (await self.known(builds)).items()}

    async def arrange(self, builds: Sequence[Build]) -> None:
        for place, build in enumerate(builds):
            if met := self._met.get(_key(build)):
                self._met[_key(build)] = replace(met, place=place)

    async def remembered(self, source: str, platform: Platform) -> Sequence[Build]:
        met = [it for it in self._met.values() if it.build.source == source and it.build.platform == platform]
        last = max((it.listing for it in met), default=0)
        met.sort(key=lambda it: it.build.published_at or _LONG_AGO)
        met.sort(key=lambda it: -1 if it.place is None else it.place)
        return [_gone(it.build) if 0 < it.listing < last else it.build for it in met]

    async def give_up(self, build: Build, verdict: Verdict) -> None:
        self._meet(build)
        self.given_up[_key(build)] = verdict

    async def unread(self, builds: Sequence[Build], depth: Depth, *, version: int) -> Sequence[Build]:
        now = self._clock.now()
        left = []
        for build in builds:
            digest, verdict = self._digest(build), self.given_up.get(_key(build))
            known = digest and await self.observation(digest, depth, version=version)
            believed = verdict and (verdict.expires_at is None or verdict.expires_at > now)
            if not known and not believed:
                left.append(build)
        return left

    def _digest(self, build: Build) -> Digest | None:
        return build.digest or (self._met[_key(build)].build.digest if _key(build) in self._met else None)

    def _meet(self, build: Build, *, listing: int = 0) -> None:
        known = self._met.get(_key(build))
        if known is None:
            self._met[_key(build)] = _Met(build=build, listing=listing)
            return
        old = known.build
        told = replace(
            build,
            digest=build.digest or old.digest,
            published_at=build.published_at or old.published_at,
            commit=build.commit or old.commit,
            pin=build.pin or old.pin,
            marks=tuple(mark for mark in build.marks if mark is not Mark.GONE),
        )
        self._met[_key(build)] = replace(known, build=told, listing=listing or known.listing)


def _key(build: Build) -> tuple[str, str, Platform]:
    return build.source, build.id, build.platform


def _gone(build: Build) -> Build:
    location = build.location
    if isinstance(location, RemoteImage) and build.digest:
        location = replace(location, reference=build.digest)
    return replace(build, location=location, marks=(*build.marks, Mark.GONE))


class MemoryJournal:
    """Runs in memory.

    Attributes:
        runs: By id, in the order in which they began.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.runs: dict[str, Run] = {}
        self._clock = clock or SteppingClock()

    async def begin(self, asked: Asked) -> str:
        now = self._clock.now()
        resumed = self.runs.get(asked.resumes or "")
        if resumed and resumed.state is RunState.RUNNING:
            self.runs[resumed.id] = replace(resumed, state=RunState.INTERRUPTED, ended_at=now)
        run = Run(
            id=f"{now:%Y%m%d-%H%M%S}-{len(self.runs)}",
            asked=asked if resumed else replace(asked, resumes=None),
            state=RunState.RUNNING,
            started_at=now,
            ended_at=None,
            host="memory",
            pid=1,
            outcome=None,
            result=None,
            steps=(),
        )
        self.runs[run.id] = run
        return run.id

    async def step(self, run: str, build: str, verdict: Verdict, *, from_history: bool) -> None:
        known = await self.run(run)
        step = RunStep(build=build, verdict=verdict, from_history=from_history, at=self._clock.now())
        self.runs[run] = replace(known, steps=(*known.steps, step))

    async def end(self, run: str, state: RunState, *, outcome: str | None, result: Mapping[str, object] | None) -> None:
        known = await self.run(run)
        self.runs[run] = replace(known, state=state, ended_at=self._clock.now(), outcome=outcome, result=result)

    async def run(self, run: str) -> Run:
        if run not in self.runs:
            raise UnknownRun(f"There is no run {run!r}")
        return self.runs[run]
