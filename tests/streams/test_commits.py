from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from bisector.errors import UnknownBuild, UnknownSource
from bisector.model import Build, Commit, CommitWheel, DependencyPin, Platform
from bisector.streams.commits import CommitStream, Dates, Ends, Every, Span, parse_source
from tests.fakes.clock import SteppingClock

AMD64 = Platform("linux/amd64")
START = datetime(2026, 11, 20, tzinfo=UTC)


def commit(number: int, *, hours: float) -> Commit:
    return Commit(
        sha=f"{number:040x}",
        parent=f"{number - 1:040x}",
        committed_at=START + timedelta(hours=hours),
        title=f"Change {number}",
    )


class Branch:
    """A history in memory."""

    def __init__(self, *commits: Commit) -> None:
        self._commits = commits
        self.asked: list[tuple[datetime, datetime | None]] = []

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        names = [commit.sha for commit in self._commits]
        return self._commits[names.index(base) + 1 : names.index(head) + 1]

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        self.asked.append((start, until))
        return self._commits

    async def commit(self, sha: str) -> Commit:
        found = next((commit for commit in self._commits if commit.sha == sha), None)
        if found is None:
            raise UnknownBuild(sha)
        return found

    async def pin(self, sha: str) -> DependencyPin | None:
        return DependencyPin(repository=sha, revision=sha)


FOUR = [commit(1, hours=1), commit(2, hours=23), commit(3, hours=25), commit(4, hours=73)]


async def builds(
    branch: Branch, *, span: Span | None = None, every: Every = Every.COMMIT, variant: str | None = None
) -> Sequence[Build]:
    stream = CommitStream(
        branch,
        repository="vllm-project/vllm",
        platform=AMD64,
        clock=SteppingClock(),
        span=span,
        every=every,
        variant=variant,
    )
    assert stream.source == "commits:vllm-project/vllm"
    return await stream.builds()


def numbers(found: Sequence[Build]) -> list[int]:
    return [int(build.id, 16) for build in found]


async def test_a_base_that_is_not_there_is_an_unknown_build() -> None:
    with pytest.raises(UnknownBuild):
        await builds(Branch(*FOUR), span=Ends(base="f" * 40, head=FOUR[1].sha))


async def test_a_build_is_its_commits_wheel() -> None:
    [build] = await builds(Branch(FOUR[0]), variant="cu129")
    assert build == Build(
        id=FOUR[0].sha,
        source="commits:vllm-project/vllm",
        spec=f"commits:vllm-project/vllm@{FOUR[0].sha}",
        platform=AMD64,
        location=CommitWheel(commit=FOUR[0].sha, platform=AMD64, variant="cu129"),
        published_at=START + timedelta(hours=1),
        commit=FOUR[0].sha,
    )


async def test_without_a_span_the_last_sixty_days_are_meant() -> None:
    branch = Branch()
    assert await builds(branch) == []
    assert branch.asked == [(datetime(2026, 9, 30, 5, 31, tzinfo=UTC), None)]


async def test_a_span_by_dates_is_handed_on() -> None:
    branch = Branch(*FOUR)
    assert numbers(await builds(branch, span=Dates(since=START, until=START + timedelta(days=9)))) == [1, 2, 3, 4]
    assert branch.asked == [(START, START + timedelta(days=9))]


async def test_a_span_by_commits_has_both_ends() -> None:
    assert numbers(await builds(Branch(*FOUR), span=Ends(base=FOUR[0].sha, head=FOUR[2].sha))) == [1, 2, 3]
    assert numbers(await builds(Branch(*FOUR), span=Ends(base=FOUR[0].sha, head=FOUR[0].sha))) == [1]


async def test_one_commit_a_day_is_the_last_of_each() -> None:
    assert numbers(await builds(Branch(*FOUR), every=Every.DAY)) == [2, 3, 4]


async def test_one_commit_a_day_keeps_the_ends() -> None:
    span = Ends(base=FOUR[0].sha, head=FOUR[3].sha)
    assert numbers(await builds(Branch(*FOUR), span=span, every=Every.DAY)) == [1, 2, 3, 4]


async def test_a_clock_that_went_wrong_does_not_change_the_order() -> None:
    early = [commit(1, hours=30), commit(2, hours=2), commit(3, hours=40)]
    assert numbers(await builds(Branch(*early), every=Every.DAY)) == [2, 3]


def test_a_source_names_its_repository() -> None:
    assert parse_source("commits:vllm-project/vllm") == "vllm-project/vllm"


@pytest.mark.parametrize(
    "spelling", ["commits:", "commits:vllm", "commits:a/b/c", "commits:a/b\n", "commits:../b", "pypi:vllm"]
)
def test_what_names_no_repository_is_an_unknown_source(spelling: str) -> None:
    with pytest.raises(UnknownSource, match="names no repository"):
        parse_source(spelling)
