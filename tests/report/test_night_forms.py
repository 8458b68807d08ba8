"""The forms of the night report: what they show, and what hostile text cannot do to them."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from bisector.report import console as people
from bisector.report.html import html
from bisector.report.markdown import block, code, markdown, text
from bisector.report.phrases import clean, safe
from bisector.report.plain.answers import answer_document
from bisector.report.plain.envelope import encode
from bisector.report.plain.night import night_document
from tests.report.nights import ALL_OF_MARKUP, BOOTS, MARKUP, benchmarks, hostile, night

PIECES = st.one_of(st.sampled_from(MARKUP), st.text(max_size=6))
WORDS = st.lists(PIECES, min_size=1, max_size=6).map("".join)


_READER = MarkdownIt("gfm-like")
if _READER.linkify:
    _READER.linkify.set({"fuzzy_link": False})  # GitHub links no bare domain


class _Elements(HTMLParser):
    """What a browser would make of a page, its plots aside: elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shapes: set[tuple[str, tuple[str, ...]]] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.text = ""
        self.feed(re.sub(r"<svg viewBox=.*?</svg>", "", page, flags=re.DOTALL))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shapes.add((tag, tuple(name for name, _ in attrs)))
        self.attributes |= {(name, value or "") for name, value in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(words: str) -> str:
    found, boots, measured = hostile(words)
    return html(found, boots=boots, benchmarks=measured)


SHAPES = _Elements(_page("plain")).shapes


def _inline(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or ()]


# --- what they show --------------------------------------------------------------------------------------------------


def test_the_terminal_shows_the_answer_first() -> None:
    assert _terminal(night(40)) == snapshot("""\
sm120: lost in nightly-972a67c48 (07-30); pin
nightly-f1f836cb4@sha256:86e501496586…
sm90: fine in nightly-ca3512f4d (08-03)
sm100: fine in nightly-ca3512f4d (08-03)

News: lost
  sm120 kernels were lost in nightly-972a67c48; pin nightly-f1f836cb4
  last good   nightly-f1f836cb4 2026-07-29
  first bad   nightly-972a67c48 2026-07-30
  changed by  761f22b2c159 2026-07-29 Bump DeepGEMM to 2.6.1 (#50000)
  DeepGEMM    356a192b7913 → da4b9237bacc
  package     deep_gemm 2.5.0 → 2.6.1
  gate        vLLM nightly-972a67c48 sends sm120 to DeepGEMM, and its sm120
              kernels are missing: models that use them fail at load.
              VLLM_USE_DEEP_GEMM=0 avoids it, at a cost in speed.

Lost 4 operations
  bf16_gemm, fp8_gemm_1d1d, fp8_mqa_logits, hc_prenorm_gemm

Ask again
bisector find-regression --arch sm120 --source dockerhub:vllm/vllm-openai \\
  --good nightly-f1f836cb4ea6efb2a0b1b99f41ad8b103eff4b59 \\
  --bad nightly-972a67c48192728a34979d9a35164c1295401b71

Pin for sm120
vllm/vllm-openai@sha256:86e50149658661312a9e0b35558d84f6c6d3da797f552a9657fe0558ca40cdef

Pin for sm90, sm100
vllm/vllm-openai@sha256:0b918943df0962bc7a1824c0555a389347b4febdc7cf9d1254406d80ce44e3f9

dockerhub:vllm/vllm-openai (linux/amd64)
  build                   published   sm90          sm100         sm120
  nightly-ca3512f4d       2026-08-03  ● 17          ● 15          ○ none
  nightly-5b384ce32       2026-08-02  ● 17          ● 15          ○ none
  nightly-cb7a1d775       2026-08-01  · unknown     · unknown     · unknown
  nightly-fc074d501       2026-07-31  ● 17          ● 15          ○ none
  nightly-972a67c48       2026-07-30  ● 17          ● 15          ▼ lost here
  nightly-f1f836cb4       2026-07-29  ● 17          ● 15          ● 4
  ⋮                       2 more
  nightly-632667547       2026-07-26  ● 17          ● 15          ● 4
  nightly-22d200f86       2026-07-25  ? could not   ? could not   ? could not be
                                      be read       be read       read
  nightly-7719a1c78       2026-07-24  ● 17          ● 15          ● 4
  ⋮                       2 more
  nightly-887309d04 gone  2026-07-21  ● 17          ● 15          ● 4
  and 26 older builds

  ● kernels   ○ none   ▼ lost here   · unknown   ? could not be read

Kernels lost and gained
  sm120 in nightly-972a67c48: 4 → 0 operations

Losses
  sm120: lost in nightly-972a67c48 (2026-07-30), last good nightly-f1f836cb4
  (2026-07-29), still missing in nightly-ca3512f4d (2026-08-03)

Not measured
  No boot: the host rig does not answer

The night's work
  dockerhub:vllm/vllm-openai for linux/amd64: 40 builds known, the newest of
  2026-08-03; 1 new, 0 gone, 1 read
  harvest         12 builds listed, 1 new, 1 read
  search          1 loss found
  confirm failed  the host rig does not answer

1 build read, 39 from history, 612.0 kB in 11 requests, 3.8 s
""")


def test_markdown_is_ready_to_paste() -> None:
    assert markdown(night(40), boots=BOOTS, benchmarks=benchmarks(3)) == snapshot("""\
❌ **sm120: lost in nightly-972a67c48 (07-30); pin nightly-f1f836cb4\\@\u2060sha256:86e501496586…**  \n\
✅ **sm90: fine in nightly-ca3512f4d (08-03)**  \n\
✅ **sm100: fine in nightly-ca3512f4d (08-03)**  \n\

## What changed on 2026-08-03

- **lost**: sm120 kernels were lost in nightly-972a67c48; pin nightly-f1f836cb4

| evidence | |
| --- | --- |
| last good | nightly-f1f836cb4 2026-07-29 |
| first bad | nightly-972a67c48 2026-07-30 |
| changed by | 761f22b2c159 2026-07-29 Bump DeepGEMM to 2.6.1 (\\#\u206050000) |
| DeepGEMM | 356a192b7913 → da4b9237bacc |
| package | deep\\_gemm 2.5.0 → 2.6.1 |
| gate | vLLM nightly-972a67c48 sends sm120 to DeepGEMM, and its sm120 kernels are missing: models that use them fail at load. VLLM\\_USE\\_DEEP\\_GEMM=0 avoids it, at a cost in speed. |

4 operations lost: `bf16_gemm`, `fp8_gemm_1d1d`, `fp8_mqa_logits`, `hc_prenorm_gemm`

<details><summary>Ask again</summary>

```sh
bisector find-regression --arch sm120 --source dockerhub:vllm/vllm-openai \\
  --good nightly-f1f836cb4ea6efb2a0b1b99f41ad8b103eff4b59 \\
  --bad nightly-972a67c48192728a34979d9a35164c1295401b71
```

</details>


## Pins

sm120: `nightly-f1f836cb4`

```sh
vllm/vllm-openai@sha256:86e50149658661312a9e0b35558d84f6c6d3da797f552a9657fe0558ca40cdef
```

sm90, sm100: `nightly-ca3512f4d`

```sh
vllm/vllm-openai@sha256:0b918943df0962bc7a1824c0555a389347b4febdc7cf9d1254406d80ce44e3f9
```


## dockerhub:vllm/vllm-openai

| build | published | sm90 | sm100 | sm120 |
| --- | --- | --- | --- | --- |
| `nightly-ca3512f4d` | 2026-08-03 | ● kernels (17) | ● kernels (15) | ○ none |
| `nightly-5b384ce32` | 2026-08-02 | ● kernels (17) | ● kernels (15) | ○ none |
| `nightly-cb7a1d775` | 2026-08-01 | · unknown | · unknown | · unknown |
| `nightly-fc074d501` | 2026-07-31 | ● kernels (17) | ● kernels (15) | ○ none |
| `nightly-972a67c48` | 2026-07-30 | ● kernels (17) | ● kernels (15) | ▼ lost here |
| `nightly-f1f836cb4` | 2026-07-29 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-b6692ea5d` | 2026-07-28 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-cb4e5208b` | 2026-07-27 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-632667547` | 2026-07-26 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-22d200f86` | 2026-07-25 | ? could not be read | ? could not be read | ? could not be read |
| `nightly-7719a1c78` | 2026-07-24 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-0a57cb53b` | 2026-07-23 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-bc33ea4e2` | 2026-07-22 | ● kernels (17) | ● kernels (15) | ● kernels (4) |
| `nightly-887309d04` gone | 2026-07-21 | ● kernels (17) | ● kernels (15) | ● kernels (4) |

26 older builds not shown.

Kernels lost and gained:

- sm120 in `nightly-972a67c48` (2026-07-30): 4 → 0 operations; lost `bf16_gemm`, `fp8_gemm_1d1d`, `fp8_mqa_logits`, `hc_prenorm_gemm`

## Losses

- sm120: lost in nightly-972a67c48 (2026-07-30), last good nightly-f1f836cb4 (2026-07-29), still missing in nightly-ca3512f4d (2026-08-03)

## Benchmarks

- tp2 on rig (sm120), dockerhub:vllm/vllm-openai: 18.60 ms a token in nightly-da4b9237b (2026-08-01), +0.5 % against nightly-356a192b7: within the range of the passes

## Boots

| build | when | host | profile | outcome | cause |
| --- | --- | --- | --- | --- | --- |
| `nightly-af3e13342` | 2026-08-02 | rig | tp2 | fails | DeepGEMM has no kernel for sm120 |
| `nightly-ca3512f4d` | 2026-07-30 | rig | tp2 | answers |  |
| `nightly-5b384ce32` | 2026-07-29 | rig | tp2 | without an end |  |

## Not measured

- No boot: the host rig does not answer

## The night's work

- dockerhub:vllm/vllm-openai for linux/amd64: 40 builds known, the newest of 2026-08-03; 1 new, 0 gone, 1 read
- harvest: 12 builds listed, 1 new, 1 read
- search: 1 loss found
- confirm **failed**: the host rig does not answer
- 1 build read, 39 from history, 612.0 kB in 11 requests, 3.8 s
""")  # noqa: E501 - as it is pasted


def test_markdown_of_a_long_history_fits_an_issue() -> None:
    assert len(markdown(night(400), boots=BOOTS, benchmarks=benchmarks(200))) < 65_536


def test_json_says_what_the_other_forms_say() -> None:
    found = night(40)
    document = json.loads(encode(night_document(found, boots=BOOTS, benchmarks=benchmarks(1))))
    assert document["headlines"][0] == snapshot(
        "sm120: lost in nightly-972a67c48 (07-30); pin nightly-f1f836cb4@sha256:86e501496586…"
    )
    assert document["streams"][0]["builds"][-5]["kernels"]["sm120"] == snapshot(
        {"says": "lost here", "operations": None, "reason": "0 kernels"}
    )
    assert document["news"][0]["finding"]["lost"] == snapshot(
        ["bf16_gemm", "fp8_gemm_1d1d", "fp8_mqa_logits", "hc_prenorm_gemm"]
    )
    assert [boot["outcome"] for boot in document["boots"]] == ["fails", "answers", None]
    assert document["command"] == answer_document(found)["command"] == "nightly"


@pytest.mark.parametrize("builds", [0, 1, 400])
def test_the_page_stays_small(builds: int) -> None:
    page = html(night(builds), boots=BOOTS, benchmarks=benchmarks(120))
    assert len(page.encode()) < 1_000_000
    assert page.count('<th scope="row"><span class="name">') >= builds


def test_without_benchmarks_there_is_a_sentence_and_no_plot() -> None:
    page = html(night(1))
    assert "No build has been measured yet." in page
    assert "<svg" not in page


def test_a_measured_build_is_plotted_without_text_from_outside() -> None:
    page = html(night(1), benchmarks=hostile("<b>&")[2])
    [drawn] = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert "<b" not in drawn
    assert "&" not in drawn
    assert "#010101" not in drawn  # colours are the page's, for light and dark


# --- hostile text ----------------------------------------------------------------------------------------------------


@example(ALL_OF_MARKUP)
@settings(max_examples=25, deadline=None)
@given(WORDS)
def test_text_never_becomes_markup_in_the_page(words: str) -> None:
    page = _Elements(_page(words))
    assert page.shapes <= SHAPES
    for name, value in page.attributes:
        if name == "href":
            assert value in {"data:,", "#main"}
        if name == "style":
            assert re.fullmatch(r"flex-grow:\d+", value)
    assert safe(words) in page.text


@example(ALL_OF_MARKUP)
@settings(max_examples=60, deadline=None)
@given(WORDS)
def test_text_never_becomes_markup_in_markdown(words: str) -> None:
    found, boots, measured = hostile(words)
    tokens = _READER.parse(markdown(found, boots=boots, benchmarks=measured))
    assert {token.content for token in tokens if token.type == "html_block"} <= {
        "<details><summary>Ask again</summary>\n",
        "</details>\n",
    }
    kinds = {token.type for token in _inline(tokens)}
    assert kinds <= {"text", "code_inline", "strong_open", "strong_close", "softbreak", "hardbreak", "text_special"}
    titles = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert titles[0] == "What changed on 2026-08-03"
    assert len(titles) == 9
    assert not {token.type for token in tokens} & {"hr", "blockquote_open", "code_block", "ordered_list_open"}
    for shown in (token.content for token in _inline(tokens) if token.type == "text"):
        assert not re.search(r"[@#][^\s\u2060]|\bGH-\d|://|www\.|mailto:", shown, re.IGNORECASE)


@example("1. item")
@example("- - item")
@given(st.one_of(WORDS, st.text()))
def test_escaped_words_are_read_as_just_these_words(words: str) -> None:
    words = safe(words).strip()
    tokens = _READER.parse(f"- {text(words)}")
    shown = "".join(token.content for token in _inline(tokens))
    assert shown.replace("\N{WORD JOINER}", "") == words
    assert {token.type for token in tokens} <= {
        "bullet_list_open", "list_item_open", "paragraph_open", "inline", "paragraph_close", "list_item_close",
        "bullet_list_close",
    }  # fmt: skip


@given(st.one_of(WORDS, st.text()))
def test_a_name_is_read_as_code_even_in_a_table(words: str) -> None:
    words = safe(words)
    cell = _inline(_READER.parse(f"| a | b |\n| --- | --- |\n| {code(words)} | c |\n"))
    [shown] = [token.content for token in cell if token.type == "code_inline"]
    assert shown.strip() == words.replace("|", "¦").strip()


@given(st.one_of(WORDS, st.text()))
def test_lines_to_copy_are_read_as_they_are(words: str) -> None:
    words = clean(words)
    [fence] = _READER.parse("\n".join(block(words)))
    assert fence.content == f"{words}\n"


@example(ALL_OF_MARKUP)
@settings(max_examples=25, deadline=None)
@given(WORDS)
def test_a_terminal_obeys_nothing_from_outside(words: str) -> None:
    found, boots, measured = hostile(words)
    shown = _terminal(found)
    assert all(character.isprintable() for character in shown.replace("\n", ""))
    document = encode(night_document(found, boots=boots, benchmarks=measured))
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", document)
    assert json.loads(document)["not_measured"] == [words]


def _terminal(found: object) -> str:
    written = io.StringIO()
    people.render(found, Console(file=written, width=80, color_system=None))  # type: ignore[arg-type]
    return written.getvalue()
