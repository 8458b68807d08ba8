"""One search of a stream: propose, look, judge, record, until the answer holds under a deeper look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from bisector.errors import NoBuildForPlatform, RangesUnsupported, Unavailable, UnknownBuild, Unreadable
from bisector.jobs.booted import Predicate
from bisector.jobs.probe import Probe, Tally, first_error
from bisector.kernels.predicates import judge
from bisector.model import (
    Answer,
    Build,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Found,
    FoundBetween,
    Inconclusive,
    LibraryStatus,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Observation,
    Outcome,
    Verdict,
)
from bisector.ports import Narrowed, Probed
from bisector.results import Question, Seen, TimelineEntry
from bisector.search import Search, Strategy

AT_ONCE = 4
"""Builds read at the same time in a sweep; a bisection reads one, since each answer decides the next."""


@dataclass(slots=True, kw_only=True)
class SearchRun:
    """A search in progress.

    Attributes:
        question: What is asked of each build.
        depth: How deep a first look has to be to answer it.
        probe: Looks at builds.
        tally: Counts.
        builds: The builds by id, oldest first.
        search: Decides which to look at.
        strategy: How it searches.
        seen: What was seen of each build so far.
        gone: Builds whose own files are in no place any more, answered by their commit's wheel.
        unavailable: The last thing that could not be reached.
        predicate: Answers the question in place of the kernels, by trying; what it says of the two builds that the
            search names is asked once more.
    """

    question: Question
    depth: Depth
    probe: Probe
    tally: Tally
    builds: Mapping[str, Build]
    search: Search
    strategy: Strategy
    seen: dict[str, Seen] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unavailable: Unavailable | None = None
    predicate: Predicate | None = None
    verified: set[str] = field(default_factory=set)

    @property
    def at_once(self) -> int:
        """How many builds are looked at together."""
        return AT_ONCE if self.strategy is Strategy.SWEEP and self.predicate is None else 1

    async def to_the_end(self) -> Outcome:
        """Probe until there is an outcome that a deeper look at the builds it names agrees with."""
        while True:
            while proposals := self.search.next(self.at_once):
                await self._look_at(proposals, deeply=False)
                self._tell_window()
            outcome = self.search.outcome()
            if outcome is None:
                raise AssertionError("The search neither proposes a build nor concludes.")
            shallow = [name for name in named(outcome) if self._is_shallow(name)]
            if not shallow:
                return outcome
            await self._look_at(shallow, deeply=True)
            self.verified.update(shallow)

    async def look_at_sides(self, outcome: Outcome) -> None:
        """What differs in two builds that were told apart by trying them; an unreadable one is no less told apart."""
        for name in named(outcome):
            build = self.builds[name]
            try:
                self.seen[name] = await self.probe.look(build, Depth.KERNELS, self.tally)
            except (NoBuildForPlatform, UnknownBuild, Unreadable, Unavailable) as error:
                unread = Observation(
                    digest=build.digest or Digest(""),
                    depth=Depth.NAMES,
                    probe_version=0,
                    evidence=EvidenceKind.IMAGE,
                    deep_gemm=DeepGemm(status=LibraryStatus.UNREADABLE, reason=error.message),
                )
                self.seen[name] = Seen(build=build, observation=unread, from_history=False)

    def timeline(self) -> tuple[TimelineEntry, ...]:
        """The builds that got a verdict, oldest first."""
        verdicts = self.search.verdicts
        return tuple(
            TimelineEntry(build=self._build(name), verdict=verdicts[name], observation=self._observation(name))
            for name in self.builds
            if name in verdicts
        )

    async def _look_at(self, names: Sequence[str], *, deeply: bool) -> None:
        verdicts: dict[str, Verdict] = {}

        async def one(name: str) -> None:
            verdicts[name] = await self._verdict(name, deeply=deeply)

        with first_error():
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(one, name)
        for name in names:
            self.search.record(name, verdicts[name])

    async def _verdict(self, name: str, *, deeply: bool) -> Verdict:
        if self.predicate is not None:
            return await self._tried(name, self.predicate)
        build = self.builds[name]
        from_history = False
        try:
            seen = await (self._deep(build) if deeply else self.probe.glance(build, self.depth, self.tally))
        except RangesUnsupported:
            raise
        except (NoBuildForPlatform, UnknownBuild, Unreadable) as error:
            verdict = Verdict(answer=Answer.UNTESTABLE, reason=error.message)
        except Unavailable as error:
            self.unavailable = error
            verdict = Verdict(answer=Answer.INFRA, reason=error.message)
        else:
            self.seen[name] = seen
            from_history = seen.from_history
            verdict = judge(seen.observation, self.question)
        self.probe.progress(Probed(build=build, verdict=verdict, from_history=from_history))
        return verdict

    async def _tried(self, name: str, predicate: Predicate) -> Verdict:
        build = self.builds[name]
        verdict = await predicate(build)
        if verdict.answer is Answer.INFRA:
            self.unavailable = Unavailable(verdict.reason)
        self.probe.progress(Probed(build=build, verdict=verdict, from_history=False))
        return verdict

    async def _deep(self, build: Build) -> Seen:
        """The build itself; where it is gone from every place, the wheel of its commit, as deep as a wheel goes."""
        try:
            return await self.probe.look(build, Depth.KERNELS, self.tally)
        except UnknownBuild:
            if build.witness is None:
                raise
            self.gone.add(build.id)
            return await self.probe.glance(build, Depth.KERNELS, self.tally)

    def _tell_window(self) -> None:
        if window := self.search.window():
            before, after, between, steps_left = window
            self.probe.progress(Narrowed(before=before, after=after, between=between, steps_left=steps_left))

    def _is_shallow(self, name: str) -> bool:
        if self.predicate is not None:
            return name not in self.verified
        seen = self.seen.get(name)
        if seen is None:
            return False
        return seen.observation.depth is Depth.NAMES or (seen.by_witness and name not in self.gone)

    def _build(self, name: str) -> Build:
        return self.seen[name].build if name in self.seen else self.builds[name]

    def _observation(self, name: str) -> Observation | None:
        return self.seen[name].observation if name in self.seen else None


def named(outcome: Outcome) -> tuple[str, ...]:
    """The builds that an outcome names as the two sides of a change."""
    match outcome:
        case Found(before=before, after=after) | FoundBetween(before=before, after=after):
            return (before, after)
        case NonMonotone() | NotReproduced() | Inconclusive() | NoRegression():
            return ()
