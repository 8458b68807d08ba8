"""Reads the catalogue of signatures, ``data/signatures.toml``, and refuses what would never match or never speak."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from bisector import reference
from bisector.diagnosis.sieve import SHORTEST_KEY, key
from bisector.diagnosis.signature import Catalogue, Kind, Signature
from bisector.diagnosis.template import Template
from bisector.errors import ConfigError
from bisector.results import Certainty, Layer


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``[[signature]]``, as TOML has it; what the keys mean stands at ``Signature``."""

    id: str
    kind: Kind = Kind.CAUSE
    layer: Layer | None = None
    certainty: Certainty | None = None
    title: str = ""
    meaning: str = ""
    advice: str = ""
    anchors: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
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


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signature: tuple[_Entry, ...]


@cache
def shipped() -> Catalogue:
    """The catalogue that bisector ships with.

    Raises:
        ConfigError: It is missing or damaged.
    """
    return read(reference.load("signatures"))


def read(document: Mapping[str, Any]) -> Catalogue:
    """A catalogue from the content of a TOML file.

    Raises:
        ConfigError: A key is unknown, a pattern is none, an anchor has no word, a sentence asks for what no
            pattern tells, or a signature refers to one that does not exist.
    """
    for entry in document.get("signature", ()):
        _refuse_unknown(entry)
    try:
        file = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The catalogue of signatures is not in order: {error}.") from error
    signatures = tuple(_signature(entry) for entry in file.signature)
    contexts = {each.id for each in signatures if each.kind is Kind.CONTEXT}
    outcomes = {each.id for each in signatures if each.kind is not Kind.CONTEXT}
    for each in signatures:
        _check_known(each.id, (*each.after, *each.unless, *each.alongside, *each.absent), contexts, "context")
        _check_known(each.id, each.explains, outcomes, "signature")
    return Catalogue(signatures=signatures)


def _refuse_unknown(entry: Mapping[str, Any]) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(_Entry)]
    for name in entry:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(
                f"Unknown key {name!r} in the signature {entry.get('id', '(without id)')!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}.",
            )


def _signature(entry: _Entry) -> Signature:
    patterns = tuple(_pattern(entry.id, pattern) for pattern in entry.patterns)
    matches = entry.kind is not Kind.ENDING
    if matches != bool(patterns) or matches != bool(entry.anchors):
        raise ConfigError(f"The signature {entry.id!r} must have anchors and patterns, unless it is an ending.")
    for anchor in entry.anchors:
        if len(key(anchor)) < SHORTEST_KEY:
            raise ConfigError(f"The anchor {anchor!r} of the signature {entry.id!r} has no word to be found by.")
    speaks = entry.kind in {Kind.CAUSE, Kind.NOTE, Kind.ENDING}
    if speaks and not (entry.layer and entry.certainty and entry.title and entry.meaning and entry.advice):
        raise ConfigError(f"The signature {entry.id!r} lacks a layer, a certainty or a sentence.")
    sentences = [Template(text) for text in (entry.title, entry.meaning, entry.advice)]
    _check_places(entry.id, sentences, patterns)
    if entry.grows and any(entry.grows not in pattern.groupindex for pattern in patterns):
        raise ConfigError(f"The signature {entry.id!r} must grow by a group that each of its patterns has.")
    title, meaning, advice = sentences
    return Signature(
        id=entry.id,
        kind=entry.kind,
        layer=entry.layer or Layer.RUNTIME,
        certainty=entry.certainty or Certainty.LIKELY,
        title=title,
        meaning=meaning,
        advice=advice,
        anchors=entry.anchors,
        patterns=patterns,
        after=entry.after,
        unless=entry.unless,
        alongside=entry.alongside,
        absent=entry.absent,
        explains=entry.explains,
        general=entry.general,
        only_on=entry.only_on,
        grows=entry.grows,
        restarts=entry.restarts,
        examples=entry.examples,
    )


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise ConfigError(f"A pattern of the signature {name!r} is no regular expression: {error}.") from error


def _check_places(name: str, sentences: Sequence[Template], patterns: Sequence[re.Pattern[str]]) -> None:
    """``arch`` may come from elsewhere in the log, so it always needs a word in its place."""
    groups = [set(pattern.groupindex) - {"arch"} for pattern in patterns]
    for sentence in sentences:
        for place in sentence.mentions - {"arch"}:
            if not any(place in group for group in groups):
                raise ConfigError(f"The signature {name!r} speaks of {{{place}}}, which none of its patterns tells.")
        for place in sentence.names:
            if not all(place in group for group in groups) or not groups:
                raise ConfigError(f"The signature {name!r} needs a word in place of {{{place}}} where no line tells.")


def _check_known(name: str, references: Collection[str], known: Collection[str], what: str) -> None:
    for each in references:
        if each not in known:
            raise ConfigError(f"The signature {name!r} refers to the {what} {each!r}, which does not exist.")
