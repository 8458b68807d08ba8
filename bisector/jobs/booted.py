"""Boots as the question of a search: does a build answer at all, and is it as fast as the good one?

A boot that fails is repeated, since machines hiccup and a build that answers once can answer; what the machine is to
blame for never counts (DESIGN §6). What the search names is asked once more by the search itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from bisector.boot.comparison import compare
from bisector.errors import NoBuildForPlatform, Unavailable, UnknownBuild, UsageError
from bisector.jobs.boot import Booting
from bisector.model import Answer, Build, Verdict
from bisector.trials import MACHINE, Boot, Pass, Standing

_TRIES: Final = 2
_SEARCH: Final = 20  # boots for which a search's lease is believed


class Predicate(Protocol):
    """A question to a build that is answered by trying."""

    async def __call__(self, build: Build, /) -> Verdict:
        """The answer; asked again, it tries again."""


@dataclass(slots=True, kw_only=True)
class Answering:
    """Whether a build answers at the profile's context.

    Attributes:
        booting: Boots.
        stack: Keeps the machine for as long as the search takes.
    """

    booting: Booting
    stack: AsyncExitStack
    _held: bool = False

    async def __call__(self, build: Build, /) -> Verdict:
        """Good when it answers once in two tries."""
        reasons: list[str] = []
        for _ in range(_TRIES):
            boot = await self.boot(build, load=False)
            if isinstance(boot, Verdict):
                return boot
            if boot.answered:
                return Verdict(answer=Answer.GOOD, reason="answers" + (" at the second try" if reasons else ""))
            reasons.append(_reason(boot))
        return Verdict(answer=Answer.BAD, reason=reasons[-1])

    async def boot(self, build: Build, *, load: bool) -> Boot | Verdict:
        """A boot that says something of the build; else the verdict that it does not."""
        try:
            await self._hold(build)
            boot = await self.booting.boot(build, self.booting.profile.context.tokens, load=load)
        except (UsageError, UnknownBuild, NoBuildForPlatform) as error:
            return Verdict(answer=Answer.UNTESTABLE, reason=error.message)
        except Unavailable as error:
            return Verdict(answer=Answer.INFRA, reason=error.message)
        if boot.outcome in MACHINE:
            return Verdict(answer=Answer.INFRA, reason=boot.reason or boot.outcome)
        return boot

    async def _hold(self, build: Build) -> None:
        if self._held:
            return
        booting = self.booting
        await booting.boots.abandon(await booting.engine.clear())
        image = await booting.pull(build)
        timeouts = booting.profile.timeouts
        patience = _SEARCH * (timeouts.pull + timeouts.boot + 8 * timeouts.benchmark)
        await self.stack.enter_async_context(booting.engine.hold(image, seconds=patience))
        self._held = True


@dataclass(slots=True, kw_only=True)
class Tpot:
    """Whether a build is as fast as the first one asked about, which the search makes the good end.

    Attributes:
        boots: Boots, and knows what says nothing of a build.
    """

    boots: Answering
    _reference: Build | None = None
    _boots: defaultdict[str, list[Boot]] = field(default_factory=lambda: defaultdict(list))

    async def __call__(self, build: Build, /) -> Verdict:
        """Bad when it is slower in two boots, and sure of it; ambiguous when the noise hides it."""
        if nothing := await self._measure(build):
            return nothing
        if self._reference is None or self._reference.id == build.id:
            self._reference = build
            return Verdict(
                answer=Answer.GOOD,
                reason=f"TPOT {self._passes(build)[-1].tpot_ms:.2f} ms, which others are held to",
            )
        verdict = self._compared(build, self._reference)
        while again := self._to_measure_again(verdict, build, self._reference):
            if nothing := await self._measure(again):
                # What befalls the reference says nothing of this build.
                return verdict if again is self._reference and nothing.answer is not Answer.INFRA else nothing
            verdict = self._compared(build, self._reference)
        return verdict

    def _to_measure_again(self, verdict: Verdict, build: Build, reference: Build) -> Build | None:
        if verdict.answer is Answer.BAD and len(self._boots[build.id]) < _TRIES:
            return build
        # The noise may be the reference's, which is the least known of all unless it is measured in turns with them.
        if verdict.answer is Answer.AMBIGUOUS and len(self._boots[reference.id]) <= len(self._boots[build.id]):
            return reference
        return None

    async def _measure(self, build: Build) -> Verdict | None:
        """Boot and load it, and keep the boot; the verdict where that says nothing of its speed."""
        boot = await self.boots.boot(build, load=True)
        if isinstance(boot, Verdict):
            return boot
        if not boot.answered:
            # A build that does not answer has no speed: that is another question, and `--by boot` asks it.
            return Verdict(answer=Answer.UNTESTABLE, reason=_reason(boot))
        self._boots[build.id].append(boot)
        return None

    def _passes(self, build: Build) -> list[Pass]:
        return [each for boot in self._boots[build.id] for each in boot.passes if each.counts]

    def _compared(self, build: Build, reference: Build) -> Verdict:
        benchmark = self.boots.booting.profile.benchmark
        assert benchmark is not None  # noqa: S101 - a search by TPOT is refused without one
        compared = compare(
            self._passes(reference),
            self._passes(build),
            names=(reference.id, build.id),
            smallest_effect=benchmark.smallest_effect,
        ).measures[0]
        way = "slower" if compared.change > 0 else "faster"
        reason = f"TPOT {compared.after:.2f} ms, {abs(compared.change):.1%} {way} ± {compared.noise:.1%}"
        if compared.standing is Standing.WORSE:
            return Verdict(answer=Answer.BAD, reason=reason)
        # Whether it is faster, or how much, is not asked: it is enough that it is surely not slower.
        not_slower = (1 + compared.change) * (1 + compared.noise) < 1 + benchmark.smallest_effect
        return Verdict(answer=Answer.GOOD if not_slower else Answer.AMBIGUOUS, reason=reason)


@asynccontextmanager
async def predicate(booting: Booting, by: str) -> AsyncIterator[Predicate]:
    """The question ``boot`` or ``tpot`` asks; while it is open, nobody else boots on the machine.

    Raises:
        UsageError: The profile has no benchmark to measure TPOT with.
    """
    if by == "tpot" and booting.profile.benchmark is None:
        raise UsageError(
            f"The profile {booting.profile.name} has no benchmark", hint="Add a [benchmark] table, or search by boot."
        )
    async with AsyncExitStack() as stack:
        boots = Answering(booting=booting, stack=stack)
        yield Tpot(boots=boots) if by == "tpot" else boots


def _reason(boot: Boot) -> str:
    return boot.causes[0].title if boot.causes else boot.reason or boot.outcome
