from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import Unavailable
from bisector.jobs.order import in_commit_order
from bisector.model import Build, Commit, CommitWheel, DependencyPin, Location, Platform, RemoteImage

START = datetime(2026, 7, 1, tzinfo=UTC)
PLATFORM = Platform("linux/amd64")


def commit(number: int) -> Commit:
    return Commit(
        sha=f"{number:040x}",
        parent=f"{number - 1:040x}",
        committed_at=START + timedelta(hours=number),
        title=f"change {number}",
    )


class Branch:
    """A ``CommitHistory`` of numbered commits, or one that does not answer."""

    def __init__(self, length: int, *, down: bool = False) -> None:
        self._commits = [commit(number) for number in range(length)]
        self._down = down
        self.asked = 0

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        self.asked += 1
        if self._down:
            raise Unavailable("the history does not answer")
        end = until or START + timedelta(days=1000)
        return [commit for commit in self._commits if start <= commit.committed_at <= end]

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        raise NotImplementedError

    async def commit(self, sha: str) -> Commit:
        raise NotImplementedError

    async def pin(self, sha: str) -> DependencyPin | None:
        raise NotImplementedError


def nightly(number: int, pushed: datetime | None, *, location: Location | None = None) -> Build:
    sha = f"{number:040x}"
    image = RemoteImage(registry="docker.io", repository="vllm/vllm-openai", reference=sha, platform=PLATFORM)
    return Build(
        id=f"nightly-{sha}",
        source="dockerhub:vllm/vllm-openai",
        spec=f"vllm/vllm-openai:nightly-{sha}",
        platform=PLATFORM,
        location=location or image,
        commit=sha,
        published_at=pushed,
    )


def numbers(builds: Sequence[Build]) -> list[int]:
    return [int(build.commit or "0", 16) for build in builds]


async def test_a_tag_pushed_again_goes_back_to_its_place() -> None:
    pushed = [START + timedelta(hours=number) for number in (10, 20, 30)]
    builds = [nightly(10, pushed[0]), nightly(30, pushed[2]), nightly(20, START + timedelta(hours=99))]
    ordered, note = await in_commit_order(builds, Branch(100))
    assert (numbers(ordered), note) == ([10, 20, 30], None)


async def test_a_tag_without_a_date_gets_that_of_its_commit() -> None:
    builds = [nightly(20, None), nightly(10, START + timedelta(hours=10)), nightly(30, START + timedelta(hours=30))]
    ordered, _ = await in_commit_order(builds, Branch(100))
    assert numbers(ordered) == [10, 20, 30]
    assert ordered[1].published_at == START + timedelta(hours=20)


async def test_a_build_whose_commit_is_not_on_the_branch_stays_by_its_date() -> None:
    builds = [nightly(10, START + timedelta(hours=10)), nightly(5000, START + timedelta(hours=15))]
    builds += [nightly(20, START + timedelta(hours=20))]
    ordered, _ = await in_commit_order(builds, Branch(100))
    assert numbers(ordered) == [10, 5000, 20]


async def test_without_an_answer_the_order_of_pushes_stays_and_is_said() -> None:
    builds = [nightly(20, START), nightly(10, START + timedelta(hours=1))]
    ordered, note = await in_commit_order(builds, Branch(100, down=True))
    assert numbers(ordered) == [20, 10]
    assert note
    assert "does not answer" in note


async def test_commits_themselves_are_in_order_already() -> None:
    branch = Branch(100)
    wheel = CommitWheel(commit="0" * 40, platform=PLATFORM)
    await in_commit_order([nightly(1, START, location=wheel)], branch)
    assert branch.asked == 0


@given(st.lists(st.integers(48, 99), unique=True, min_size=1, max_size=30))
async def test_any_order_of_pushes_gives_the_order_of_commits(pushed: list[int]) -> None:
    builds = [nightly(number, START + timedelta(days=5, hours=at)) for at, number in enumerate(pushed)]
    ordered, _ = await in_commit_order(builds, Branch(100))
    assert numbers(ordered) == sorted(pushed)
