from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.history.database import open_database
from bisector.history.queries import Queries
from bisector.history.store import History
from bisector.kernels.inventory import carries
from bisector.model import (
    Answer,
    Build,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Kernel,
    LibraryStatus,
    Loss,
    Mark,
    Observation,
    Verdict,
)
from bisector.results import Filters, Subject
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build
from tests.history.schema import query

ARCHS = ("sm90", "sm100", "sm120")
GIVEN_UP = Verdict(answer=Answer.UNTESTABLE, reason="the wheel of this commit was never built")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One build of a random history: what was seen in it, if anything, and when it is said to have appeared."""

    status: LibraryStatus | None
    depth: Depth
    archs: frozenset[str]
    given_up: bool
    prerelease: bool
    day: int

    def build(self, number: int) -> Build:
        marks = (Mark.PRERELEASE,) if self.prerelease else ()
        published = datetime(2026, 7, 1, tzinfo=UTC) + timedelta(days=self.day)
        return replace(a_build(f"b{number:02}", f"sha256:{number}"), published_at=published, marks=marks)

    def observation(self, number: int) -> Observation | None:
        if self.status is None:
            return None
        there = sorted(self.archs) if self.status is LibraryStatus.PRESENT else []
        deep = self.depth is Depth.KERNELS
        return Observation(
            digest=Digest(f"sha256:{number}"),
            depth=self.depth,
            probe_version=1,
            evidence=EvidenceKind.WHEEL,
            deep_gemm=DeepGemm(
                status=self.status, headers=() if deep else tuple(f"impls/{arch}_gemm.cuh" for arch in there)
            ),
            kernels={arch: (Kernel(op="gemm"),) for arch in there} if deep else {},
        )


BUILDS = st.builds(
    Told,
    status=st.sampled_from([*LibraryStatus, LibraryStatus.PRESENT, LibraryStatus.PRESENT, None]),
    depth=st.sampled_from(Depth),
    archs=st.frozensets(st.sampled_from(ARCHS)),
    given_up=st.booleans(),
    prerelease=st.booleans(),
    day=st.integers(min_value=0, max_value=9),
)


def expected(history: Sequence[tuple[Build, Observation | None]], arch: str) -> list[Loss]:
    """The losses as the words of DESIGN §2 say them, by walking along the builds."""
    losses: list[Loss] = []
    last_good: str | None = None
    skipped: list[str] = []
    lasting = False
    for build, observation in history:
        answer = carries(observation, arch).answer if observation else Answer.UNTESTABLE
        if answer is Answer.UNTESTABLE:
            skipped += [] if build.marks else [build.id]
            continue
        if answer is Answer.GOOD:
            if lasting:
                losses[-1] = replace(losses[-1], regained_at=build.id)
            last_good, lasting = build.id, False
        elif lasting:
            losses[-1] = replace(losses[-1], last_bad=build.id)
        elif last_good:
            losses.append(Loss(last_good=last_good, lost_at=build.id, last_bad=build.id, untestable=tuple(skipped)))
            lasting = True
        skipped = []
    return losses


async def tell(history: History, told: Sequence[Told], *, arranged: bool) -> list[tuple[Build, Observation | None]]:
    seen = [(each.build(number), each.observation(number)) for number, each in enumerate(told)]
    builds = [build for build, _ in seen]
    await history.see(builds)
    for each, (build, observation) in zip(told, seen, strict=True):
        if observation:
            await history.record(observation, build)
        if each.given_up:
            await history.give_up(build, GIVEN_UP)
    if arranged:
        await history.arrange(builds)
        return seen
    return sorted(seen, key=lambda it: (it[0].published_at is not None, it[0].published_at))


@given(told=st.lists(BUILDS, max_size=12), arranged=st.booleans())
@settings(max_examples=120, deadline=None)
async def test_the_view_tells_the_losses_that_a_walk_along_the_builds_finds(
    *, told: list[Told], arranged: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        async with History.open(path, SteppingClock()) as history:
            seen = await tell(history, told, arranged=arranged)
        rows = query(path, "SELECT * FROM losses")
        archs = {row["arch"] for row in query(path, "SELECT DISTINCT arch FROM architectures")}
    for arch in ARCHS:
        found = [
            Loss(
                last_good=row["last_good"],
                lost_at=row["lost_at"],
                last_bad=row["last_bad"],
                regained_at=row["regained_at"],
                untestable=tuple(json.loads(row["untested"])),
            )
            for row in rows
            if row["arch"] == arch
        ]
        assert found == (expected(seen, arch) if arch in archs else [])


@given(st.lists(BUILDS, max_size=8))
@settings(max_examples=60, deadline=None)
async def test_the_verdicts_of_the_view_are_those_of_the_predicate(told: list[Told]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        async with History.open(path, SteppingClock()) as history:
            seen = await tell(history, told, arranged=True)
        rows = query(path, "SELECT build, arch, verdict, reason FROM latest_verdicts")
        archs = [row["arch"] for row in query(path, "SELECT DISTINCT arch FROM architectures")]
    answers = {(row["build"], row["arch"]): (row["verdict"], row["reason"]) for row in rows}
    wanted = {}
    for each, (build, observation) in zip(told, seen, strict=True):
        for arch in archs:
            if observation:
                wanted[build.id, arch] = carries(observation, arch).answer.value
            elif each.given_up:
                wanted[build.id, arch] = "untestable"
                assert answers[build.id, arch][1] == GIVEN_UP.reason
    assert {key: verdict for key, (verdict, _) in answers.items()} == wanted


async def test_a_tag_pushed_again_late_keeps_its_place_once_its_commit_is_known(tmp_path: Path) -> None:
    """A registry dates a tag by its last push: without the commits' order, a loss would seem to be regained."""
    path = tmp_path / "history.db"
    good, bad = frozenset({"sm120"}), frozenset[str]()
    told = [
        Told(status=LibraryStatus.PRESENT, depth=Depth.NAMES, archs=archs, given_up=False, prerelease=False, day=day)
        for archs, day in ((good, 0), (good, 8), (bad, 2), (bad, 3))
    ]
    async with History.open(path, SteppingClock()) as history:
        await tell(history, told, arranged=False)
        assert [row["regained_at"] for row in query(path, "SELECT * FROM losses")] == ["b01"]
        await history.arrange([each.build(number) for number, each in enumerate(told)])
    assert [(row["last_good"], row["lost_at"], row["regained_at"]) for row in query(path, "SELECT * FROM losses")] == [
        ("b01", "b02", None)
    ]


async def test_a_content_that_its_name_no_longer_has_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    told = Told(
        status=LibraryStatus.PRESENT, depth=Depth.NAMES, archs=frozenset(), given_up=False, prerelease=False, day=1
    )
    async with open_database(path) as database:
        history, queries = History(database, SteppingClock()), Queries(database, SteppingClock())
        await tell(history, [replace(told, archs=frozenset({"sm120"}), day=0), told], arranged=False)
        assert len((await queries.table(Subject.LOSSES, Filters(arch="sm120"))).rows) == 1
        repaired = replace(told.build(1), digest=Digest("sha256:again"))
        await history.see([told.build(0), repaired])
        assert (await queries.table(Subject.LOSSES, Filters(arch="sm120"))).rows == []
        states = await queries.table(Subject.BUILDS, Filters(build="b01"))
    assert [row[states.columns.index("state")] for row in states.rows] == ["superseded", "listed"]
