"""``nightly``: harvest, compare with what was told, search where something changed, tell. One failure stops nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from bisector.errors import BisectorError
from bisector.jobs.find import Request, find
from bisector.jobs.harvest import Target, harvest
from bisector.jobs.news import REPORT, builds_of, news_of, shortened
from bisector.jobs.posting import When, deliver, keep, rehearse, show
from bisector.jobs.probe import Probe
from bisector.jobs.proved import Case, OpenBench, cases, news_of_proof, proof_words
from bisector.jobs.resolve import EVERYTHING, Resolve
from bisector.jobs.standing import Bench, Watch, standing
from bisector.model import Answer, Cost, Loss
from bisector.ports import Backlog, Draft, Gauge, Outbox, Receiver
from bisector.results import HarvestedSource, News, NewsKind, Night, Stage, StreamNight
from bisector.search import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    """The night's work.

    Attributes:
        watches: What is looked after.
        resolve: Lists streams.
        probe: Reads builds.
        backlog: Knows what is still to be read.
        outbox: Knows what was told.
        receivers: Who is told of changes.
        gauges: What shows how things stand.
        open_bench: Makes a bench ready for what is to be proved.
        when: When something is posted.
        rehearsal: Read no build and send nothing; say what would be done. Whoever wants nothing written gives rooms
            whose history is a copy.
    """

    watches: Sequence[Watch]
    resolve: Resolve
    probe: Probe
    backlog: Backlog
    outbox: Outbox
    receivers: Sequence[Receiver] = ()
    gauges: Sequence[Gauge] = ()
    open_bench: OpenBench | None = None
    when: When = When.CHANGE
    rehearsal: bool = False

    async def run(self) -> Night:
        """Do it all, and tell how it went."""
        work = _Work(self)
        for watch in self.watches:
            await work.look_after(watch)
        night = await work.night()
        night = replace(night, stages=(*night.stages, *await self._tell(night)))
        if self.when is not When.NEVER and not self.rehearsal:
            # Last of all: what a run that was killed on the way had found is news to the next one again.
            noted = [Draft(key=news.key, body=news.sentence, says=news.sentence) for news in night.news]
            noted += [Draft(key=case.key, body=case.about.spec, says=case.about.spec) for case in work.proved]
            await self.outbox.put(REPORT, noted, sent=True)
        return night

    async def _tell(self, night: Night) -> Sequence[Stage]:
        if self.rehearsal:
            return [await rehearse(night, receiver, self.outbox, when=self.when) for receiver in self.receivers]
        if self.when is When.NEVER:
            return ()
        await keep(night, self.receivers, self.outbox, when=self.when)
        stages = [await deliver(receiver, self.outbox, self.probe.clock) for receiver in self.receivers]
        night = replace(night, stages=(*night.stages, *stages))
        return [*stages, *[await show(night, gauge, self.outbox) for gauge in self.gauges]]


@dataclass(slots=True)
class _Work:
    job: Nightly
    streams: list[StreamNight] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    proved: list[Case] = field(default_factory=list)
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.job.probe.clock.monotonic()

    async def look_after(self, watch: Watch) -> None:
        job = self.job
        resolve = job.resolve.on(watch.platform)
        harvested = await self._harvest(watch, resolve)
        stream = await standing(watch, harvested, catalogue=resolve.catalogue, probe=job.probe)
        self.streams.append(stream)
        told = await job.outbox.keys(REPORT)
        news = news_of(stream, told, now=job.probe.clock.now(), stopped_after=watch.stopped_after)
        self.news += [await self._searched(one, watch, stream, resolve) for one in news]
        if watch.bench and job.open_bench:
            await self._prove(watch.bench, job.open_bench, stream, told)

    async def night(self) -> Night:
        at = self.job.probe.clock.now()
        seconds = round(self.job.probe.clock.monotonic() - self._start, 3)
        return Night(
            at=at,
            streams=tuple(self.streams),
            news=tuple(self.news),
            stages=tuple(self.stages),
            not_measured=tuple(not_measured(self.streams, booted=any(watch.bench for watch in self.job.watches))),
            cost=replace(_sum(self.costs), seconds=seconds),
        )

    async def _harvest(self, watch: Watch, resolve: Resolve) -> HarvestedSource:
        job = self.job
        name = f"harvest {watch.source}"
        limit = 0 if job.rehearsal else watch.limit
        try:
            # As the history spells it, also where the stream cannot be listed today.
            source = resolve.streams(watch.source, EVERYTHING, watch.platform).source
            done = await harvest(
                [Target(source=source, platform=watch.platform)],
                resolve=resolve,
                probe=job.probe,
                backlog=job.backlog,
                limit=limit,
            )
        except BisectorError as error:
            self.stages.append(Stage(name=name, ok=False, says=error.message))
            return HarvestedSource(source=watch.source, platform=watch.platform, error=error.message)
        self.costs.append(done.cost)
        (harvested,) = done.sources
        if harvested.error:
            self.stages.append(Stage(name=name, ok=False, says=f"{harvested.error}; told from what is known"))
        else:
            short = bool(harvested.left) and limit is None
            self.stages.append(Stage(name=name, ok=not short, says=_harvest_words(harvested, rehearsal=job.rehearsal)))
        return harvested

    async def _searched(self, news: News, watch: Watch, stream: StreamNight, resolve: Resolve) -> News:
        request = change_request(news, watch, stream)
        if request is None:
            return news
        name = f"search {news.arch} in {stream.source}"
        try:
            finding = await find(request, resolve=resolve, probe=self.job.probe)
        except BisectorError as error:
            self.stages.append(Stage(name=name, ok=False, says=error.message))
            return news
        self.costs.append(finding.cost)
        self.stages.append(Stage(name=name, ok=True, says=news.kind))
        return replace(news, finding=finding)

    async def _prove(self, bench: Bench, open_bench: OpenBench, stream: StreamNight, told: Collection[str]) -> None:
        for case in cases(bench, stream, told):
            name = f"confirm {shortened(case.about.id)} on {bench.host}"
            if self.job.rehearsal:
                self.stages.append(Stage(name=name, ok=True, says=f"would boot {_builds(len(case.builds))}"))
                continue
            try:
                proved = await (await open_bench(bench))(case.builds)
            except BisectorError as error:
                self.stages.append(Stage(name=name, ok=False, says=error.message))
                continue
            tested = all(trial.tested for trial in proved.trials)
            self.stages.append(Stage(name=name, ok=tested, says=proof_words(proved)))
            news = news_of_proof(case, proved, stream)
            if news and news.key not in told:
                self.news.append(news)
            if tested:
                self.proved.append(case)


def change_request(news: News, watch: Watch, stream: StreamNight) -> Request | None:
    """The search between the two builds of a change; ``None`` for news of another kind, or of what is no more."""
    question = next((question for question in watch.questions if question.device.name == news.arch), None)
    if question is None or news.kind not in {NewsKind.LOST, NewsKind.REGAINED}:
        return None
    arch = next(arch for arch in stream.archs if arch.arch == news.arch)
    lost = news.kind is NewsKind.LOST
    loss = next(
        (loss for loss in arch.losses if news.key.endswith(f":{loss.lost_at if lost else loss.regained_at}")), None
    )
    if loss is None:
        return None
    listed = stream.harvest.error is None
    return Request(
        question=question,
        source=stream.source if listed else f"history:{stream.source}",
        good=loss.last_good if lost else loss.regained_at,
        bad=loss.lost_at if lost else _last_of(stream, loss),
        direction=Direction.LOSS if lost else Direction.FIX,
        commits=watch.commits and listed,
    )


def _last_of(stream: StreamNight, loss: Loss) -> str:
    return loss.last_bad if loss.last_bad in builds_of(stream, loss) else loss.lost_at


def not_measured(streams: Sequence[StreamNight], *, booted: bool) -> list[str]:
    """What nobody looked at, a sentence each."""
    says = []
    for stream in streams:
        harvested = stream.harvest
        if harvested.left:
            says.append(f"{stream.source}: {_builds(len(harvested.left))} still to be read")
        says += [f"{untold.build} could not be read: {untold.reason}" for untold in harvested.untold]
        says += [
            f"{stream.source}: no build could be tested for {arch.arch}"
            for arch in stream.archs
            if arch.verdict.answer is Answer.UNTESTABLE
        ]
    if streams and not booted:
        says.append("No build was booted: this is what the files say")
    return says


def _harvest_words(harvested: HarvestedSource, *, rehearsal: bool) -> str:
    parts = [f"{harvested.listed} listed, {len(harvested.new)} new"]
    if rehearsal:
        parts.append(f"would read {_builds(len(harvested.left))}")
    else:
        parts.append(f"{len(harvested.read)} read")
        parts += [f"{len(harvested.untold)} could not be understood"] if harvested.untold else []
        parts += [f"{len(harvested.left)} left"] if harvested.left else []
    return ", ".join(parts)


def _builds(number: int) -> str:
    return f"{number} build" if number == 1 else f"{number} builds"


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(
        builds=sum(cost.builds for cost in costs),
        probes=sum(cost.probes for cost in costs),
        from_history=sum(cost.from_history for cost in costs),
        requests=sum(cost.requests for cost in costs),
        bytes=sum(cost.bytes for cost in costs),
    )
