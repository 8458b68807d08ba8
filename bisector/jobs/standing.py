"""How a stream stands, told from the history alone: each watched architecture's verdict, pin and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bisector.jobs.find import STOPPED
from bisector.jobs.probe import Probe
from bisector.jobs.timeline import entries
from bisector.kernels.predicates import judge
from bisector.model import Answer, Build, Mark, Observation, Platform, Verdict
from bisector.ports import Catalogue
from bisector.results import ArchNight, HarvestedSource, Question, StreamNight, TimelineEntry
from bisector.search.losses import visible_losses

_PASSED_OVER = (Mark.YANKED, Mark.PRERELEASE)
_UNTOLD = Verdict(answer=Answer.UNTESTABLE, reason="it could not be read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where builds are proved.

    Attributes:
        host: The engine, as ``--host`` spells it.
        profile: How they are served.
        arch: The architecture of its GPUs.
    """

    host: str
    profile: str
    arch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A stream that is looked after.

    Attributes:
        source: The stream.
        platform: Whose files.
        questions: What is asked of each build, an architecture each.
        commits: Go on from the two builds of a change to the commit between them.
        stopped_after: How long without a new build until the stream counts as stopped.
        limit: How many builds are read in one night at most.
        bench: Where its builds are proved; ``None``: nowhere.
    """

    source: str
    platform: Platform
    questions: tuple[Question, ...]
    commits: bool = False
    stopped_after: timedelta = STOPPED
    limit: int | None = None
    bench: Bench | None = None


async def standing(watch: Watch, harvested: HarvestedSource, *, catalogue: Catalogue, probe: Probe) -> StreamNight:
    """How a stream stands by what is known of it now; nothing is listed and nothing read."""
    builds = await catalogue.remembered(harvested.source, watch.platform)
    shown = await entries(builds, probe)
    candidates = [entry for entry in shown if not any(mark in entry.build.marks for mark in _PASSED_OVER)]
    deep: Mapping[str, Observation] = {}
    if any(question.require for question in watch.questions):
        deep = await probe.ledger.known(builds)
    waiting = frozenset(harvested.left)
    archs = tuple(_stand(question, candidates, deep, waiting) for question in watch.questions)
    return StreamNight(
        source=harvested.source,
        platform=watch.platform,
        entries=shown,
        archs=archs,
        newest_at=max((build.published_at for build in builds if build.published_at), default=None),
        harvest=harvested,
    )


def _stand(
    question: Question,
    candidates: Sequence[TimelineEntry],
    deep: Mapping[str, Observation],
    waiting: frozenset[str],
) -> ArchNight:
    verdicts: list[tuple[Build, Verdict | None]] = []
    for entry in candidates:
        verdict = _verdict(question, entry, deep)
        # A build that will still be read may yet say where a change lies; one that told nothing will not.
        unknown = None if entry.build.id in waiting else _UNTOLD
        verdicts.append((entry.build, verdict or unknown))
    answered = [(build, verdict) for build, verdict in verdicts if verdict and verdict.answer in _TESTED]
    good = [build for build, verdict in answered if verdict.answer is Answer.GOOD]
    newest, verdict = answered[-1] if answered else (None, Verdict(answer=Answer.UNTESTABLE, reason="nothing was read"))
    losses = visible_losses((build.id, verdict.answer if verdict else None) for build, verdict in verdicts)
    return ArchNight(
        arch=question.device.name,
        verdict=verdict,
        newest=newest,
        pin=good[-1] if good else None,
        losses=losses,
    )


def _verdict(question: Question, entry: TimelineEntry, deep: Mapping[str, Observation]) -> Verdict | None:
    if not question.require:
        return entry.kernels.get(question.served_by.name)
    observation = deep.get(entry.build.id)
    return judge(observation, question) if observation else None


_TESTED = (Answer.GOOD, Answer.BAD)
