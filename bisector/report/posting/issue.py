"""What the issue of a loss says: opened once, its present state edited in place, closed when the kernels are back."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import StrEnum

import msgspec

from bisector.model import Loss
from bisector.ports import Draft
from bisector.report.markdown import block, code, markdown, text
from bisector.report.phrases import day, pin_line, short
from bisector.results import ArchNight, NewsKind, Night, StreamNight

NOW_BEGINS, NOW_ENDS = "<!-- bisector:now -->", "<!-- bisector:end -->"
"""Between these the present state stands; what people write around them is left alone."""


class Step(StrEnum):
    """What is done with an issue."""

    OPEN = "open"
    EDIT = "edit"
    CLOSE = "close"


class IssuePost(msgspec.Struct, frozen=True):
    """A step of an issue, as it is kept in the outbox.

    Attributes:
        step: What is done.
        marker: What the issue is found by, in its body.
        title: Its title.
        now: The present state, in Markdown.
        evidence: What was found out when the loss was found, in Markdown; stays as it is.
        comment: What is added when it is closed.
    """

    step: Step
    marker: str
    title: str
    now: str
    evidence: str = ""
    comment: str = ""


def issue_drafts(night: Night, told: Collection[str]) -> Iterator[Draft]:
    """The steps that the issues of a night's losses need, given the keys of those that were taken."""
    for stream in night.streams:
        names = [entry.build.id for entry in stream.entries]
        for arch in stream.archs:
            for loss in arch.losses:
                end = names.index(loss.regained_at) if loss.regained_at else len(names)
                builds = names[names.index(loss.lost_at) : end]
                yield from _Story(night, stream, arch, loss, told).steps(builds)


class _Story:
    """One loss, and its issue."""

    def __init__(self, night: Night, stream: StreamNight, arch: ArchNight, loss: Loss, told: Collection[str]) -> None:
        self._night = night
        self._stream = stream
        self._arch = arch
        self._loss = loss
        self._told = told
        self._days = {entry.build.id: day(entry.build.published_at) for entry in stream.entries}

    def steps(self, builds: list[str]) -> Iterator[Draft]:
        # The first build of a loss may turn out to be another; its issue stays the one that was opened.
        opened = next((name for name in builds if self._key(Step.OPEN, name) in self._told), None)
        if self._loss.regained_at is None:
            if opened is None:
                yield self._draft(Step.OPEN, self._loss.lost_at, self._key(Step.OPEN, self._loss.lost_at))
                opened = self._loss.lost_at
            # The state at its opening is noted too, so that the next night knows whether it has changed.
            digest = hashlib.sha256(self._now().encode()).hexdigest()[:12]
            yield self._draft(Step.EDIT, opened, f"{self._key(Step.EDIT, opened)}:{digest}")
        elif opened is not None:
            yield self._draft(Step.CLOSE, opened, self._key(Step.CLOSE, opened))

    def _draft(self, step: Step, build: str, key: str) -> Draft:
        marker = hashlib.sha256(self._key(Step.OPEN, build).encode()).hexdigest()[:20]
        title = f"{self._arch.arch}: kernels lost in {short(self._loss.lost_at)}"
        comment = f"{text(self._arch.arch)} is back in {self._named(self._loss.regained_at or '')}."
        post = IssuePost(
            step=step,
            marker=f"<!-- bisector:loss:{marker} -->",
            title=title,
            now=self._now(),
            evidence=self._evidence() if step is Step.OPEN else "",
            comment=comment if step is Step.CLOSE else "",
        )
        return Draft(key=key, body=msgspec.json.encode(post).decode(), says=f"{step} the issue {title!r}")

    def _key(self, step: Step, build: str) -> str:
        return f"{step}:{self._stream.source}:{self._stream.platform}:{self._arch.arch}:{build}"

    def _now(self) -> str:
        loss, pin = self._loss, self._arch.pin
        if loss.regained_at:
            state = f"Back in {self._named(loss.regained_at)}, after it was lost in {self._named(loss.lost_at)}."
        else:
            state = f"Lost in {self._named(loss.lost_at)}, still missing in {self._named(loss.last_bad)}."
        lines = [f"**{text(self._arch.arch)}** in {code(self._stream.source)}: {state}"]
        if pin:
            lines += ["", f"Pin {code(short(pin.id))}:", *block(pin_line(pin))]
        return "\n".join(lines)

    def _named(self, build: str) -> str:
        when = self._days.get(build)
        return code(short(build)) + (f" ({when})" if when else "")

    def _evidence(self) -> str:
        """The report of the night, as far as it is about this loss."""
        news = tuple(
            one for one in self._night.news if one.kind is NewsKind.LOST and one.key.endswith(f":{self._loss.lost_at}")
        )
        stream = replace(self._stream, archs=(self._arch,))
        return markdown(replace(self._night, streams=(stream,), news=news))
