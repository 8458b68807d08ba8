"""Every loss that the history knows, as a row of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bisector.report.phrases import day, safe, short
from bisector.results import Night


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


def loss_rows(night: Night) -> Iterator[LossRow]:
    """The losses of each architecture of each stream, the newest first."""
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
