"""What the night did: each stream it listed, each stage of it."""

from __future__ import annotations

from dataclasses import dataclass

from bisector.report.phrases import count, day, safe, sentence
from bisector.results import Stage, StreamNight


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A stream or a part of the night's work, and how it stands."""

    name: str
    ok: bool
    says: str


def work_on_stream(stream: StreamNight) -> Work:
    """What was listed, read and left, or why it could not be listed."""
    name, harvest = f"{safe(stream.source)} for {safe(stream.platform)}", stream.harvest
    known = f"{count(len(stream.entries), 'build')} known"
    if stream.newest_at:
        known += f", the newest of {day(stream.newest_at)}"
    if harvest.error:
        return Work(name=name, ok=False, says=f"could not be listed, {sentence(harvest.error)}; {known}")
    done = f"{len(harvest.new)} new, {len(harvest.gone)} gone, {len(harvest.read)} read"
    left = f", {len(harvest.left)} left to read" if harvest.left else ""
    return Work(name=name, ok=True, says=f"{known}; {done}{left}")


def work_of_stage(stage: Stage) -> Work:
    """A stage, in its own words."""
    return Work(name=safe(stage.name), ok=stage.ok, says=sentence(stage.says))
