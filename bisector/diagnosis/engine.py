"""From the lines of a log to its causes, the root first.

One pass, a few megabytes of memory, no I/O: whoever has the log feeds it in pieces, and may do so while it grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bisector import arch as architectures
from bisector.diagnosis.lines import texts, without_carriers
from bisector.diagnosis.sieve import Sieve, Suspect
from bisector.diagnosis.signature import Catalogue, Kind, Signature
from bisector.diagnosis.unknown import TELLING, Telling, unknown
from bisector.errors import UnknownArchitecture
from bisector.results import Cause, Certainty, Diagnosis

_DEVICE = "device"
_STOPPING = "stopping"
_SERVING = "serving"
_CONTEXT_MAKES = 10_000
_EXCERPT = 400
_STRENGTH = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}
_GROWTH = 1.1


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A signature, the line it was first seen in, and what that line tells."""

    signature: Signature
    number: int
    excerpt: str
    values: Mapping[str, str]

    @property
    def strength(self) -> tuple[int, int]:
        """Certain before likely, then early before late: what follows is more often a consequence."""
        return _STRENGTH[self.signature.certainty], self.number


def diagnose(pieces: Iterable[bytes], catalogue: Catalogue, gpus: Mapping[str, str]) -> Diagnosis:
    """The causes in a log.

    Args:
        pieces: The log's bytes, cut anywhere.
        catalogue: What to look for.
        gpus: GPU name → architecture, to know a device by the name a log gives it.
    """
    reading = Reading(catalogue, gpus)
    for piece in pieces:
        reading.feed(piece)
    return reading.conclude()


class Reading:
    """A log being read. Feed it, then ask it to conclude; it may be fed and asked again."""

    def __init__(self, catalogue: Catalogue, gpus: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._gpus = gpus
        self._sieve = Sieve({*catalogue.anchors, *TELLING})
        self._sightings: dict[Signature, _Sighting] = {}
        self._survived: set[Signature] = set()
        self._since_start: set[str] = set()
        self._this_start: set[Signature] = set()
        self._ever: set[str] = set()
        self._numbers: dict[tuple[str, str], float] = {}
        self._device: str | None = None
        self._telling = Telling()
        self._contexts: dict[bytes, list[Signature]] = {}

    def feed(self, piece: bytes) -> None:
        """Read on: the next bytes of the log, cut anywhere."""
        for suspect in self._sieve.feed(piece):
            self._look(suspect)

    def conclude(self) -> Diagnosis:
        """What the log says so far. A last line without a line feed counts as whole."""
        for suspect in self._sieve.close():
            self._look(suspect)
        symptoms = self._seen(Kind.SYMPTOM)
        # What a server came up in spite of is not why it failed, unless it failed in the end.
        causes = _rooted([each for each in self._seen(Kind.CAUSE) if symptoms or each.signature not in self._survived])
        if not causes and (self._telling.lines or symptoms or not self._sieve.count):
            first = min(symptoms, key=lambda each: each.number, default=None)
            symptom = (first.number, first.excerpt, first.signature.meaning.fill(first.values)) if first else None
            return Diagnosis(causes=(unknown(self._telling, symptom),), lines=self._sieve.count)
        found = causes or _rooted(self._endings()) or _rooted(self._seen(Kind.NOTE))
        return Diagnosis(causes=tuple(map(self._cause, found)), lines=self._sieve.count)

    # --- one line ----------------------------------------------------------------------------------------------------

    def _look(self, suspect: Suspect) -> None:
        if contexts := self._contexts.get(suspect.make):
            for context in contexts:
                self._note_context(context)
            return
        # A make of line is done with once nothing that it can match depends on what stands before it.
        settled = True
        contexts = []
        for text in texts(suspect.raw):
            anchors = [anchor for anchor in suspect.anchors if anchor in text]
            matched = self._matched(text, anchors) if anchors else None
            if matched is None:
                continue
            for signature, values in matched:
                if signature.kind is Kind.CONTEXT:
                    contexts.append(signature)
                    self._note_context(signature)
                    self._note_device(signature, values)
                else:
                    self._record(signature, suspect.number, text, values)
                    settled &= signature in self._sightings or not signature.conditional
            if not matched and _STOPPING not in self._since_start:
                self._telling.look(suspect.number, text)
        if settled and contexts and len(self._contexts) < _CONTEXT_MAKES:
            self._contexts[suspect.make] = contexts
            self._sieve.pass_on(suspect.make)
        elif settled and not contexts:
            self._sieve.settle(suspect.make)

    def _matched(self, text: str, anchors: Iterable[str]) -> list[tuple[Signature, Mapping[str, str]]] | None:
        """The signatures that a line with these anchors matches; ``None`` if it is known to be harmless."""
        matched = []
        for signature in self._catalogue.anchored_in(anchors):
            if (values := signature.match(text)) is not None:
                if signature.kind is Kind.HARMLESS:
                    return None
                matched.append((signature, values))
        return matched

    def _note_context(self, signature: Signature) -> None:
        if signature.restarts:
            self._since_start.clear()
            self._this_start.clear()
        if signature.id == _SERVING:
            self._survived |= self._this_start
        self._since_start.add(signature.id)
        self._ever.add(signature.id)

    def _note_device(self, signature: Signature, values: Mapping[str, str]) -> None:
        if signature.id == _DEVICE and self._device is None:
            self._device = self._architecture(values.get("arch"))

    def _record(self, signature: Signature, number: int, text: str, values: Mapping[str, str]) -> None:
        if signature in self._sightings or not self._in_place(signature) or not self._has_grown(signature, values):
            return
        told = {name: _clean(value) for name, value in values.items()}
        self._sightings[signature] = _Sighting(signature, number, _excerpt(text), told)
        self._this_start.add(signature)

    def _in_place(self, signature: Signature) -> bool:
        if signature.after and self._since_start.isdisjoint(signature.after):
            return False
        return self._since_start.isdisjoint(signature.unless)

    def _has_grown(self, signature: Signature, values: Mapping[str, str]) -> bool:
        if signature.grows is None:
            return True
        number = float(values[signature.grows])
        least = self._numbers.setdefault((signature.id, signature.grows), number)
        return number >= least * _GROWTH

    # --- all lines ---------------------------------------------------------------------------------------------------

    def _seen(self, kind: Kind) -> list[_Sighting]:
        return [each for each in self._sightings.values() if each.signature.kind is kind and self._holds(each)]

    def _holds(self, sighting: _Sighting) -> bool:
        """Whether the rest of the log agrees with a line."""
        signature = sighting.signature
        if signature.alongside and self._ever.isdisjoint(signature.alongside):
            return False
        if not self._ever.isdisjoint(signature.absent):
            return False
        device = self._arch_of(sighting)
        return not (signature.only_on and device and device not in signature.only_on)

    def _endings(self) -> list[_Sighting]:
        last = _excerpt("".join(list(texts(self._sieve.last))[-1:]))
        return [
            _Sighting(signature, self._sieve.count, last, {})
            for signature in self._catalogue.of_kind(Kind.ENDING)
            if self._in_place(signature)
        ]

    def _architecture(self, spelling: str | None) -> str | None:
        if spelling is None:
            return None
        try:
            return architectures.parse(spelling.replace("+PTX", ""), self._gpus).name
        except UnknownArchitecture:
            return None

    def _arch_of(self, sighting: _Sighting) -> str | None:
        return self._architecture(sighting.values.get("arch")) or self._device

    def _cause(self, sighting: _Sighting) -> Cause:
        signature = sighting.signature
        arch = self._arch_of(sighting)
        values = {name: value for name, value in sighting.values.items() if name != "arch"}
        if arch is not None:
            values["arch"] = arch
        return Cause(
            id=signature.id,
            layer=signature.layer,
            arch=arch,
            title=signature.title.fill(values),
            line=sighting.number,
            excerpt=sighting.excerpt,
            meaning=signature.meaning.fill(values),
            advice=signature.advice.fill(values),
            certainty=signature.certainty,
        )


def _excerpt(text: str) -> str:
    excerpt = _clean(" ".join(without_carriers(text).split()))
    return excerpt if len(excerpt) <= _EXCERPT else excerpt[: _EXCERPT - 1] + "…"


def _clean(text: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in text)


def _rooted(sightings: list[_Sighting]) -> list[_Sighting]:
    """One sighting for each cause, without what another one explains, the root first."""
    ranked = sorted(sightings, key=lambda each: each.strength)
    strongest: dict[str, _Sighting] = {}
    for sighting in ranked:
        strongest.setdefault(sighting.signature.id, sighting)
    explained = {other for each in strongest.values() for other in each.signature.explains}
    kept = [each for name, each in strongest.items() if name not in explained]
    plain = [each for each in kept if not each.signature.general]
    return plain or kept
