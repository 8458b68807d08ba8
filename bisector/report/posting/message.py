"""The news as a message of a few lines. Plain text, to be sent as such."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bisector.report.night.page import Item, NightPage, page
from bisector.report.phrases import count
from bisector.results import News, Night

_OPERATIONS_SHOWN = 8
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_TAG = re.compile(r"[<>]")
_LOOKALIKES = {"<": "‹", ">": "›"}
_BREAK = "\N{WORD JOINER}"


def message(night: Night, news: Sequence[News]) -> str:
    """Some news of a night: a line that says the most important thing, and after a blank line all of it."""
    report = page(replace(night, news=tuple(news)))
    title = report.news[0].sentence if report.news else report.headlines[0]
    more = f" and {len(report.news) - 1} more" if len(report.news) > 1 else ""
    return harmless("\n".join([f"{title}{more}", "", *_lines(report)]).rstrip())


def harmless(text: str) -> str:
    """Text in which no chat finds a mention, a tag or a link behind other words."""
    untagged = _TAG.sub(lambda found: _LOOKALIKES[found[0]], text)
    return _MENTION.sub(f"@{_BREAK}", untagged).replace("](", f"]{_BREAK}(")


def _lines(report: NightPage) -> Iterator[str]:
    if not report.news:
        yield report.quiet
        yield from report.headlines
    for number, item in enumerate(report.news):
        # A single one is the title already.
        if number or len(report.news) > 1:
            yield f"{item.word}: {item.sentence}"
        yield from _evidence(item)
    for answer in report.answers:
        if answer.pin:
            yield f"Pin for {answer.arch}: {answer.pin.line}"
    for work in report.work:
        if not work.ok:
            yield f"Failed: {work.name}: {work.says}"


def _evidence(item: Item) -> Iterator[str]:
    found = item.evidence
    if found is None:
        return
    yield from (f"{label}: {value}" for label, value in found.facts)
    if found.operations:
        shown = ", ".join(found.operations[:_OPERATIONS_SHOWN])
        rest = len(found.operations) - _OPERATIONS_SHOWN
        more = f" and {rest} more" if rest > 0 else ""
        yield f"{count(len(found.operations), 'operation')} {found.verb}: {shown}{more}"
    yield f"Ask again: {found.reproduce}"
