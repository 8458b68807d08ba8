"""The night's proof on the hardware: both builds of a new loss, and the newest good build beside the one before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bisector.jobs.news import key_of, shortened
from bisector.jobs.standing import Bench
from bisector.model import Answer, Build, Verdict
from bisector.results import ArchNight, News, NewsKind, StreamNight
from bisector.trials import Agreement, Confirmation, Standing

Prove: TypeAlias = Callable[[Sequence[tuple[Build, Verdict | None]]], Awaitable[Confirmation]]
"""Boots builds whose kernels are known, and says what the hardware makes of them."""

OpenBench: TypeAlias = Callable[[Bench], Awaitable[Prove]]
"""Makes an engine and a profile ready."""

_GOOD, _BAD = Verdict(answer=Answer.GOOD), Verdict(answer=Answer.BAD)

_DISAGREEMENTS = {
    Agreement.BAD_BOOTS: "it boots and answers there all the same",
    Agreement.OTHER_CAUSE: "it fails there, but not for want of the kernels",
    Agreement.GOOD_FAILS: "the build before it, which has the kernels, fails there too",
    Agreement.BOTH_FAIL_ALIKE: "the build before it fails there for the same reason",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Builds to be booted together.

    Attributes:
        key: The same for the same builds on the same bench, so that they are booted once.
        about: The newest of them.
        arch: The architecture.
        builds: All of them, oldest first, with what their kernels say.
    """

    key: str
    about: Build
    arch: str
    builds: tuple[tuple[Build, Verdict], ...]


def cases(bench: Bench, stream: StreamNight, told: Collection[str]) -> list[Case]:
    """What is still to be proved: a loss that lasts, and the newest build if it has the kernels."""
    builds = {entry.build.id: entry.build for entry in stream.entries}
    found = [case for arch in stream.archs if arch.arch == bench.arch for case in _of(bench, stream, arch, builds)]
    return [case for case in found if case.key not in told]


def _of(bench: Bench, stream: StreamNight, arch: ArchNight, builds: dict[str, Build]) -> Iterator[Case]:
    def case(*pair: tuple[Build, Verdict]) -> Case:
        about = pair[-1][0]
        where = f"{bench.host}:{bench.profile}"
        return Case(
            key=f"proved:{where}:{key_of('', stream, arch, about.id)}", about=about, arch=arch.arch, builds=pair
        )

    loss = arch.losses[-1] if arch.losses else None
    if loss and loss.regained_at is None:
        yield case((builds[loss.last_good], _GOOD), (builds[loss.lost_at], _BAD))
    elif arch.newest and arch.verdict.answer is Answer.GOOD:
        names = list(builds)
        older = [name for name in names[: names.index(arch.newest.id)] if _has_kernels(arch, names, name)]
        before = [(builds[older[-1]], _GOOD)] if older else []
        yield case(*before, (arch.newest, _GOOD))


def _has_kernels(arch: ArchNight, names: list[str], name: str) -> bool:
    """Whether a build is known to be outside of every loss; one that nobody could read is taken to be like the rest."""
    at = names.index(name)
    return not any(
        names.index(loss.lost_at) <= at < (names.index(loss.regained_at) if loss.regained_at else len(names))
        or name in loss.untestable
        for loss in arch.losses
    )


def news_of_proof(case: Case, proved: Confirmation, stream: StreamNight) -> News | None:
    """What a proof shows that the files did not: that they are wrong about this machine, or that it became slower."""
    where = f"{proved.host} with {proved.profile}"
    name = shortened(case.about.id)
    if proved.agreement in _DISAGREEMENTS:
        says = f"{case.arch}: the hardware disagrees about {name}: on {where}, {_DISAGREEMENTS[proved.agreement]}"
        return _news(NewsKind.DISAGREES, case, says, stream)
    last = proved.trials[-1]
    if proved.agreement is None and last.tested and not last.holds:
        causes = last.boots[-1].causes
        why = f": {causes[0].title}" if causes else ""
        says = f"{case.arch}: {name} has the kernels and does not hold on {where}{why}"
        return _news(NewsKind.DISAGREES, case, says, stream)
    if proved.comparison and proved.comparison.standing is Standing.WORSE:
        measure = proved.comparison.measures[0]
        says = (
            f"{case.arch}: {name} is {measure.change:.0%} slower than {shortened(proved.comparison.before)} on {where} "
            f"({measure.name} {measure.before:.4g} → {measure.after:.4g})"
        )
        return _news(NewsKind.SLOWER, case, says, stream)
    return None


def _news(kind: NewsKind, case: Case, sentence: str, stream: StreamNight) -> News:
    arch = next(arch for arch in stream.archs if arch.arch == case.arch)
    key = key_of(kind, stream, arch, case.about.id)
    return News(kind=kind, key=key, source=stream.source, arch=case.arch, sentence=sentence)


def proof_words(proved: Confirmation) -> str:
    """What came of a proof, in a phrase."""
    if not all(trial.tested for trial in proved.trials):
        return "not tested: the machine, not the builds, is the reason"
    if proved.agreement is not None:
        return proved.agreement.replace("-", " ")
    if not all(trial.holds for trial in proved.trials):
        return "a build does not hold"
    return f"holds, {proved.comparison.standing}" if proved.comparison else "holds"
