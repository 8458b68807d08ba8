"""The night report before it takes a form: every word of it is decided here, and each form only sets it.

Pure. All text in a page is free of control characters; escaping what its form calls markup is the form's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bisector.model import Answer, Build, Loss
from bisector.report.evidence import Evidence, evidence
from bisector.report.grid import Cell, Grid, KernelChange, grid
from bisector.report.measured import BootRow, Trend, boot_rows, trends
from bisector.report.phrases import clean, cost_line, count, day, pin_line, safe, sentence, short
from bisector.results import ArchNight, NewsKind, Night, Rows, StreamNight
from bisector.search import Direction


class State(StrEnum):
    """How an architecture stands, in a word."""

    FINE = "fine"
    LOST = "lost"
    NONE = "no kernels"
    UNKNOWN = "unknown"


_MARKS = {
    State.FINE: Cell.KERNELS.mark,
    State.LOST: Cell.LOST.mark,
    State.NONE: Cell.NONE.mark,
    State.UNKNOWN: Cell.UNREADABLE.mark,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A build to use: its name for reading, the line to paste, and the same broken to fit a terminal."""

    build: str
    line: str
    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """One loss: where it began and ended, each with its day."""

    arch: str
    source: str
    last_good: str
    lost_at: str
    regained_at: str | None
    still: str
    untestable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """This morning's answer for one architecture of one stream.

    Attributes:
        arch: The architecture.
        source: The stream.
        state: The answer in a word.
        says: The answer in a clause, without the architecture and the pin.
        reason: What it rests on, in a phrase; may be empty.
        pin: What to use.
        short_pin: The same in one word, for reading.
    """

    arch: str
    source: str
    state: State
    says: str
    reason: str
    pin: Pin | None
    short_pin: str

    @property
    def mark(self) -> str:
        """A shape that says the state."""
        return _MARKS[self.state]

    @property
    def line(self) -> str:
        """The whole answer in one line."""
        if self.state is State.FINE:
            return f"{self.arch}: {self.says}"
        return f"{self.arch}: {self.says}; {f'pin {self.short_pin}' if self.pin else 'no build to pin is known'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that changed: its kind in a word, the sentence, and what it rests on."""

    kind: NewsKind
    word: str
    sentence: str
    evidence: Evidence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A stream or a part of the night's work, and how it stands."""

    name: str
    ok: bool
    says: str


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


_SEVERITY = (State.LOST, State.NONE, State.UNKNOWN, State.FINE)
"""What calls for somebody comes first."""

_NEWS_WORDS = {
    NewsKind.LOST: "lost",
    NewsKind.REGAINED: "regained",
    NewsKind.STOPPED: "stream stopped",
    NewsKind.RESUMED: "stream resumed",
    NewsKind.SLOWER: "slower",
    NewsKind.DISAGREES: "disagrees",
}


def page(night: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> NightPage:
    """Decide what the report says.

    Args:
        night: The night.
        boots: Rows of the history's view ``boot_results``, newest first.
        benchmarks: Rows of its view ``benchmark_trend``.
    """
    answers = [_standing(stands, stream, night.at) for stream in night.streams for stands in stream.archs]
    return NightPage(
        at=night.at,
        answers=tuple(sorted(answers, key=lambda answer: _SEVERITY.index(answer.state))),
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
        streams=tuple(_stream(stream) for stream in night.streams),
        grids=tuple(_named(grid(stream), night) for stream in night.streams),
        losses=tuple(_loss_rows(night)),
        trends=trends(benchmarks),
        boots=boot_rows(boots),
        work=tuple(Work(name=safe(stage.name), ok=stage.ok, says=sentence(stage.says)) for stage in night.stages),
        not_measured=tuple(sentence(unmeasured) for unmeasured in night.not_measured),
        cost=cost_line(night.cost),
    )


# --- the answers -----------------------------------------------------------------------------------------------------


def _standing(stands: ArchNight, stream: StreamNight, at: datetime) -> Standing:
    days = _days(stream, at)
    newest = f"{short(stands.newest.id)}{days.get(stands.newest.id, '')}" if stands.newest else "no build"
    behind = stream.entries and stands.newest and stream.entries[-1].build.id != stands.newest.id
    if behind:
        newest = f"{newest}, the newest that could be tested"
    last = stands.losses[-1] if stands.losses else None
    match stands.verdict.answer:
        case Answer.GOOD:
            state, says = State.FINE, f"fine in {newest}"
            if last and last.regained_at:
                says += f", back since {short(last.regained_at)}{days.get(last.regained_at, '')}"
        case Answer.BAD if last and not last.regained_at:
            state, says = State.LOST, f"lost {_where(last, days)}"
        case Answer.BAD:
            state, says = State.NONE, f"no kernels in {newest}"
        case Answer.UNTESTABLE | Answer.INFRA | Answer.AMBIGUOUS:
            state, says = State.UNKNOWN, f"unknown, {sentence(stands.verdict.reason) or 'nobody has looked yet'}"
    return Standing(
        arch=safe(stands.arch),
        source=safe(stream.source),
        state=state,
        says=says,
        reason=safe(stands.verdict.reason),
        pin=Pin(build=short(stands.pin.id), line=clean(stands.pin.pin or stands.pin.spec), lines=pin_line(stands.pin))
        if stands.pin
        else None,
        short_pin=_short_pin(stands.pin) if stands.pin else "",
    )


def _where(loss: Loss, days: Mapping[str, str]) -> str:
    lost = f"{short(loss.lost_at)}{days.get(loss.lost_at, '')}"
    if not loss.untestable:
        return f"in {lost}"
    between = count(len(loss.untestable), "build")
    return f"after {short(loss.last_good)} and by {lost}, {between} between them cannot be tested"


def _short_pin(build: Build) -> str:
    """``nightly-1ad518282@sha256:0f3c9d1b2a4e…``: images are used by digest, the rest by name."""
    return (
        f"{short(build.id)}@{build.digest[:19]}…"
        if build.digest and "@sha256:" in (build.pin or "")
        else short(build.id)
    )


def _days(stream: StreamNight, at: datetime) -> Mapping[str, str]:
    """Build → its day in brackets: without the year where that goes without saying."""
    return {
        entry.build.id: f" ({moment:%m-%d})" if moment.year == at.year else f" ({moment:%Y-%m-%d})"
        for entry in stream.entries
        if (moment := entry.build.published_at)
    }


# --- the grids -------------------------------------------------------------------------------------------------------


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


# --- the streams -----------------------------------------------------------------------------------------------------


def _stream(stream: StreamNight) -> Work:
    name, harvest = f"{safe(stream.source)} for {safe(stream.platform)}", stream.harvest
    known = f"{count(len(stream.entries), 'build')} known"
    if stream.newest_at:
        known += f", the newest of {day(stream.newest_at)}"
    if harvest.error:
        return Work(name=name, ok=False, says=f"could not be listed, {sentence(harvest.error)}; {known}")
    done = f"{len(harvest.new)} new, {len(harvest.gone)} gone, {len(harvest.read)} read"
    left = f", {len(harvest.left)} left to read" if harvest.left else ""
    return Work(name=name, ok=True, says=f"{known}; {done}{left}")


def _loss_rows(night: Night) -> Iterator[LossRow]:
    for stream in night.streams:
        days = {
            entry.build.id: f" ({day(entry.build.published_at)})"
            for entry in stream.entries
            if entry.build.published_at
        }

        def named(build: str, days: Mapping[str, str] = days) -> str:
            return f"{short(build)}{days.get(build, '')}"

        for stands in stream.archs:
            for loss in reversed(stands.losses):
                yield LossRow(
                    arch=safe(stands.arch),
                    source=safe(stream.source),
                    last_good=named(loss.last_good),
                    lost_at=named(loss.lost_at),
                    regained_at=named(loss.regained_at) if loss.regained_at else None,
                    still=named(loss.last_bad),
                    untestable=tuple(short(build) for build in loss.untestable),
                )
