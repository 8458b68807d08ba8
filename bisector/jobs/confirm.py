"""``confirm``: whether what the kernels say is true on the hardware. Boot, climb, load, measure, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bisector.boot.comparison import compare
from bisector.boot.ladder import next_context
from bisector.errors import BisectorError, NoBuildForPlatform, Unavailable, UnknownBuild, Unreadable
from bisector.jobs.boot import Booting
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve
from bisector.kernels.predicates import gate_finding, judge
from bisector.model import Answer, Build, Depth, Verdict
from bisector.results import ExitCode, Finding, GateFinding, Layer, Question
from bisector.search import Direction
from bisector.trials import Agreement, Boot, Comparison, Confirmation, Phase, Rung, Standing, Trial

LOST: Final = "deepgemm_"
"""How the causes begin that lost kernels predict."""

_PAIR: Final = 2
_SLACK: Final = 3600.0  # seconds a lease is believed beyond what the boots may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What proving needs.

    Attributes:
        booting: Boots.
        question: What is asked of the builds' kernels.
    """

    booting: Booting
    question: Question

    async def confirm(self, spellings: Sequence[str], *, resolve: Resolve, probe: Probe) -> Confirmation:
        """Whether each build answers, in full; of a good and a bad one, whether the hardware agrees.

        Raises:
            UnknownBuild: A spelling names no build.
            UsageError: A build is no image.
            Unavailable: Somebody else uses the machine, or an image cannot be had.
        """
        builds = [await resolve.build(spelling) for spelling in spellings]
        return await self.of([(build, await self._expected(build, probe)) for build in builds])

    async def of(self, builds: Sequence[tuple[Build, Verdict | None]]) -> Confirmation:
        """The same, of builds whose kernels are known; ``None``: nobody could tell."""
        booting = self.booting
        start = booting.clock.monotonic()
        await booting.boots.abandon(await booting.engine.clear())
        first = await booting.pull(builds[0][0])
        async with booting.engine.hold(first, seconds=self._patience(len(builds))):
            answers = {verdict.answer for _, verdict in builds if verdict}
            if len(builds) == _PAIR and answers == {Answer.GOOD, Answer.BAD}:
                trials, comparison = await self._pair(builds), None
                agreement: Agreement | None = _agreement(trials)
            else:
                trials = [await self._climb(build, expected) for build, expected in builds]
                trials, comparison = await self._compared(trials)
                agreement = None
        return Confirmation(
            profile=booting.profile.name,
            host=booting.engine.name,
            trials=tuple(trials),
            agreement=agreement,
            comparison=comparison,
            seconds=round(booting.clock.monotonic() - start, 1),
        )

    async def _expected(self, build: Build, probe: Probe) -> Verdict | None:
        """What the kernels predict: a build fails that lacks them and still sends the device to them."""
        try:
            seen = await probe.look(build, Depth.KERNELS, probe.tally())
        except (NoBuildForPlatform, UnknownBuild, Unreadable, Unavailable):
            return None
        verdict = judge(seen.observation, self.question)
        if verdict.answer is Answer.BAD:
            gate = gate_finding(seen.observation, self.question)
            return verdict if gate in {GateFinding.CRASH, GateFinding.UNKNOWN} else None
        return verdict

    async def _climb(self, build: Build, expected: Verdict | None) -> Trial:
        """Up the ladder, and at the profile's context the whole load."""
        context = self.booting.profile.context
        trial = Trial(build=build, expected=expected, boots=(), ladder=(), goal=context.tokens)
        while rung := next_context(trial.ladder, start=context.start, goal=context.tokens, step=context.step):
            boot = await self.booting.boot(build, rung, load=rung == context.tokens)
            trial = replace(trial, boots=(*trial.boots, boot))
            if not trial.tested:
                break
            came_up = any(reached.phase is Phase.ANSWERING for reached in boot.phases)
            tried = Rung(context=rung, boots=came_up, estimated=boot.facts.estimated_context)
            trial = replace(trial, ladder=(*trial.ladder, tried))
            # Shorter contexts are tried only where a shorter one can help: not after a failure under load, and not
            # after one that has nothing to do with memory.
            if not boot.answered and (came_up or not _is_memory(boot)):
                break
        return trial

    async def _pair(self, builds: Sequence[tuple[Build, Verdict | None]]) -> list[Trial]:
        """The good one in full; the bad one once, for lost kernels are missed at load, whatever the context."""
        trials = []
        for build, expected in builds:
            if expected and expected.answer is Answer.BAD:
                start = min(self.booting.profile.context.start, self.booting.profile.context.tokens)
                boot = await self.booting.boot(build, start)
                rung = Rung(context=start, boots=boot.answered, estimated=boot.facts.estimated_context)
                goal = self.booting.profile.context.tokens
                trials.append(Trial(build=build, expected=expected, boots=(boot,), ladder=(rung,), goal=goal))
            else:
                trials.append(await self._climb(build, expected))
        return trials

    async def _compared(self, trials: list[Trial]) -> tuple[list[Trial], Comparison | None]:
        """The last against the first, in turns for as long as noise hides the answer."""
        benchmark = self.booting.profile.benchmark
        if benchmark is None or len(trials) < _PAIR or not all(trial.holds for trial in (trials[0], trials[-1])):
            return trials, None
        for turn in range(benchmark.turns):
            if turn:
                trials[0], trials[-1] = await self._again(trials[0]), await self._again(trials[-1])
                if not all(trial.holds for trial in (trials[0], trials[-1])):
                    return trials, None
            comparison = compare(
                trials[0].passes,
                trials[-1].passes,
                names=(trials[0].build.id, trials[-1].build.id),
                smallest_effect=benchmark.smallest_effect,
            )
            if comparison.standing is not Standing.AMBIGUOUS:
                break
        return trials, comparison

    async def _again(self, trial: Trial) -> Trial:
        boot = await self.booting.boot(trial.build, trial.goal, load=True)
        return replace(trial, boots=(*trial.boots, boot))

    def _patience(self, builds: int) -> float:
        timeouts = self.booting.profile.timeouts
        return builds * (timeouts.pull + 16 * timeouts.boot + 32 * timeouts.benchmark) + _SLACK


def _is_memory(boot: Boot) -> bool:
    return bool(boot.causes) and boot.causes[0].layer is Layer.MEMORY


def _agreement(trials: Sequence[Trial]) -> Agreement:
    """What the two show; the order in which they were named does not matter."""
    good, bad = sorted(trials, key=lambda trial: trial.expected is not None and trial.expected.answer is Answer.BAD)
    if not (good.tested and bad.tested):
        return Agreement.UNTESTED
    if not good.holds:
        causes = [trial.boots[-1].causes[:1] for trial in (good, bad)]
        same = bool(causes[0]) and [cause.id for cause in causes[0]] == [cause.id for cause in causes[1]]
        return Agreement.BOTH_FAIL_ALIKE if same else Agreement.GOOD_FAILS
    if bad.boots[-1].answered:
        return Agreement.BAD_BOOTS
    lost = any(cause.id.startswith(LOST) for cause in bad.boots[-1].causes[:1])
    return Agreement.CONFIRMED if lost else Agreement.OTHER_CAUSE


async def confirm_finding(finding: Finding, proof: Proof) -> tuple[Finding, Confirmation | None]:
    """Boot the two builds that a search told apart; ``None`` where it named none, or where they cannot be booted."""
    if finding.before is None or finding.after is None:
        return finding, None
    is_loss = finding.direction is Direction.LOSS
    good, bad = (finding.before, finding.after) if is_loss else (finding.after, finding.before)
    verdicts = {entry.build.id: entry.verdict for entry in finding.timeline}
    try:
        return finding, await proof.of([(side.build, verdicts.get(side.build.id)) for side in (good, bad)])
    except BisectorError as error:
        # What was found stands; that nobody could boot it is worth a sentence.
        return replace(finding, notes=(*finding.notes, f"They could not be booted: {error.message}.")), None


def confirmed_exit_code(finding: Finding, confirmation: Confirmation) -> int:
    """The finding's own, unless the hardware contradicts it; a machine that could not tell contradicts nothing."""
    if confirmation.agreement in {None, Agreement.CONFIRMED, Agreement.UNTESTED}:
        return finding.exit_code
    return ExitCode.INCONCLUSIVE
