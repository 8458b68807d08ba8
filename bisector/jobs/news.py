"""What is worth a word: how a stream stands, less what was told before. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from bisector.model import Build, Loss
from bisector.results import ArchNight, News, NewsKind, StreamNight

REPORT: Final = "report"
"""The receiver under whose name the news of every night is noted; no other may be called so."""

_COMMIT = re.compile(r"\b([0-9a-f]{9})[0-9a-f]{31}\b")


def news_of(stream: StreamNight, told: Collection[str], *, now: datetime, stopped_after: timedelta) -> tuple[News, ...]:
    """The news of a stream.

    A loss is news while it lasts, its end when the loss was told. What began and ended before anybody was told is
    history: the report lists it.

    Args:
        stream: How it stands.
        told: The keys of what was told before.
        now: The present.
        stopped_after: How long without a new build until it counts as stopped.
    """
    teller = _Teller(stream, told)
    arch_news = [news for arch in stream.archs for loss in arch.losses for news in teller.of_loss(arch, loss)]
    return (*arch_news, *teller.of_flow(now, stopped_after))


def builds_of(stream: StreamNight, loss: Loss) -> tuple[str, ...]:
    """The builds of a loss, from the first without the kernels to the last before they are back.

    A loss is the same as long as one of its builds is: what was first taken for the first may turn out not to be.
    """
    names = [entry.build.id for entry in stream.entries]
    end = names.index(loss.regained_at) if loss.regained_at else len(names)
    return tuple(names[names.index(loss.lost_at) : end])


class _Teller:
    def __init__(self, stream: StreamNight, told: Collection[str]) -> None:
        self._stream = stream
        self._told = told
        self._builds = {entry.build.id: entry.build for entry in stream.entries}

    def of_loss(self, arch: ArchNight, loss: Loss) -> Iterator[News]:
        lost_before = any(self._key(NewsKind.LOST, arch, name) in self._told for name in builds_of(self._stream, loss))
        if loss.regained_at is None:
            if not lost_before:
                yield self._news(NewsKind.LOST, arch, loss.lost_at, self._lost(arch, loss))
        elif lost_before and not self._end_was_told(arch, loss.regained_at):
            yield self._news(NewsKind.REGAINED, arch, loss.regained_at, self._regained(arch, loss))

    def of_flow(self, now: datetime, stopped_after: timedelta) -> Iterator[News]:
        stream = self._stream
        names = [entry.build.id for entry in stream.entries]
        stops = [name for name in names if self._key(NewsKind.STOPPED, None, name) in self._told]
        if stops and stops[-1] != names[-1]:
            first = names[names.index(stops[-1]) + 1]
            if self._key(NewsKind.RESUMED, None, first) not in self._told:
                says = f"{stream.source}: builds are coming again, since {self._name(first)}"
                yield self._news(NewsKind.RESUMED, None, first, says)
        newest = stream.newest_at
        if newest is None or now - newest < stopped_after or (stops and stops[-1] == names[-1]):
            return
        says = f"{stream.source}: nothing new since {newest:%Y-%m-%d}; it may have been discontinued"
        yield self._news(NewsKind.STOPPED, None, names[-1], says)

    def _end_was_told(self, arch: ArchNight, regained_at: str) -> bool:
        names = list(self._builds)
        later_losses = [names.index(loss.lost_at) for loss in arch.losses]
        begin = names.index(regained_at)
        end = min((place for place in later_losses if place > begin), default=len(names))
        return any(self._key(NewsKind.REGAINED, arch, name) in self._told for name in names[begin:end])

    def _lost(self, arch: ArchNight, loss: Loss) -> str:
        where = f"lost in {self._name(loss.lost_at)}"
        if loss.untestable:
            where = f"lost between {self._name(loss.last_good)} and {self._name(loss.lost_at)}"
        return f"{arch.arch}: {where}; pin {pin_of(self._builds[loss.last_good])}"

    def _regained(self, arch: ArchNight, loss: Loss) -> str:
        back = self._builds[loss.regained_at or ""]
        return f"{arch.arch}: back in {self._name(back.id)}; pin {pin_of(arch.pin or back)}"

    def _name(self, build: str) -> str:
        published = self._builds[build].published_at
        return shortened(build) + (f" ({published:%m-%d})" if published else "")

    def _news(self, kind: NewsKind, arch: ArchNight | None, build: str, sentence: str) -> News:
        return News(
            kind=kind,
            key=self._key(kind, arch, build),
            source=self._stream.source,
            arch=arch.arch if arch else None,
            sentence=sentence,
        )

    def _key(self, kind: NewsKind, arch: ArchNight | None, build: str) -> str:
        return key_of(kind, self._stream, arch, build)


def key_of(kind: str, stream: StreamNight, arch: ArchNight | None, build: str) -> str:
    """What names a piece of news on every night."""
    about = [arch.arch] if arch else []
    return ":".join([kind, stream.source, stream.platform, *about, build])


def shortened(name: str) -> str:
    """A build's name with its commit cut to nine digits."""
    return _COMMIT.sub(r"\1", name)


def pin_of(build: Build) -> str:
    """What uses exactly this build, as far as the stream tells."""
    return build.pin or build.spec
