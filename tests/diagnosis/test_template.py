from __future__ import annotations

import pytest

from bisector.diagnosis.template import Template


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("{a} of {b}", {"a": "1", "b": "2"}, "1 of 2"),
        ("{a|none}", {}, "none"),
        ("{a|}", {}, ""),
        ("{a}", {}, "?"),
        ("{b-a}", {"a": "31.44", "b": "47.38"}, "15.94"),
        ("{a/b}", {"a": "31.44", "b": "47.38"}, "0.66"),
        ("{a/b}", {"a": "1", "b": "0"}, "?"),
        ("{a/b|most}", {"a": "x", "b": "2"}, "most"),
        ("{a}", {"a": "{b}", "b": "secret"}, "{b}"),
        ("{a.__class__} {0} {}", {"a": "1"}, "{a.__class__} ? {}"),
        ("'{{json .State}}'", {}, "'{{json .State}}'"),
    ],
)
def test_places_are_filled_by_name_only(text: str, values: dict[str, str], said: str) -> None:
    assert Template(text).fill(values) == said


def test_a_value_is_never_endless() -> None:
    assert len(Template("{a}").fill({"a": "x" * 1000})) == 120


def test_what_a_sentence_needs_and_what_it_may_use() -> None:
    template = Template("{a} {b|x} {c/d}")
    assert template.names == {"a", "c", "d"}
    assert template.mentions == {"a", "b", "c", "d"}
