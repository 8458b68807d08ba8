"""``find-regression``: the main job. Which build of a stream lost an architecture's kernels, and what else changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from bisector.errors import NoBuildForPlatform, RangesUnsupported, ReversedRange, Unavailable, Unreadable
from bisector.jobs.choose import choose
from bisector.jobs.probe import Probe, Tally, first_error
from bisector.jobs.resolve import Resolve
from bisector.kernels.inventory import gained, lost, package_changes
from bisector.kernels.predicates import gate_finding, judge
from bisector.model import (
    Answer,
    Build,
    Depth,
    Found,
    FoundBetween,
    Inconclusive,
    Mark,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Observation,
    Outcome,
    Verdict,
)
from bisector.ports import Narrowed, Probed
from bisector.results import Finding, GateFinding, PackageChange, Plan, Question, Seen, TimelineEntry
from bisector.search import Direction, Search, Strategy

AT_ONCE = 4
"""Builds read at the same time in a sweep; a bisection reads one, since each answer decides the next."""

LOOK_BACK = 60
"""How many builds an open range reaches back at most (DESIGN §6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for.

    Attributes:
        question: What is asked of each build.
        source: The stream.
        good: An end of the range that has the kernels, as spelled.
        bad: An end that has not.
        since: Leave out builds published before this moment, UTC.
        strategy: ``None``: sweep where a look is cheap, bisect where it is dear.
        direction: Look for the loss, or for its repair.
        prereleases: Look at pre-releases too.
    """

    question: Question
    source: str
    good: str | None = None
    bad: str | None = None
    since: datetime | None = None
    strategy: Strategy | None = None
    direction: Direction = Direction.LOSS
    prereleases: bool = False

    @property
    def depth(self) -> Depth:
        """Names are enough for "any kernel at all"; single operations need the library."""
        return Depth.KERNELS if self.question.require else Depth.NAMES

    def command(self, *, good: str | None, bad: str | None) -> str:
        """The command line that asks this again between two ends."""
        words = ["bisector", "find-regression", "--arch", self.question.device.name, "--source", self.source]
        for name, value in (("--good", good), ("--bad", bad)):
            words += [name, value] if value else []
        if self.since and not (good and bad):
            words += ["--since", f"{self.since:%Y-%m-%d}"]
        for op in self.question.require:
            words += ["--require", op]
        words += ["--strategy", self.strategy] if self.strategy else []
        words += ["--find-fix"] if self.direction is Direction.FIX else []
        words += ["--pre"] if self.prereleases else []
        return shlex.join(words)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One search in progress: the builds by name, what was seen in each, and the search itself."""

    request: Request
    probe: Probe
    tally: Tally
    builds: Mapping[str, Build]
    search: Search
    strategy: Strategy
    seen: dict[str, Seen] = field(default_factory=dict)
    unavailable: Unavailable | None = None

    async def to_the_end(self) -> Outcome:
        """Probe until there is an outcome that the deeper look at the builds it names agrees with."""
        while True:
            await self._probe_proposals()
            outcome = self.search.outcome()
            if outcome is None:  # pragma: no cover - next() and outcome() would contradict each other
                raise AssertionError("The search neither proposes a build nor concludes.")
            shallow = [name for name in named(outcome) if self._is_shallow(name)]
            if not shallow:
                return outcome
            await self._probe_all(shallow, Depth.KERNELS)

    async def _probe_proposals(self) -> None:
        at_once = AT_ONCE if self.strategy is Strategy.SWEEP else 1
        while proposals := self.search.next(at_once):
            await self._probe_all(proposals, self.request.depth)
            if window := self.search.window():
                before, after, between, steps_left = window
                self.probe.progress(Narrowed(before=before, after=after, between=between, steps_left=steps_left))

    async def _probe_all(self, names: Sequence[str], depth: Depth) -> None:
        verdicts: dict[str, Verdict] = {}

        async def one(name: str) -> None:
            verdicts[name] = await self._verdict(name, depth)

        with first_error():
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(one, name)
        for name in names:
            self.search.record(name, verdicts[name])

    async def _verdict(self, name: str, depth: Depth) -> Verdict:
        build = self.builds[name]
        from_history = False
        try:
            seen = await self.probe.look(build, depth, self.tally)
        except RangesUnsupported:
            raise
        except (NoBuildForPlatform, Unreadable) as error:
            verdict = Verdict(answer=Answer.UNTESTABLE, reason=error.message)
        except Unavailable as error:
            self.unavailable = error
            verdict = Verdict(answer=Answer.INFRA, reason=error.message)
        else:
            self.seen[name] = seen
            from_history = seen.from_history
            verdict = judge(seen.observation, self.request.question)
        self.probe.progress(Probed(build=build, verdict=verdict, from_history=from_history))
        return verdict

    def _is_shallow(self, name: str) -> bool:
        return name in self.seen and self.seen[name].observation.depth is Depth.NAMES

    def timeline(self) -> tuple[TimelineEntry, ...]:
        """The builds that got a verdict, oldest first."""
        verdicts = self.search.verdicts
        return tuple(
            TimelineEntry(build=build, verdict=verdicts[name], observation=self._observation(name))
            for name, build in self.builds.items()
            if name in verdicts
        )

    def _observation(self, name: str) -> Observation | None:
        return self.seen[name].observation if name in self.seen else None


def named(outcome: Outcome) -> tuple[str, ...]:
    """The builds that an outcome names as the two sides of a change."""
    match outcome:
        case Found(before=before, after=after) | FoundBetween(before=before, after=after):
            return (before, after)
        case NonMonotone() | NotReproduced() | Inconclusive() | NoRegression():
            return ()


async def find(request: Request, *, resolve: Resolve, probe: Probe) -> Finding:
    """Search a stream for the build that lost the kernels, or for the one that has them again.

    Raises:
        UnknownBuild: An end names no build of the stream.
        ReversedRange: Both ends hold, the wrong way round.
        Unavailable: Reading failed again and again; what was read is kept.
    """
    run = await _prepare(request, resolve=resolve, probe=probe)
    outcome = await run.to_the_end()
    if isinstance(outcome, Inconclusive):
        if run.search.reversed:
            raise ReversedRange(f"The good build {request.good} is newer than the bad one {request.bad}")
        if run.unavailable:
            raise run.unavailable
    return _finding(run, outcome)


async def plan(request: Request, *, resolve: Resolve, probe: Probe) -> Plan:
    """What ``find`` would do, without reading any build."""
    run = await _prepare(request, resolve=resolve, probe=probe)
    candidates = list(run.builds.values())[-LOOK_BACK:]
    known = [build for build in candidates if await probe.recall(build, request.depth)]
    return Plan(
        question=request.question,
        source=request.source,
        strategy=run.strategy,
        depth=request.depth,
        builds=tuple(run.builds.values()),
        at_most=len(candidates),
        from_history=len(known),
        first=run.search.next(AT_ONCE if run.strategy is Strategy.SWEEP else 1),
        reproduce=request.command(good=request.good, bad=request.bad),
    )


async def _prepare(request: Request, *, resolve: Resolve, probe: Probe) -> _Run:
    tally = probe.tally()
    stream = await resolve.stream(request.source)
    known = await probe.ledger.known(stream)
    commits = {name: seen.provenance.commit for name, seen in known.items() if seen.provenance.commit}
    good = choose(stream, request.good, commits=commits) if request.good else None
    bad = choose(stream, request.bad, commits=commits) if request.bad else None
    ends = {end.id for end in (good, bad) if end}
    builds = {build.id: build for build in stream if build.id in ends or _eligible(build, request)}
    # A single operation costs megabytes a build; whether there is any kernel at all, half a megabyte.
    strategy = request.strategy or (Strategy.SWEEP if request.depth is Depth.NAMES else Strategy.BISECT)
    return _Run(
        request=request,
        probe=probe,
        tally=tally,
        builds=builds,
        strategy=strategy,
        search=Search(
            tuple(builds),
            strategy=strategy,
            direction=request.direction,
            good=good.id if good else None,
            bad=bad.id if bad else None,
            limit=LOOK_BACK,
            ordinals={build.id: position for position, build in enumerate(stream)},
        ),
    )


def _eligible(build: Build, request: Request) -> bool:
    if Mark.YANKED in build.marks or (Mark.PRERELEASE in build.marks and not request.prereleases):
        return False
    return request.since is None or build.published_at is None or build.published_at >= request.since


def _finding(run: _Run, outcome: Outcome) -> Finding:
    request, question = run.request, run.request.question
    pair = named(outcome)
    before, after = (run.seen.get(pair[0]), run.seen.get(pair[1])) if pair else (None, None)
    ops: tuple[str, ...] = ()
    changes: tuple[PackageChange, ...] = ()
    gate = GateFinding.UNKNOWN
    if before and after:
        change = lost if request.direction is Direction.LOSS else gained
        ops = change(before.observation, after.observation, question.served_by.name)
        changes = package_changes(before.observation, after.observation)
        gate = gate_finding((after if request.direction is Direction.LOSS else before).observation, question)
    timeline = run.timeline()
    good = [entry for entry in timeline if entry.verdict and entry.verdict.answer is Answer.GOOD]
    ends = pair if request.direction is Direction.LOSS else pair[::-1]
    good_end, bad_end = ends or (request.good, request.bad)
    return Finding(
        question=question,
        source=request.source,
        platform=timeline[0].build.platform if timeline else "",
        strategy=run.strategy,
        direction=request.direction,
        outcome=outcome,
        timeline=timeline,
        before=before,
        after=after,
        losses=run.search.losses(),
        changed_ops=ops,
        packages=changes,
        gate=gate,
        newest_good=good[-1].build if good else None,
        cost=run.tally.cost(builds=len(run.builds)),
        reproduce=request.command(good=good_end, bad=bad_end),
        finished_at=run.probe.clock.now(),
    )
