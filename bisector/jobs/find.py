"""``find-regression``: the main job. Which build of a stream lost an architecture's kernels, and what else changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bisector.errors import BisectorError, ReversedRange, UnknownBuild
from bisector.jobs.booted import Predicate
from bisector.jobs.choose import choose
from bisector.jobs.commits import Between, hand_off
from bisector.jobs.order import in_commit_order
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve, Window
from bisector.jobs.search_run import SearchRun, named
from bisector.kernels.inventory import gained, lost, package_changes
from bisector.kernels.predicates import gate_finding
from bisector.model import Answer, Build, CommitWheel, Depth, Inconclusive, Mark, Outcome, RemoteImage
from bisector.results import Finding, GateFinding, PackageChange, Plan, Question, carried_instead
from bisector.search import Direction, Search, Strategy

LOOK_BACK = 60
"""How many builds an open range reaches back at most (DESIGN §6)."""

STOPPED = timedelta(days=3)
"""A stream of nightlies without a new build for so long has stopped."""


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
        commits: Go on from the two builds to the commit.
        every: For a stream of commits: each ``commit``, or the last of each ``day``.
        by: What is asked: ``kernels``, ``boot`` or ``tpot``.
        profile: How builds are booted, as spelled.
        host: Where.
        confirm: Boot the two builds that were found.
    """

    question: Question
    source: str
    good: str | None = None
    bad: str | None = None
    since: datetime | None = None
    strategy: Strategy | None = None
    direction: Direction = Direction.LOSS
    prereleases: bool = False
    commits: bool = False
    every: str = "commit"
    by: str = "kernels"
    profile: str | None = None
    host: str = "local"
    confirm: bool = False

    @property
    def depth(self) -> Depth:
        """Names are enough for "any kernel at all"; single operations need the library."""
        return Depth.KERNELS if self.question.require else Depth.NAMES

    @property
    def remembered(self) -> bool:
        """The history itself is searched, and nothing else is asked."""
        return self.source.startswith("history:")

    @property
    def window(self) -> Window:
        """Which part of a stream without end is meant."""
        ends = (self.good, self.bad) if self.direction is Direction.LOSS else (self.bad, self.good)
        return Window(start=ends[0], end=ends[1], since=self.since, every=self.every)

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
        words += ["--every", self.every] if self.every != "commit" else []
        words += ["--find-fix"] if self.direction is Direction.FIX else []
        words += ["--pre"] if self.prereleases else []
        words += ["--commits"] if self.commits else []
        words += ["--by", self.by] if self.by != "kernels" else []
        words += ["--confirm"] if self.confirm else []
        words += ["--profile", self.profile] if self.profile else []
        words += ["--host", self.host] if self.host != "local" else []
        return shlex.join(words)


async def find(request: Request, *, resolve: Resolve, probe: Probe, predicate: Predicate | None = None) -> Finding:
    """Search a stream for the build that lost the kernels, or for the one that has them again.

    Args:
        request: What was asked for.
        resolve: Finds builds.
        probe: Looks at builds.
        predicate: Answers in place of the kernels, by trying.

    Raises:
        UnknownBuild: An end names no build of the stream.
        ReversedRange: Both ends hold, the wrong way round.
        Unavailable: Reading failed again and again; what was read is kept.
    """
    run, notes = await _prepare(request, resolve=resolve, probe=probe)
    if predicate is not None:
        run.predicate = predicate
    outcome = await run.to_the_end()
    if predicate is not None:
        await run.look_at_sides(outcome)
    if isinstance(outcome, Inconclusive):
        if run.search.reversed:
            raise ReversedRange(f"The good build {request.good} is newer than the bad one {request.bad}")
        if run.unavailable:
            raise run.unavailable
    finding = _finding(request, run, outcome, notes)
    if request.commits:
        finding = await _with_commits(finding, run, request, resolve)
    return replace(finding, cost=run.tally.cost(builds=len(run.builds)))


async def plan(request: Request, *, resolve: Resolve, probe: Probe) -> Plan:
    """What ``find`` would do, without reading any build."""
    run, _ = await _prepare(request, resolve=resolve, probe=probe)
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
        first=run.search.next(run.at_once),
        reproduce=request.command(good=request.good, bad=request.bad),
    )


async def _prepare(request: Request, *, resolve: Resolve, probe: Probe) -> tuple[SearchRun, tuple[str, ...]]:
    tally = probe.tally()
    stream = await resolve.stream(request.source, request.window)
    notes = []
    if request.remembered:
        probe = replace(probe, offline=True)
    else:
        stream, note = await in_commit_order(stream, resolve.history)
        await resolve.catalogue.arrange(stream)
        notes += [note] if note else []
    known = await probe.ledger.summaries(stream)
    commits = {name: summary.commit for name, summary in known.items() if summary.commit}
    good = choose(stream, request.good, commits=commits) if request.good else None
    bad = choose(stream, request.bad, commits=commits) if request.bad else None
    ends = {end.id for end in (good, bad) if end}
    builds = {build.id: build for build in stream if build.id in ends or _eligible(build, request)}
    strategy = request.strategy or _strategy(request, builds.values(), between=bool(good and bad))
    if stopped := _stopped(stream, probe.clock.now()):
        notes.append(stopped)
    search = Search(
        tuple(builds),
        strategy=strategy,
        direction=request.direction,
        good=good.id if good else None,
        bad=bad.id if bad else None,
        limit=LOOK_BACK,
        ordinals={build.id: position for position, build in enumerate(stream)},
    )
    run = SearchRun(
        question=request.question,
        depth=request.depth,
        probe=probe,
        tally=tally,
        builds=builds,
        strategy=strategy,
        search=search,
    )
    return run, tuple(notes)


def _strategy(request: Request, builds: Iterable[Build], *, between: bool) -> Strategy:
    """Sweep while that is cheap: half a megabyte a build, if there is a wheel, and no more builds than one looks at."""
    if request.by != "kernels":
        return Strategy.BISECT
    cheap = all(build.witness or not isinstance(build.location, RemoteImage) for build in builds)
    many = between and sum(1 for build in builds if isinstance(build.location, CommitWheel)) > LOOK_BACK
    return Strategy.SWEEP if cheap and not many and request.depth is Depth.NAMES else Strategy.BISECT


def _eligible(build: Build, request: Request) -> bool:
    if Mark.YANKED in build.marks or (Mark.PRERELEASE in build.marks and not request.prereleases):
        return False
    return request.since is None or build.published_at is None or build.published_at >= request.since


def _stopped(stream: Sequence[Build], now: datetime) -> str | None:
    dates = [build.published_at for build in stream if build.published_at and isinstance(build.location, RemoteImage)]
    if not dates or now - max(dates) < STOPPED:
        return None
    return f"Nothing new has come since {max(dates):%Y-%m-%d}; this stream may have been discontinued."


def _finding(request: Request, run: SearchRun, outcome: Outcome, notes: tuple[str, ...]) -> Finding:
    question = request.question
    pair = named(outcome)
    before, after = (run.seen.get(pair[0]), run.seen.get(pair[1])) if pair else (None, None)
    ops: tuple[str, ...] = ()
    changes: tuple[PackageChange, ...] = ()
    gate = GateFinding.UNKNOWN
    is_loss = request.direction is Direction.LOSS
    if before and after:
        ops = (lost if is_loss else gained)(before.observation, after.observation, question.served_by.name)
        changes = package_changes(before.observation, after.observation)
        gate = gate_finding((after if is_loss else before).observation, question)
    timeline = run.timeline()
    good = [entry for entry in timeline if entry.verdict and entry.verdict.answer is Answer.GOOD]
    ends = pair if is_loss else pair[::-1]
    good_end, bad_end = ends or (request.good, request.bad)
    return Finding(
        question=question,
        source=request.source,
        platform=next((build.platform for build in run.builds.values()), ""),
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
        hand_off=None,
        notes=(*notes, *_remarks(run)),
        cost=run.tally.cost(builds=len(run.builds)),
        reproduce=request.command(good=good_end, bad=bad_end),
        finished_at=run.probe.clock.now(),
        by=request.by,
    )


def _remarks(run: SearchRun) -> Iterator[str]:
    for name, seen in run.seen.items():
        if carried := carried_instead(seen.build, seen.observation):
            yield f"{name} is stale: it carries the wheel of commit {carried}."
    for host, limit in run.probe.rate_limits().items():
        hours = f" in {limit.window // 3600} h" if limit.window else ""
        yield f"{host} allows {limit.remaining} of {limit.limit} more pulls{hours}."
    for name in run.builds:
        if name in run.gone:
            yield f"{name} is gone from its registry; the wheel of its commit answers for it."


async def _with_commits(finding: Finding, run: SearchRun, request: Request, resolve: Resolve) -> Finding:
    if finding.before is None or finding.after is None:
        return finding
    if resolve.history is None:
        raise UnknownBuild("There is no history of commits to search", hint="Name one with [github] or --repo.")
    between = Between(
        before=finding.before,
        after=finding.after,
        question=request.question,
        direction=request.direction,
        depth=request.depth,
        variant=finding.after.build.witness.variant if finding.after.build.witness else None,
    )
    try:
        return replace(finding, hand_off=await hand_off(between, resolve.history, run.probe, run.tally))
    except BisectorError as error:
        # The two builds are known; that the commits are not is worth a sentence, and costs nothing that was found.
        return replace(finding, notes=(*finding.notes, f"The commits could not be searched: {error.message}."))
