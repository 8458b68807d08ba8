"""A stream as a grid of builds by architectures, and what came and went from one build to the next.

Pure, and the one place that decides what a cell says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise

from bisector.model import Answer, Depth, LibraryStatus, Mark
from bisector.report.phrases import count, day, safe, short
from bisector.results import StreamNight, TimelineEntry


class Cell(StrEnum):
    """What a build says of an architecture, in a word or three."""

    KERNELS = "kernels"
    NONE = "none"
    LOST = "lost here"
    REGAINED = "regained here"
    UNKNOWN = "unknown"
    GONE = "gone"
    UNREADABLE = "could not be read"

    @property
    def mark(self) -> str:
        """A shape that says the same in one column."""
        return _MARKS[self]

    @property
    def presence(self) -> Cell:
        """The cell without the event: what is there, not what happened."""
        return {Cell.LOST: Cell.NONE, Cell.REGAINED: Cell.KERNELS}.get(self, self)

    @property
    def meaning(self) -> str:
        """The word explained."""
        return _MEANINGS[self]


_MARKS = {
    Cell.KERNELS: "●",
    Cell.NONE: "○",
    Cell.LOST: "▼",
    Cell.REGAINED: "▲",
    Cell.UNKNOWN: "·",
    Cell.GONE: "×",
    Cell.UNREADABLE: "?",
}
_MEANINGS = {
    Cell.KERNELS: "has kernels",
    Cell.NONE: "has none",
    Cell.LOST: "the first build without them",
    Cell.REGAINED: "the first build that has them again",
    Cell.UNKNOWN: "nobody has looked yet",
    Cell.GONE: "removed before anybody looked",
    Cell.UNREADABLE: "somebody looked and could not tell",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """One build and one architecture.

    Attributes:
        kind: What the build says.
        operations: How many operations it has, where they were counted.
        reason: Why, in a phrase; may be empty.
    """

    kind: Cell
    operations: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """One build: its name for reading, its day, what to know before adopting it, and a cell for each architecture."""

    build: str
    day: str
    marks: tuple[str, ...]
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Neighbouring builds that say the same of an architecture."""

    kind: Cell
    builds: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """What one architecture lost and gained between two builds that were both read.

    Attributes:
        arch: The architecture.
        before: The earlier build.
        build: The later one.
        day: Its day.
        had: How many operations the earlier one has.
        has: How many the later one has.
        lost: Their names, where they are known.
        gained: Likewise.
    """

    arch: str
    before: str
    build: str
    day: str
    had: int
    has: int
    lost: tuple[str, ...]
    gained: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A stream.

    Attributes:
        source: The stream.
        platform: Whose files.
        archs: The architectures, one for each column.
        rows: The builds, oldest first.
        changes: What came and went, newest first.
    """

    source: str
    platform: str
    archs: tuple[str, ...]
    rows: tuple[GridRow, ...]
    changes: tuple[KernelChange, ...]

    @property
    def kinds(self) -> frozenset[Cell]:
        """What its cells say: a legend explains no more."""
        return frozenset(cell.kind for row in self.rows for cell in row.cells)

    def runs(self, arch: str) -> tuple[Run, ...]:
        """The stream of one architecture in as few pieces as possible, oldest first."""
        at = self.archs.index(arch)
        pieces = (list(rows) for _, rows in groupby(self.rows, key=lambda row: row.cells[at].kind.presence))
        return tuple(
            Run(kind=rows[0].cells[at].kind.presence, builds=len(rows), first=rows[0].build, last=rows[-1].build)
            for rows in pieces
        )


def counts(runs: Sequence[Run]) -> str:
    """A stream of one architecture in words: ``38 builds with kernels, 5 without``."""
    totals: dict[Cell, int] = {}
    for run in runs:
        totals[run.kind] = totals.get(run.kind, 0) + run.builds
    words = {
        Cell.KERNELS: "with kernels",
        Cell.NONE: "without",
        Cell.UNKNOWN: "nobody has looked at",
        Cell.GONE: "gone unread",
        Cell.UNREADABLE: "that could not be read",
    }
    told = [f"{count(number, 'build')} {words[kind]}" for kind, number in totals.items()]
    return ", ".join(told) or "no build"


def grid(stream: StreamNight) -> Grid:
    """The grid of a stream."""
    events: dict[tuple[str, str], Cell] = {}
    for stands in stream.archs:
        for loss in stands.losses:
            events[stands.arch, loss.lost_at] = Cell.LOST
            if loss.regained_at:
                events[stands.arch, loss.regained_at] = Cell.REGAINED
    archs = tuple(stands.arch for stands in stream.archs)
    rows = tuple(
        GridRow(
            build=short(entry.build.id),
            day=day(entry.build.published_at),
            marks=tuple(entry.build.marks),
            cells=tuple(_cell(entry, arch, events) for arch in archs),
        )
        for entry in stream.entries
    )
    return Grid(
        source=safe(stream.source),
        platform=safe(stream.platform),
        archs=tuple(safe(arch) for arch in archs),
        rows=rows,
        changes=tuple(reversed(list(_changes(stream.entries)))),
    )


def _cell(entry: TimelineEntry, arch: str, events: Mapping[tuple[str, str], Cell]) -> GridCell:
    verdict = entry.kernels.get(arch)
    if verdict is None:
        kind = Cell.GONE if Mark.GONE in entry.build.marks else Cell.UNKNOWN
        return GridCell(kind=kind, operations=None, reason="")
    match verdict.answer:
        case Answer.GOOD | Answer.BAD:
            there = Cell.KERNELS if verdict.answer is Answer.GOOD else Cell.NONE
            event = events.get((arch, entry.build.id), there)
            # A build read anew may contradict a loss that was told before; what is there outweighs what happened.
            kind = event if event.presence is there else there
        case Answer.UNTESTABLE | Answer.INFRA | Answer.AMBIGUOUS:
            kind = Cell.UNREADABLE
    counted = _operations(entry)
    operations = len(counted[arch]) if counted and arch in counted else None
    return GridCell(kind=kind, operations=operations, reason=safe(verdict.reason))


def _operations(entry: TimelineEntry) -> Mapping[str, Sequence[str | None]] | None:
    """Architecture → operations, nameless where only their number is known; ``None`` where nobody read the library."""
    seen, summary = entry.observation, entry.summary
    if seen is not None and seen.depth is Depth.KERNELS and seen.deep_gemm.status is not LibraryStatus.UNREADABLE:
        return {arch: tuple(kernel.op for kernel in kernels) for arch, kernels in seen.kernels.items()}
    if summary and summary.depth is Depth.KERNELS and summary.status is not LibraryStatus.UNREADABLE:
        return {arch: (None,) * number for arch, number in summary.operations.items()}
    return None


def _changes(entries: Sequence[TimelineEntry]) -> Iterator[KernelChange]:
    known = [(entry, found) for entry in entries if (found := _operations(entry)) is not None]
    for (earlier, had), (later, has) in pairwise(known):
        for arch in sorted(had.keys() | has.keys()):
            old, new = had.get(arch, ()), has.get(arch, ())
            named = None not in old and None not in new
            lost = tuple(safe(op) for op in old if op not in new) if named else ()
            gained = tuple(safe(op) for op in new if op not in old) if named else ()
            if lost or gained or len(old) != len(new):
                yield KernelChange(
                    arch=safe(arch),
                    before=short(earlier.build.id),
                    build=short(later.build.id),
                    day=day(later.build.published_at),
                    had=len(old),
                    has=len(new),
                    lost=lost,
                    gained=gained,
                )
