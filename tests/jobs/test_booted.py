from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bisector.boot.profile import Profile
from bisector.boot.profiles import parse_profile
from bisector.diagnosis import signatures
from bisector.diagnosis.engine import diagnose
from bisector.errors import UsageError
from bisector.jobs.boot import Booting
from bisector.jobs.booted import Predicate, predicate
from bisector.model import Answer, Build, EngineImage, Platform
from bisector.ports import Event
from bisector.reference import gpus
from bisector.search import Search, Strategy
from bisector.wiring.clock import SystemClock
from tests.fakes.machine import LOST, Behaviour, MemoryBoots, MemoryEngine

FAST, SLOW = (25.2, 25.3, 25.0, 24.9), (29.2, 28.9, 28.1, 28.8)
NOISY = (20.0, 30.0, 25.0)


def profile(**more: Any) -> Profile:
    least = {"title": "t", "arch": "sm120", "model": "/m", "context": {"tokens": 4096}}
    return parse_profile(least | {"benchmark": {"prompts": 5}} | more, name="tiny", where="tiny.toml")


def build(name: str) -> Build:
    return Build(
        id=name,
        source="docker:",
        spec=f"docker:{name}",
        platform=Platform("linux/amd64"),
        location=EngineImage(name=name),
    )


def ignore(_: Event) -> None:
    """Nobody looks."""


@asynccontextmanager
async def asking(engine: MemoryEngine, by: str, served: Profile | None = None) -> AsyncIterator[Predicate]:
    catalogue = signatures.shipped()
    booting = Booting(
        engine=engine,
        boots=MemoryBoots(),
        diagnose=lambda log: diagnose([log], catalogue, gpus()),
        clock=SystemClock(),
        progress=ignore,
        profile=served or profile(),
    )
    async with predicate(booting, by) as asked:
        yield asked


async def searched(asked: Predicate, names: Sequence[str]) -> tuple[Search, list[str]]:
    """Bisect to the end, with both ends given."""
    search = Search(names, strategy=Strategy.BISECT, good=names[0], bad=names[-1])
    order = []
    while proposals := search.next():
        order.append(proposals[0])
        search.record(proposals[0], await asked(build(proposals[0])))
    return search, order


@pytest.mark.parametrize(
    ("behaviour", "answer", "boots"),
    [
        (Behaviour(), Answer.GOOD, 1),
        (Behaviour(flaky=1), Answer.GOOD, 2),
        (Behaviour(flaky=2), Answer.BAD, 2),
        (Behaviour(dies_saying=LOST), Answer.BAD, 2),
        (Behaviour(dies_at="chat/completions"), Answer.BAD, 2),
    ],
)
async def test_a_boot_that_fails_is_repeated(behaviour: Behaviour, answer: Answer, boots: int) -> None:
    engine = MemoryEngine({"a": behaviour})
    async with asking(engine, "boot") as asked:
        assert (await asked(build("a"))).answer is answer
        assert engine.held
    assert (len(engine.launched), engine.held) == (boots, False)


async def test_the_cause_is_the_reason() -> None:
    async with asking(MemoryEngine({"a": Behaviour(dies_saying=LOST)}), "boot") as asked:
        assert "has no kernels" in (await asked(build("a"))).reason


async def test_what_the_machine_lacks_never_counts() -> None:
    engine = MemoryEngine({"a": Behaviour()})
    async with asking(engine, "boot", profile(gpus={"count": 2, "arch": "sm120"})) as asked:
        search, order = await searched(asked, ["a", "b"])
    assert (dict(search.verdicts), order) == ({}, ["a", "a"])
    assert "failed twice" in str(search.outcome())


async def test_a_machine_in_use_never_counts() -> None:
    engine = MemoryEngine({"a": Behaviour()}, held=True)
    async with asking(engine, "boot") as asked:
        assert (await asked(build("a"))).answer is Answer.INFRA


async def test_what_is_no_image_cannot_be_tested() -> None:
    engine = MemoryEngine({})
    async with asking(engine, "boot") as asked:
        assert (await asked(build("gone"))).answer is Answer.UNTESTABLE


async def test_the_first_slow_build_is_found() -> None:
    images = {str(night): Behaviour(tpot=FAST if night < 5 else SLOW) for night in range(1, 9)}
    async with asking(MemoryEngine(images), "tpot") as asked:
        search, order = await searched(asked, list(images))
    assert "before='4', after='5'" in str(search.outcome())
    assert order[:2] == ["1", "8"]


async def test_a_slow_build_is_measured_in_two_boots() -> None:
    engine = MemoryEngine({"good": Behaviour(tpot=FAST), "slow": Behaviour(tpot=SLOW)})
    async with asking(engine, "tpot") as asked:
        assert (await asked(build("good"))).answer is Answer.GOOD
        verdict = await asked(build("slow"))
    assert verdict.answer is Answer.BAD
    assert "slower" in verdict.reason
    assert [image for image, _ in engine.launched] == ["good", "slow", "slow"]


async def test_noise_asks_again_and_is_no_regression() -> None:
    engine = MemoryEngine({"good": Behaviour(tpot=NOISY), "noisy": Behaviour(tpot=NOISY[::-1])})
    served = profile(benchmark={"prompts": 5, "most-passes": 3})
    async with asking(engine, "tpot", served) as asked:
        await asked(build("good"))
        assert (await asked(build("noisy"))).answer is Answer.AMBIGUOUS
        assert (await asked(build("noisy"))).answer is Answer.AMBIGUOUS
    assert [image for image, _ in engine.launched] == ["good", "noisy", "good", "noisy", "good"]


async def test_what_is_surely_not_slower_is_good_however_much_faster_it_may_be() -> None:
    # As measured with a real server: 2.5 % faster, known to within 4 %.
    engine = MemoryEngine(
        {"good": Behaviour(tpot=[30, 26, 26.3, 25.7]), "faster": Behaviour(tpot=[30, 25, 25.3, 24.7])}
    )
    async with asking(engine, "tpot") as asked:
        await asked(build("good"))
        assert (await asked(build("faster"))).answer is Answer.GOOD


async def test_a_build_that_does_not_answer_has_no_speed() -> None:
    engine = MemoryEngine({"good": Behaviour(tpot=FAST), "dead": Behaviour(dies_saying=LOST)})
    async with asking(engine, "tpot") as asked:
        await asked(build("good"))
        assert (await asked(build("dead"))).answer is Answer.UNTESTABLE


async def test_speed_needs_a_benchmark() -> None:
    nothing = parse_profile(
        {"title": "t", "arch": "sm120", "model": "/m", "context": {"tokens": 4096}}, name="t", where="t.toml"
    )
    with pytest.raises(UsageError, match="has no benchmark"):
        async with asking(MemoryEngine({}), "tpot", nothing):
            pytest.fail("it was accepted")
