"""What a failure looks like in a log: one signature is one wording of one cause."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bisector.diagnosis.template import SILENT, Template
from bisector.results import Certainty, Layer


class Kind(StrEnum):
    """What a matching line is to the reader of a log."""

    CAUSE = "cause"
    """The reason of a failure."""
    SYMPTOM = "symptom"
    """The consequence of one: never the answer, whatever stands above it is."""
    NOTE = "note"
    """Nothing broken, but worth knowing: told only when nothing failed."""
    ENDING = "ending"
    """What it means that a log ends here. It has no pattern: it is asked once the log is over."""
    CONTEXT = "context"
    """A fact that other signatures ask for: how far a boot came, what a traceback passes through."""
    HARMLESS = "harmless"
    """Looks like a failure and is none; nothing else is looked for in such a line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signature:
    """One wording of one cause. Several may share an identifier; the strongest that matches speaks for it.

    Attributes:
        id: The cause, as scripts know it.
        kind: What a matching line is.
        layer: Where the fault lies.
        certainty: How much the line alone proves.
        title: The cause in one sentence.
        meaning: What is going on.
        advice: What to do.
        anchors: Texts of which a matching line holds at least one; looked for before any pattern is tried.
        patterns: What a line must match; groups are what templates may ask for. ``arch`` names an architecture.
        after: At least one of these contexts must have been seen before the line, since the last start.
        unless: None of these contexts may have been.
        alongside: At least one of these contexts must stand anywhere in the log.
        absent: None of these contexts may stand anywhere in the log.
        explains: Causes and symptoms that are consequences of this one.
        general: It only repeats what any other cause on record says better.
        only_on: The architectures it can be about, where the log names one.
        grows: A group whose number must have grown by a tenth since an earlier line.
        restarts: For a context: a server starts here, so that what was seen before belongs to another one.
        examples: Real lines it matches.
    """

    id: str
    kind: Kind = Kind.CAUSE
    layer: Layer = Layer.RUNTIME
    certainty: Certainty = Certainty.LIKELY
    title: Template = SILENT
    meaning: Template = SILENT
    advice: Template = SILENT
    anchors: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    after: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    alongside: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    general: bool = False
    only_on: tuple[str, ...] = ()
    grows: str | None = None
    restarts: bool = False
    examples: tuple[str, ...] = ()

    def match(self, line: str) -> Mapping[str, str] | None:
        """What the line tells, or ``None`` if it is another line."""
        for pattern in self.patterns:
            if found := pattern.search(line):
                return {name: value.strip() for name, value in found.groupdict().items() if value is not None}
        return None

    @property
    def conditional(self) -> bool:
        """Whether a later line of the same make may match where an earlier one did not."""
        return bool(self.after or self.unless or self.grows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All signatures, in the order in which they speak when nothing else decides."""

    signatures: tuple[Signature, ...]
    _anchored: Mapping[str, Sequence[Signature]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        anchored: dict[str, list[Signature]] = {}
        for signature in self.signatures:
            for anchor in signature.anchors:
                anchored.setdefault(anchor, []).append(signature)
        object.__setattr__(self, "_anchored", anchored)

    @property
    def anchors(self) -> Collection[str]:
        """The texts of which every line that matches anything holds one."""
        return self._anchored.keys()

    def anchored_in(self, anchors: Iterable[str]) -> list[Signature]:
        """The signatures that may match a line with these anchors, in the catalogue's order."""
        near = {each for anchor in anchors for each in self._anchored.get(anchor, ())}
        return [signature for signature in self.signatures if signature in near] if near else []

    def of_kind(self, kind: Kind) -> list[Signature]:
        """The signatures of one kind."""
        return [signature for signature in self.signatures if signature.kind is kind]
