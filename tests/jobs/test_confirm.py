from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from bisector.arch import parse
from bisector.boot.hardware import Machine, read_gpus
from bisector.boot.profile import Profile
from bisector.boot.profiles import parse_profile
from bisector.diagnosis import signatures, workarounds
from bisector.diagnosis.engine import diagnose
from bisector.errors import Unavailable, UnknownBuild
from bisector.jobs.boot import Booting
from bisector.jobs.confirm import Proof, confirm_finding
from bisector.jobs.needless import omissions
from bisector.model import (
    Answer,
    Build,
    Cost,
    DeepGemm,
    Depth,
    Digest,
    EngineImage,
    EvidenceKind,
    Found,
    LibraryStatus,
    Observation,
    Platform,
    Verdict,
)
from bisector.ports import Event
from bisector.reference import gpus
from bisector.results import Finding, GateFinding, Question, Seen, TimelineEntry
from bisector.search import Direction, Strategy
from bisector.trials import Agreement, BootOutcome, Confirmation, Phase, Standing
from bisector.wiring.clock import SystemClock
from tests.fakes.machine import LOST, Behaviour, MemoryBoots, MemoryEngine

GOOD, BAD = Verdict(answer=Answer.GOOD), Verdict(answer=Answer.BAD)
PROFILE: dict[str, Any] = {
    "title": "tiny",
    "arch": "sm120",
    "model": "/models/tiny",
    "context": {"tokens": 32768, "start": 8192, "step": 64},
    "heaviest": {"prompt-tokens": 12_000, "output-tokens": 16},
    "benchmark": {"prompts": 5},
}
TWO_GPUS = "0, NVIDIA RTX PRO 6000, 12.0, 97887, 0\n1, NVIDIA RTX PRO 6000, 12.0, 97887, 0\n"


def profile(**more: Any) -> Profile:
    return parse_profile({**PROFILE, **more}, name="tiny", where="tiny.toml")


def build(name: str) -> Build:
    return Build(
        id=name,
        source="docker:",
        spec=f"docker:{name}",
        platform=Platform("linux/amd64"),
        location=EngineImage(name=name),
    )


@dataclass(slots=True)
class Bench:
    """A machine with images, and what happened on it."""

    engine: MemoryEngine
    boots: MemoryBoots = field(default_factory=MemoryBoots)
    events: list[Event] = field(default_factory=list)

    def proof(self, served: Profile) -> Proof:
        catalogue = signatures.shipped()
        device = parse("sm120", gpus())
        booting = Booting(
            engine=self.engine,
            boots=self.boots,
            diagnose=lambda log: diagnose([log], catalogue, gpus()),
            clock=SystemClock(),
            progress=self.events.append,
            profile=served,
        )
        return Proof(booting=booting, question=Question(device=device, served_by=device))

    async def confirm(self, *builds: tuple[str, Verdict | None], served: Profile | None = None) -> Confirmation:
        return await self.proof(served or profile()).of([(build(name), expected) for name, expected in builds])


def bench(**images: Behaviour) -> Bench:
    return Bench(MemoryEngine(images))


async def test_a_build_that_holds_is_climbed_loaded_and_measured() -> None:
    here = bench(a=Behaviour())
    answer = await here.confirm(("a", GOOD))
    (trial,) = answer.trials
    assert [rung.context for rung in trial.ladder] == [8192, 16384, 32768]
    assert answer.exit_code == 0
    assert trial.holds
    last = trial.boots[-1]
    assert [reached.phase for reached in last.phases][-2:] == [Phase.HEALTHY, Phase.ANSWERING]
    assert last.heaviest is not None
    assert (last.heaviest.prompt_tokens, len(trial.passes), len(last.passes)) == (12_000, 3, 4)
    assert [boot.passes for boot in trial.boots[:-1]] == [(), ()]
    assert (here.engine.running, here.engine.held) == ([], False)
    assert here.boots.outcomes == [BootOutcome.ANSWERED] * 3


async def test_the_longest_context_is_found_where_the_goal_does_not_boot() -> None:
    answer = await bench(a=Behaviour(fits=16256)).confirm(("a", GOOD))
    (trial,) = answer.trials
    assert [(rung.context, rung.boots) for rung in trial.ladder] == [
        (8192, True),
        (16384, False),
        (16256, True),
        (16320, False),
    ]
    assert (trial.context, trial.holds, answer.exit_code) == (16256, False, 1)
    assert trial.ladder[1].estimated == 16256
    assert trial.boots[1].causes[0].id == "kv_cache_too_small"


@pytest.mark.parametrize(
    ("good", "bad", "agreement", "code"),
    [
        (Behaviour(), Behaviour(dies_saying=LOST), Agreement.CONFIRMED, 0),
        (Behaviour(), Behaviour(), Agreement.BAD_BOOTS, 1),
        (Behaviour(), Behaviour(oom_killed=True), Agreement.OTHER_CAUSE, 1),
        (Behaviour(), Behaviour(refused="no such entry point"), Agreement.OTHER_CAUSE, 1),
        (Behaviour(oom_killed=True), Behaviour(dies_saying=LOST), Agreement.GOOD_FAILS, 1),
        (Behaviour(fits=16256), Behaviour(dies_saying=LOST), Agreement.GOOD_FAILS, 1),
        (Behaviour(dies_saying=LOST), Behaviour(dies_saying=LOST), Agreement.BOTH_FAIL_ALIKE, 1),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
async def test_what_a_good_and_a_bad_build_show_together(
    good: Behaviour, bad: Behaviour, agreement: Agreement, code: int, *, backwards: bool
) -> None:
    pair = [("good", GOOD), ("bad", BAD)]
    answer = await bench(good=replace(good), bad=replace(bad)).confirm(*(pair[::-1] if backwards else pair))
    assert (answer.agreement, answer.exit_code) == (agreement, code)


async def test_a_bad_build_is_booted_once_and_not_climbed() -> None:
    here = bench(good=Behaviour(), bad=Behaviour(dies_saying=LOST))
    await here.confirm(("good", GOOD), ("bad", BAD))
    assert [context for image, context in here.engine.launched if image == "bad"] == [8192]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Behaviour(dies_at="chat/completions"), "failed its first request: status 500"),
        (Behaviour(dies_at="v1/completions"), "the heaviest request, of 12,000 tokens, failed"),
        (Behaviour(dies_at="benchmark"), "warm-up of the benchmark completed 0 of 5 requests"),
    ],
)
async def test_a_server_that_dies_after_it_was_healthy_has_failed(behaviour: Behaviour, reason: str) -> None:
    here = bench(a=behaviour)
    answer = await here.confirm(("a", GOOD), served=profile(context={"tokens": 16384, "start": 16384}))
    boot = answer.trials[0].boots[-1]
    assert reason in (boot.reason or "")
    assert (boot.outcome, boot.exit_code, answer.exit_code) == (BootOutcome.FAILED, 0, 1)
    assert len(here.engine.launched) == 1


async def test_a_server_that_never_comes_up_timed_out() -> None:
    served = profile(timeouts={"boot": 0.01})
    answer = await bench(a=Behaviour(hangs=True)).confirm(("a", GOOD), served=served)
    assert answer.trials[0].boots[-1].outcome is BootOutcome.TIMED_OUT
    assert answer.exit_code == 1


async def test_memory_that_ran_out_is_named_although_the_log_is_silent() -> None:
    answer = await bench(a=Behaviour(oom_killed=True)).confirm(("a", GOOD))
    (cause,) = answer.trials[0].boots[-1].causes
    assert cause.id == "container_out_of_memory"


@pytest.mark.parametrize("text", ["", TWO_GPUS.splitlines()[0], TWO_GPUS.replace("12.0", "9.0")])
async def test_no_such_hardware_is_no_failure_of_the_image(text: str) -> None:
    here = bench(a=Behaviour())
    here.engine.machine = Machine(gpus=read_gpus(text, gpus()))
    answer = await here.confirm(("a", GOOD), served=profile(gpus={"count": 2, "arch": "sm120"}))
    assert answer.trials[0].boots[-1].outcome is BootOutcome.NO_HARDWARE
    assert answer.exit_code == 4
    assert here.engine.launched == []


async def test_the_hardware_asked_for_is_used() -> None:
    here = bench(a=Behaviour())
    here.engine.machine = Machine(gpus=read_gpus(TWO_GPUS, gpus()))
    answer = await here.confirm(("a", GOOD), served=profile(gpus={"count": 2, "arch": "sm120", "free-gib": 90}))
    assert answer.exit_code == 0


async def test_a_machine_that_is_held_is_not_used() -> None:
    here = bench(a=Behaviour())
    here.engine.held = True
    with pytest.raises(Unavailable):
        await here.confirm(("a", GOOD))
    assert here.engine.launched == []


async def test_an_image_that_is_not_there_is_said_before_anything_boots() -> None:
    here = bench(a=Behaviour())
    with pytest.raises(UnknownBuild):
        await here.confirm(("b", GOOD))
    assert here.boots.begun == {}


async def test_what_a_killed_run_left_is_recorded() -> None:
    here = bench(a=Behaviour())
    here.engine.left = ["boot-of-yesterday"]
    await here.confirm(("a", GOOD))
    assert here.boots.abandoned == ["boot-of-yesterday"]


@pytest.mark.parametrize(
    ("before", "after", "standing", "code"),
    [
        ([25.2, 25.3, 25.0, 24.9], [29.2, 28.9, 28.1, 28.8], Standing.WORSE, 1),
        ([29.2, 28.9, 28.1, 28.8], [25.2, 25.3, 25.0, 24.9], Standing.BETTER, 0),
        ([25.2, 25.3, 25.0, 24.9], [25.0, 25.1, 25.3, 24.9], Standing.TIE, 0),
        ([2.0, 3.0, 2.5], [2.6, 2.2, 3.1], Standing.AMBIGUOUS, 3),
    ],
)
async def test_two_builds_are_compared(before: list[float], after: list[float], standing: Standing, code: int) -> None:
    here = bench(a=Behaviour(tpot=before), b=Behaviour(tpot=after))
    answer = await here.confirm(("a", GOOD), ("b", GOOD))
    assert answer.comparison is not None
    assert (answer.comparison.standing, answer.exit_code) == (standing, code)


async def test_noise_asks_for_another_turn_of_each() -> None:
    here = bench(a=Behaviour(tpot=[2.0, 3.0, 2.5]), b=Behaviour(tpot=[2.6, 2.2, 3.1]))
    served = profile(context={"tokens": 16384, "start": 16384}, benchmark={"prompts": 5, "most-passes": 3, "turns": 3})
    await here.confirm(("a", GOOD), ("b", GOOD), served=served)
    assert [image for image, _ in here.engine.launched] == ["a", "b", "a", "b", "a", "b"]


@pytest.mark.parametrize("phase", ["pulled", "started", "healthy", "answering", "heaviest", "warm-up"])
async def test_an_interruption_leaves_nothing_behind(phase: str) -> None:
    here = bench(a=Behaviour())
    with anyio.CancelScope() as scope:

        def stop(event: Event) -> None:
            if phase in str(event):
                scope.cancel()

        proof = here.proof(profile(context={"tokens": 16384, "start": 16384}))
        await _confirm(proof, stop)
    assert scope.cancelled_caught
    assert (here.engine.running, here.engine.held) == ([], False)
    assert here.boots.outcomes == [BootOutcome.INTERRUPTED]


async def _confirm(proof: Proof, progress: Callable[[Event], None]) -> None:
    booting = replace(proof.booting, progress=progress)
    await replace(proof, booting=booting).of([(build("a"), GOOD)])


async def test_a_workaround_that_is_no_longer_needed_is_told() -> None:
    known = workarounds.shipped()
    flags = [{"name": "--enforce-eager"}, {"name": "--served-model-name", "value": "tiny"}]
    served = profile(flag=flags, environment=[{"name": "VLLM_USE_DEEP_GEMM", "value": "0"}])
    here = bench(a=Behaviour(needs=("VLLM_USE_DEEP_GEMM",), dies_without=LOST))
    answer = await omissions(build("a"), known, booting=here.proof(served).booting)
    assert [(each.flag.flag, each.needed) for each in answer.tried] == [
        ("--enforce-eager", False),
        ("VLLM_USE_DEEP_GEMM=0", True),
    ]
    assert answer.tried[1].boot.causes[0].id == "deepgemm_no_arch_kernels"
    assert (answer.exit_code, here.engine.held, len(here.engine.launched)) == (0, False, 3)


async def test_nothing_is_left_out_of_what_does_not_boot() -> None:
    here = bench(a=Behaviour(dies_saying=LOST))
    served = profile(flag=[{"name": "--enforce-eager"}])
    answer = await omissions(build("a"), workarounds.shipped(), booting=here.proof(served).booting)
    assert (answer.tried, answer.exit_code) == ((), 1)


async def test_a_finding_stands_though_its_builds_cannot_be_booted() -> None:
    here = bench(a=Behaviour())
    found = await confirm_finding(finding("gone-a", "gone-b"), here.proof(profile()))
    assert found[1] is None
    assert found[0].notes == ("They could not be booted: The engine has no image gone-a.",)


async def test_a_finding_is_confirmed_whichever_side_is_the_good_one() -> None:
    for direction in Direction:
        here = bench(good=Behaviour(), bad=Behaviour(dies_saying=LOST))
        sides = ("good", "bad") if direction is Direction.LOSS else ("bad", "good")
        _, confirmation = await confirm_finding(finding(*sides, direction=direction), here.proof(profile()))
        assert confirmation is not None
        assert confirmation.agreement is Agreement.CONFIRMED


def finding(before: str, after: str, *, direction: Direction = Direction.LOSS) -> Finding:
    device = parse("sm120", gpus())
    verdicts = (GOOD, BAD) if direction is Direction.LOSS else (BAD, GOOD)
    unread = Observation(
        digest=Digest("sha256:0"),
        depth=Depth.NAMES,
        probe_version=1,
        evidence=EvidenceKind.IMAGE,
        deep_gemm=DeepGemm(status=LibraryStatus.ABSENT),
    )
    sides = [Seen(build=build(name), observation=unread, from_history=False) for name in (before, after)]
    return Finding(
        question=Question(device=device, served_by=device),
        source="docker:",
        platform="linux/amd64",
        strategy=Strategy.BISECT,
        direction=direction,
        outcome=Found(before=before, after=after),
        timeline=[TimelineEntry(build=side.build, verdict=each) for side, each in zip(sides, verdicts, strict=True)],
        before=sides[0],
        after=sides[1],
        losses=(),
        changed_ops=(),
        packages=(),
        gate=GateFinding.CRASH,
        newest_good=None,
        hand_off=None,
        notes=(),
        cost=Cost(),
        reproduce="bisector find-regression",
        finished_at=SystemClock().now(),
    )
