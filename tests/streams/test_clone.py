from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bisector.errors import ReversedRange, UnknownBuild, UsageError
from bisector.model import DependencyPin
from bisector.streams.clone import Clone

START = datetime(2026, 7, 30, tzinfo=UTC)
PIN_FILE = "cmake/external_projects/deepgemm.cmake"


def cmake(revision: str) -> str:
    return f"FetchContent_Declare(\n  deepgemm\n  GIT_REPOSITORY https://h/D.git\n  GIT_TAG {revision}\n)\n"


class Repo:
    """A real repository; each commit is an hour later than the one before."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._hours = 0
        directory.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        when = f"{START + timedelta(hours=self._hours):%Y-%m-%dT%H:%M:%SZ}"
        own = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull}
        own |= {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", "-C", self.directory, *arguments],  # noqa: S607 - as the room finds it
            env={**os.environ, **own},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, title: str) -> str:
        self._hours += 1
        self.git("commit", "--quiet", "--allow-empty", "--message", f"{title}\n\nSigned-off-by: A")
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, text: str) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_text(text, encoding="utf-8")
        self.git("add", path)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "a clone;touch x")


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_directory_without_a_repository_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no git repository") as caught:
        await Clone(tmp_path).commit("0" * 40)
    assert "not a git repository" in caught.value.hint
    with pytest.raises(UsageError, match="is no git repository"):
        await Clone(tmp_path / "nowhere").since(START)


async def test_without_git_nothing_can_be_asked(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = repo.commit("One")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="git cannot be run") as caught:
        await Clone(repo.directory).commit(sha)
    assert "Install git" in caught.value.hint


@pytest.mark.parametrize("spelling", ["main", "--output=x", "HEAD~1", "", "abc", "$(touch x)"])
async def test_what_is_no_commit_does_not_reach_git(repo: Repo, spelling: str) -> None:
    repo.commit("One")
    with pytest.raises(UnknownBuild, match="is no commit"):
        await Clone(repo.directory).commit(spelling)
    with pytest.raises(UnknownBuild, match="is no commit"):
        await Clone(repo.directory).pin(spelling)


async def test_a_commit_that_is_not_there_asks_for_a_fetch(repo: Repo) -> None:
    sha = repo.commit("One")
    for ask in (Clone(repo.directory).commit("f" * 40), Clone(repo.directory).between(sha, "f" * 40)):
        with pytest.raises(UnknownBuild, match="has no commit ffffffffffff") as caught:
            await ask
        assert "git fetch" in caught.value.hint
    with pytest.raises(UnknownBuild, match="has no commit ffffffffffff"):
        await Clone(repo.directory).pin("f" * 40)


async def test_a_branch_named_like_a_commit_is_none(repo: Repo) -> None:
    repo.commit("One")
    repo.git("branch", "deadbee")
    with pytest.raises(UnknownBuild, match="has no commit deadbee"):
        await Clone(repo.directory).commit("deadbee")


@pytest.mark.parametrize("branch", ["gone", "--upload-pack=x", "-n", "main; touch x", "\n"])
async def test_a_branch_that_is_not_there_is_an_unknown_build(repo: Repo, branch: str) -> None:
    repo.commit("One")
    with pytest.raises(UnknownBuild, match="has no branch"):
        await Clone(repo.directory, branch=branch).since(START)
    assert not list(repo.directory.parent.rglob("x"))


async def test_an_empty_repository_has_no_branch(repo: Repo) -> None:
    with pytest.raises(UnknownBuild, match="has no branch 'main'"):
        await Clone(repo.directory).since(START)


async def test_the_wrong_way_round_and_two_branches_are_told_apart(repo: Repo) -> None:
    fork, head = repo.commit("Fork"), repo.commit("Head")
    repo.git("checkout", "--quiet", "-b", "other", fork)
    beside = repo.commit("Beside")
    with pytest.raises(ReversedRange):
        await Clone(repo.directory).between(head, fork)
    with pytest.raises(UsageError, match="does not lie on the branch"):
        await Clone(repo.directory).between(beside, head)


# --- commits ---------------------------------------------------------------------------------------------------------


async def test_between_follows_first_parents_oldest_first(repo: Repo) -> None:
    base = repo.commit("Base (#1)")
    repo.git("checkout", "--quiet", "-b", "feature")
    beside = repo.commit("Beside")
    repo.git("checkout", "--quiet", "main")
    middle = repo.commit("Middle (#2)")
    repo.git("merge", "--quiet", "--no-ff", "--message", "Merge (#3)", "feature")
    head = repo.git("rev-parse", "HEAD")
    found = await Clone(repo.directory).between(base[:9], head[:9])
    assert [(commit.sha, commit.parent) for commit in found] == [(middle, base), (head, middle)]
    assert [(commit.title, commit.pull_request) for commit in found] == [("Middle (#2)", 2), ("Merge (#3)", 3)]
    assert found[0].committed_at == START + timedelta(hours=3)
    assert beside not in {commit.sha for commit in found}
    assert await Clone(repo.directory).between(head, head) == ()
    assert (await Clone(repo.directory).commit(base)).parent is None


async def test_since_takes_the_branch_that_is_kept_up_to_date(repo: Repo, tmp_path: Path) -> None:
    shas = [repo.commit(f"Change {number}") for number in range(5)]
    copy = Repo(tmp_path / "copy")
    copy.git("fetch", "--quiet", str(repo.directory), "main:refs/remotes/origin/main")
    copy.git("update-ref", "refs/heads/main", shas[1])
    clone = Clone(copy.directory)
    assert [commit.sha for commit in await clone.since(START)] == shas
    assert [commit.sha for commit in await Clone(copy.directory, branch="main").since(START)] == shas[:2]
    within = await clone.since(START + timedelta(hours=2), START + timedelta(hours=4))
    assert [commit.sha for commit in within] == shas[1:4]
    assert await clone.since(START + timedelta(days=9)) == []


async def test_the_users_own_settings_do_not_show(repo: Repo) -> None:
    sha = repo.commit("Ünïcode 🏗️ (#7)")
    for name, value in {"log.showSignature": "true", "color.ui": "always", "i18n.logOutputEncoding": "latin1"}.items():
        repo.git("config", name, value)
    commit = await Clone(repo.directory).commit(sha)
    assert (commit.title, commit.pull_request) == ("Ünïcode 🏗️ (#7)", 7)


async def test_a_hooks_environment_does_not_lead_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = repo.commit("Here")
    other = Repo(tmp_path / "other")
    other.commit("There")
    monkeypatch.setenv("GIT_DIR", str(other.directory / ".git"))
    assert (await Clone(repo.directory).commit(sha)).title == "Here"


# --- the pin ---------------------------------------------------------------------------------------------------------


async def test_the_pin_of_each_commit_is_its_own(repo: Repo) -> None:
    bare = repo.commit("Nothing yet")
    repo.write("tools/install_deepgemm.sh", 'DEEPGEMM_GIT_REPO="https://h/D.git"\nDEEPGEMM_GIT_REF="abc123"\n')
    script = repo.commit("Script")
    repo.write(PIN_FILE, cmake("a6b593d2"))
    first = repo.commit("CMake")
    repo.write(PIN_FILE, cmake("f5a76426"))
    second = repo.commit("Bump")
    (repo.directory / PIN_FILE).write_text("edited in the work tree", encoding="utf-8")
    clone = Clone(repo.directory)
    assert await clone.pin(bare) is None
    assert await clone.pin(script) == DependencyPin(repository="https://h/D.git", revision="abc123")
    assert await clone.pin(first) == DependencyPin(repository="https://h/D.git", revision="a6b593d2")
    assert await clone.pin(second) == DependencyPin(repository="https://h/D.git", revision="f5a76426")
