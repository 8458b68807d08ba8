"""What is booted in a night, and what of it is news."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bisector.jobs.proved import Case, cases, news_of_proof, proof_words
from bisector.jobs.standing import Bench
from bisector.model import Build, Verdict
from bisector.results import News
from bisector.trials import (
    Agreement,
    Boot,
    BootOutcome,
    Comparison,
    Confirmation,
    LogFacts,
    Measure,
    Rung,
    Standing,
    Trial,
)
from tests.nightly.test_news import stream

BENCH = Bench(host="ssh://ops@gpu", profile="tiny", arch="sm120")


def booted(build: Build, expected: Verdict | None, outcome: BootOutcome = BootOutcome.ANSWERED) -> Trial:
    boot = Boot(
        id=build.id,
        build=build,
        image="sha256:1",
        context=4096,
        started_at=datetime(2026, 7, 4, tzinfo=UTC),
        seconds=30.0,
        outcome=outcome,
        reason=None,
        phases=(),
        facts=LogFacts(),
        causes=(),
        exit_code=None,
    )
    answers = outcome is BootOutcome.ANSWERED
    rung = Rung(context=4096, boots=answers, estimated=None)
    return Trial(build=build, expected=expected, boots=(boot,), ladder=(rung,), goal=4096)


def proved(case: Case, *, outcome: BootOutcome = BootOutcome.ANSWERED) -> Confirmation:
    trials = [booted(build, verdict) for build, verdict in case.builds[:-1]]
    trials.append(booted(*case.builds[-1], outcome))
    return Confirmation(
        profile="tiny", host="ssh://ops@gpu", trials=tuple(trials), agreement=None, comparison=None, seconds=60.0
    )


def slower(found: Confirmation, standing: Standing) -> Confirmation:
    measure = Measure(name="tpot_ms", before=20.0, after=26.0, change=0.3, noise=0.02, standing=standing)
    return replace(found, comparison=Comparison(before="a", after="b", passes=(3, 3), measures=(measure,)))


def only(answers: str, told: frozenset[str] = frozenset()) -> Case | None:
    found = cases(BENCH, stream(answers), told)
    assert len(found) <= 1
    return found[0] if found else None


def says(case: Case, found: Confirmation) -> str | None:
    news: News | None = news_of_proof(case, found, stream("++"))
    return f"{news.kind}: {news.sentence}" if news else None


@pytest.mark.parametrize(
    ("answers", "pair"),
    [
        ("++-", "b+ c-"),
        ("++--", "b+ c-"),  # the same pair, night after night
        ("+?-", "a+ c-"),
        ("+++", "b+ c+"),
        ("+-+", "a+ c+"),
        ("+", "a+"),
        ("-", ""),
        ("", ""),
    ],
)
def test_what_is_booted(answers: str, pair: str) -> None:
    case = only(answers)
    signs = {"good": "+", "bad": "-"}
    told = " ".join(f"{build.id}{signs[verdict.answer]}" for build, verdict in case.builds) if case else ""
    assert told == pair


def test_what_was_proved_is_not_booted_again() -> None:
    case = only("++-")
    assert case is not None
    assert only("++-", frozenset({case.key})) is None
    assert only("++---", frozenset({case.key})) is None
    assert only("++--+", frozenset({case.key})) is not None
    assert cases(replace(BENCH, arch="sm100"), stream("++-"), ()) == []


def test_a_hardware_that_disagrees_and_a_slower_build_are_news_and_the_rest_is_not() -> None:
    pair, newest = only("+-"), only("++")
    assert pair is not None
    assert newest is not None
    agreed = replace(proved(pair), agreement=Agreement.CONFIRMED)
    assert says(pair, agreed) is None
    assert proof_words(agreed) == "confirmed"
    told = says(pair, replace(agreed, agreement=Agreement.BAD_BOOTS))
    assert told == (
        "disagrees: sm120: the hardware disagrees about b: on ssh://ops@gpu with tiny, it boots and answers there all "
        "the same"
    )
    assert says(newest, proved(newest)) is None
    failed = says(newest, proved(newest, outcome=BootOutcome.FAILED))
    assert failed == "disagrees: sm120: b has the kernels and does not hold on ssh://ops@gpu with tiny"
    assert says(newest, slower(proved(newest), Standing.TIE)) is None
    assert says(newest, slower(proved(newest), Standing.WORSE)) == (
        "slower: sm120: b is 30% slower than a on ssh://ops@gpu with tiny (tpot_ms 20 → 26)"
    )
