"""``check``: the gate before adopting a build."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import NoBuildForPlatform, RangesUnsupported, Unreadable
from bisector.jobs.probe import Probe, Tally
from bisector.jobs.resolve import Resolve
from bisector.kernels.predicates import gate_finding, judge
from bisector.model import Answer, Build, Depth, Verdict
from bisector.results import Check, Checked, GateFinding, Question


async def check(spellings: Sequence[str], question: Question, *, resolve: Resolve, probe: Probe) -> Check:
    """Whether each build has what the question asks for."""
    tally = probe.tally()
    builds = [await resolve.build(spelling) for spelling in spellings]
    checked = [await _check(build, question, probe, tally) for build in builds]
    return Check(question=question, builds=tuple(checked), cost=tally.cost(builds=len(builds)))


async def _check(build: Build, question: Question, probe: Probe, tally: Tally) -> Checked:
    try:
        seen = await probe.look(build, Depth.KERNELS, tally)
    except (NoBuildForPlatform, RangesUnsupported):
        raise
    except Unreadable as error:
        verdict = Verdict(answer=Answer.UNTESTABLE, reason=error.message)
        return Checked(build=build, verdict=verdict, observation=None, gate=GateFinding.UNKNOWN)
    return Checked(
        build=seen.build,
        verdict=judge(seen.observation, question),
        observation=seen.observation,
        gate=gate_finding(seen.observation, question),
    )
