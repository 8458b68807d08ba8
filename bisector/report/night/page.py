"""The whole page, form-neutral, and how a night becomes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from bisector.report.evidence import Evidence, evidence
from bisector.report.grid import Grid, KernelChange, grid
from bisector.report.measured import BootRow, Trend, boot_rows, trends
from bisector.report.night.losses import LossRow, loss_rows
from bisector.report.night.standing import Pin, Standing, standings
from bisector.report.night.work import Work, work_of_stage, work_on_stream
from bisector.report.phrases import cost_line, safe, sentence, short
from bisector.results import NewsKind, Night, Rows
from bisector.search import Direction

_NEWS_WORDS = {
    NewsKind.LOST: "lost",
    NewsKind.REGAINED: "regained",
    NewsKind.STOPPED: "stream stopped",
    NewsKind.RESUMED: "stream resumed",
    NewsKind.SLOWER: "slower",
    NewsKind.DISAGREES: "disagrees",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that changed: its kind in a word, the sentence, and what it rests on."""

    kind: NewsKind
    word: str
    sentence: str
    evidence: Evidence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPage:
    """The report, form-neutral.

    Attributes:
        at: When the work was done, UTC.
        answers: This morning's answer for each architecture of each stream, the worst first.
        several: More than one stream is watched, so an answer alone does not say whose it is.
        news: What changed.
        streams: How each stream stands, a sentence each.
        grids: Each stream as builds by architectures.
        losses: Every loss the history knows, the newest first.
        trends: Benchmarks.
        boots: Boots.
        work: What was done and what failed.
        not_measured: What nobody looked at, a sentence each.
        cost: What it cost, in one line.
    """

    at: datetime
    answers: tuple[Standing, ...]
    several: bool
    news: tuple[Item, ...]
    streams: tuple[Work, ...]
    grids: tuple[Grid, ...]
    losses: tuple[LossRow, ...]
    trends: tuple[Trend, ...]
    boots: tuple[BootRow, ...]
    work: tuple[Work, ...]
    not_measured: tuple[str, ...]
    cost: str

    @property
    def headlines(self) -> tuple[str, ...]:
        """The first lines: the answer for each architecture, with its stream where there are several."""
        if not self.answers:
            return ("No architecture is watched in any stream.",)
        return tuple(f"{answer.line} ({answer.source})" if self.several else answer.line for answer in self.answers)

    @property
    def pins(self) -> tuple[tuple[str, Pin], ...]:
        """The builds to use, each once, and for which architectures."""
        served: dict[Pin, list[str]] = {}
        for answer in self.answers:
            if answer.pin:
                named = f"{answer.arch} ({answer.source})" if self.several else answer.arch
                served.setdefault(answer.pin, []).append(named)
        return tuple((", ".join(archs), pin) for pin, archs in served.items())

    @property
    def quiet(self) -> str:
        """What is said where there is no news."""
        return "Nothing changed since the last night."


def page(night: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> NightPage:
    """Decide what the report says.

    Args:
        night: The night.
        boots: Rows of the history's view ``boot_results``, newest first.
        benchmarks: Rows of its view ``benchmark_trend``.
    """
    return NightPage(
        at=night.at,
        answers=standings(night),
        several=len(night.streams) > 1,
        news=tuple(
            Item(
                kind=news.kind,
                word=_NEWS_WORDS[news.kind],
                sentence=sentence(news.sentence),
                evidence=evidence(news.finding) if news.finding else None,
            )
            for news in night.news
        ),
        streams=tuple(work_on_stream(stream) for stream in night.streams),
        grids=tuple(_named(grid(stream), night) for stream in night.streams),
        losses=tuple(loss_rows(night)),
        trends=trends(benchmarks),
        boots=boot_rows(boots),
        work=tuple(work_of_stage(stage) for stage in night.stages),
        not_measured=tuple(sentence(unmeasured) for unmeasured in night.not_measured),
        cost=cost_line(night.cost),
    )


def _named(drawn: Grid, night: Night) -> Grid:
    """The grid with the operations' names that a search brought to light, where the stream only counts them."""
    names = {
        (safe(finding.question.served_by.name), short(finding.after.build.id)): finding
        for news in night.news
        if (finding := news.finding) and finding.after and safe(finding.source) == drawn.source
    }

    def filled(change: KernelChange) -> KernelChange:
        finding = names.get((change.arch, change.build))
        if finding is None or change.lost or change.gained:
            return change
        operations = tuple(safe(op) for op in finding.changed_ops)
        is_loss = finding.direction is Direction.LOSS
        return replace(change, lost=operations) if is_loss else replace(change, gained=operations)

    return replace(drawn, changes=tuple(filled(change) for change in drawn.changes))
