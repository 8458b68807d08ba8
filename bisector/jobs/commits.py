"""``--commits``: from two builds to the commit between them that changed the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bisector.errors import NoBuildForPlatform, UnknownBuild, Unreadable
from bisector.jobs.probe import Probe, Tally, witness_of
from bisector.kernels.predicates import judge
from bisector.model import (
    Answer,
    Build,
    Commit,
    CommitWheel,
    Depth,
    Found,
    FoundBetween,
    Inconclusive,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Outcome,
    Verdict,
)
from bisector.ports import CommitHistory, Narrowed, Probed
from bisector.results import HandOff, HandOffOutcome, PinChange, Question, Seen, carried_instead
from bisector.search import Direction, Search, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The two builds and what is asked of the commits between them.

    Attributes:
        before: The build on the near side of the change.
        after: The build on its far side.
        question: What is asked of each commit.
        direction: For a loss or for its repair.
        depth: How far each commit's wheel is read.
        variant: The CUDA variant whose wheels are meant.
    """

    before: Seen
    after: Seen
    question: Question
    direction: Direction
    depth: Depth
    variant: str | None = None


async def hand_off(between: Between, history: CommitHistory, probe: Probe, tally: Tally) -> HandOff:
    """Bisect the commits by their wheels; what the wheels do not show is in the image only.

    Raises:
        UnknownBuild: A build does not say which commit it is of, or the history does not know it.
        Unavailable: The history or the wheels do not answer.
    """
    base = await history.commit(_commit_of(between.before))
    head = await history.commit(_commit_of(between.after))
    line = [base, *await history.between(base.sha, head.sha)]
    if len(line) == 1:
        reason = "both builds are of the same commit, so what changed is in the image only"
        return HandOff(outcome=HandOffOutcome.IMAGE_ONLY, commits=0, tested=0, reason=reason)
    search = _Search(between=between, line=line, probe=probe, tally=tally)
    return await search.answer(await search.run(), history)


def _commit_of(seen: Seen) -> str:
    """The commit a build really carries; a tag only promises one."""
    commit = carried_instead(seen.build, seen.observation) or seen.build.commit or seen.observation.provenance.commit
    if commit is None:
        raise UnknownBuild(
            f"{seen.build.spec} does not say which commit it was built of", hint="Leave out --commits for this build."
        )
    return commit


@dataclass(slots=True, kw_only=True)
class _Search:
    between: Between
    line: Sequence[Commit]
    probe: Probe
    tally: Tally
    _verdicts: dict[str, Verdict] = field(default_factory=dict)

    async def run(self) -> Outcome:
        names = [commit.sha for commit in self.line]
        is_loss = self.between.direction is Direction.LOSS
        search = Search(
            names,
            strategy=Strategy.BISECT,
            direction=self.between.direction,
            good=names[0] if is_loss else names[-1],
            bad=names[-1] if is_loss else names[0],
        )
        ends = {names[0]: self.between.before, names[-1]: self.between.after}
        while proposals := search.next():
            for name in proposals:
                verdict = await self._verdict(name, ends)
                self._verdicts[name] = verdict
                search.record(name, verdict)
            if window := search.window():
                before, after, between, steps_left = window
                narrowed = Narrowed(before=before[:9], after=after[:9], between=between, steps_left=steps_left)
                self.probe.progress(narrowed)
        outcome = search.outcome()
        if outcome is None:
            raise AssertionError("The search neither proposes a commit nor concludes.")
        return outcome

    async def _verdict(self, name: str, ends: Mapping[str, Seen]) -> Verdict:
        between = self.between
        build = self._build(name)
        from_history = False
        try:
            seen = await self.probe.look(build, between.depth, self.tally)
        except (NoBuildForPlatform, Unreadable) as error:
            verdict = Verdict(answer=Answer.UNTESTABLE, reason=error.message)
            if name in ends:
                # The image of this commit was read, and says more than a wheel that is not there.
                verdict = judge(ends[name].observation, between.question)
        else:
            from_history = seen.from_history
            verdict = judge(seen.observation, between.question)
        self.probe.progress(Probed(build=build, verdict=verdict, from_history=from_history))
        return verdict

    def _build(self, commit: str) -> Build:
        after = self.between.after.build
        wheel = CommitWheel(commit=commit, platform=after.platform, variant=self.between.variant)
        return witness_of(after, wheel, self.probe.commits)

    async def answer(self, outcome: Outcome, history: CommitHistory) -> HandOff:
        by_sha = {commit.sha: commit for commit in self.line}
        commits, tested = len(self.line) - 1, len(self._verdicts)
        match outcome:
            case Found(before=before, after=after):
                pin = PinChange(before=await history.pin(before), after=await history.pin(after))
                return HandOff(
                    outcome=HandOffOutcome.FOUND,
                    commits=commits,
                    tested=tested,
                    culprit=by_sha[after],
                    parent=by_sha[before],
                    pin=pin,
                )
            case FoundBetween(before=before, after=after, untestable=untestable):
                pin = PinChange(before=await history.pin(before), after=await history.pin(after))
                return HandOff(
                    outcome=HandOffOutcome.FOUND_BETWEEN,
                    commits=commits,
                    tested=tested,
                    reason=f"{len(untestable)} of the commits have no wheel that can be read",
                    parent=by_sha[before],
                    suspects=tuple(by_sha[sha] for sha in (*untestable, after)),
                    pin=pin,
                )
            case NotReproduced():
                reason = "the wheels of the two builds' own commits do not show the change, so it is in the image only"
                return HandOff(outcome=HandOffOutcome.IMAGE_ONLY, commits=commits, tested=tested, reason=reason)
            case Inconclusive(reason=reason):
                pass
            case NonMonotone():
                reason = "the commits change more than once"
            case NoRegression():
                reason = "the commits show no change"
        return HandOff(
            outcome=HandOffOutcome.INCONCLUSIVE,
            commits=commits,
            tested=tested,
            reason=reason,
            suspects=tuple(self.line[1:]),
        )
