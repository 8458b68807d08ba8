from __future__ import annotations

import copy
from typing import Any

import pytest

from bisector import reference
from bisector.diagnosis.signature import Kind, Signature
from bisector.diagnosis.signatures import read as catalogue
from bisector.diagnosis.signatures import shipped
from bisector.errors import ConfigError
from bisector.results import UNKNOWN_CAUSE
from tests.diagnosis.logs import ids, read_lines

SPOKEN = [each for each in shipped().signatures if each.kind is not Kind.ENDING]
ENTRY: dict[str, Any] = {
    "id": "a",
    "layer": "launch",
    "certainty": "certain",
    "title": "t",
    "meaning": "m",
    "advice": "a",
    "anchors": ["word"],
    "patterns": ["word"],
}


def signatures() -> list[Any]:
    return [pytest.param(each, id=f"{each.id}-{place}") for place, each in enumerate(SPOKEN)]


def examples(*kinds: Kind) -> list[Any]:
    # Where something must stand around a line, the cases show both.
    alone = [each for each in SPOKEN if each.kind in kinds and not (each.after or each.alongside)]
    pairs = [(each, example) for each in alone for example in each.examples]
    return [pytest.param(each, example, id=f"{each.id}-{place}") for place, (each, example) in enumerate(pairs)]


@pytest.mark.parametrize("signature", signatures())
def test_every_signature_matches_its_examples_and_finds_them_by_an_anchor(signature: Signature) -> None:
    assert signature.examples
    for example in signature.examples:
        assert signature.match(example) is not None
        assert any(anchor in example for anchor in signature.anchors)


@pytest.mark.parametrize("signature", signatures())
def test_every_pattern_is_shown_by_an_example_or_shares_its_signature_with_one_that_is(signature: Signature) -> None:
    shown = {pattern for pattern in signature.patterns for example in signature.examples if pattern.search(example)}
    assert shown


@pytest.mark.parametrize(("signature", "example"), examples(Kind.CAUSE))
def test_no_other_cause_outranks_the_one_an_example_shows(signature: Signature, example: str) -> None:
    assert signature.id in ids(read_lines(example))
    strongest = read_lines(example).causes[0]
    assert strongest.id == signature.id or strongest.certainty == signature.certainty


@pytest.mark.parametrize(("signature", "example"), examples(Kind.HARMLESS, Kind.CONTEXT))
def test_what_is_harmless_or_only_a_fact_is_no_cause(signature: Signature, example: str) -> None:
    lasting = {"killed_silently", "nccl_p2p_hang"}  # a log that ends there may say this
    assert set(ids(read_lines(example))) <= lasting, signature.id


@pytest.mark.parametrize(("signature", "example"), examples(Kind.SYMPTOM))
def test_a_symptom_alone_is_no_answer(signature: Signature, example: str) -> None:
    diagnosis = read_lines(example)
    assert ids(diagnosis) == [UNKNOWN_CAUSE], signature.id
    assert diagnosis.exit_code == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tittle": "x"}, r"Unknown key 'tittle' in the signature 'a'"),
        ({"patterns": ["("]}, "no regular expression"),
        ({"patterns": []}, "must have anchors and patterns"),
        ({"anchors": []}, "must have anchors and patterns"),
        ({"anchors": ["0 1"]}, "has no word to be found by"),
        ({"layer": "weather"}, "not in order"),
        ({"title": "{free}"}, "speaks of {free}, which none of its patterns tells"),
        ({"title": "{arch}"}, "needs a word in place of {arch}"),
        ({"patterns": ["word (?P<n>1)", "word"], "title": "{n}"}, "needs a word in place of {n}"),
        ({"explains": ["nothing"]}, "refers to the signature 'nothing'"),
        ({"after": ["a"]}, "refers to the context 'a'"),
        ({"grows": "n"}, "must grow by a group"),
        ({"meaning": ""}, "lacks a layer, a certainty or a sentence"),
    ],
)
def test_a_mistake_in_the_catalogue_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        catalogue({"signature": [ENTRY | change]})


def test_the_shipped_file_is_read_as_it_is() -> None:
    assert len(catalogue(copy.deepcopy(dict(reference.load("signatures")))).signatures) == len(shipped().signatures)


def test_every_context_is_asked_for() -> None:
    asked = {
        name for each in shipped().signatures for name in (*each.after, *each.unless, *each.alongside, *each.absent)
    }
    known = {each.id for each in shipped().signatures if each.kind is Kind.CONTEXT}
    assert known - asked <= {"start", "device", "heartbeat"}  # these act by themselves
