from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.lab import commits
from tests.lab.scenario import Scenario
from tests.lab.website import Answer as Refusal
from tests.nightlies.conftest import Bisector, Start

LAST_GOOD = f"nightly-{commits.HEAD_OF_0730}"
FIRST_BAD = f"nightly-{commits.HEAD_OF_0731}"
BACK = f"nightly-{commits.HEAD_OF_0813}"


def pair(found: dict[str, dict[str, str]]) -> tuple[str, str]:
    return found["last_good"]["id"], found["first_bad"]["id"]


def test_the_nightly_the_commit_and_the_pin(start: Start) -> None:
    bisector = start()
    answer = bisector.find("--commits")
    found = answer.json
    assert answer.exit_code == 1
    assert (found["outcome"], pair(found)) == ("found", (LAST_GOOD, FIRST_BAD))
    assert found["losses"][-1]["regained_at"] == BACK
    assert found["last_good"]["pin"] == f"vllm/vllm-openai@{bisector.lab.night('2026-07-30').digest}"
    assert found["gate"] == "crash"
    handed = found["commits"]
    assert (handed["culprit"], handed["parent"]) == (commits.CULPRIT, commits.LAST_GOOD)
    assert (handed["outcome"], handed["pull_request"]) == ("found", 50000)
    assert handed["commits"] == 23
    assert handed["pin"]["before"]["repository"].startswith("https://github.com/deepseek-ai/DeepGEMM")
    assert handed["pin"]["after"]["repository"].startswith("https://github.com/vllm-project/DeepGEMM")
    assert handed["pin"]["before"]["revision"].startswith("a6b593d2")
    assert handed["pin"]["after"]["revision"].startswith("f5a76426")

    again = bisector.find("--commits").json
    assert again["cost"]["probes"] == 0
    assert again["commits"]["culprit"] == commits.CULPRIT


def test_both_builds_of_the_answer_are_read_from_the_images_themselves(start: Start) -> None:
    bisector = start()
    bisector.find()
    asked = [request.path for request in bisector.lab.front.site.requests]
    for day in ("2026-07-30", "2026-07-31"):
        assert any(bisector.lab.night(day).platforms["linux/amd64"] in path for path in asked)
    assert not any(bisector.lab.night("2026-08-05").platforms["linux/amd64"] in path for path in asked)


def test_commits_without_wheels_give_a_range_and_no_guess(start: Start) -> None:
    line = [commit.sha for commit in commits.history()]
    at = line.index(commits.CULPRIT)
    missing = frozenset(line[at : at + 2])
    handed = start(Scenario(without_wheels=missing)).find("--commits").json["commits"]
    assert handed["outcome"] == "found-between"
    assert handed["culprit"] is None
    assert handed["parent"] == commits.LAST_GOOD
    assert [suspect["sha"] for suspect in handed["suspects"]] == line[at : at + 3]


def test_two_commits_without_wheels_elsewhere_do_not_matter(start: Start) -> None:
    line = [commit.sha for commit in commits.history()]
    at = line.index(commits.CULPRIT)
    handed = start(Scenario(without_wheels=frozenset({line[at - 3], line[at + 2]}))).find("--commits").json["commits"]
    assert (handed["culprit"], handed["parent"]) == (commits.CULPRIT, commits.LAST_GOOD)


def test_a_stale_nightly_is_called_stale_and_the_next_one_is_the_first_bad(start: Start) -> None:
    bisector = start(Scenario(stale=date(2026, 7, 31)))
    answer = bisector.find("--commits")
    found = answer.json
    assert pair(found) == (FIRST_BAD, bisector.lab.night("2026-08-01").tag)
    assert any(note.startswith(f"{FIRST_BAD} is stale") for note in found["notes"])
    # The stale image carries the wheel of the night before, so the commits begin there.
    assert (found["commits"]["culprit"], found["commits"]["parent"]) == (commits.CULPRIT, commits.LAST_GOOD)
    seen = bisector("inspect", f"vllm/vllm-openai:{FIRST_BAD}", "--json").json
    assert seen["commit"]["match"] is False
    assert seen["commit"]["tag"] == commits.HEAD_OF_0731


def test_a_tag_pushed_again_and_one_without_a_date_keep_their_places(start: Start) -> None:
    bisector = start(Scenario(repushed=date(2026, 7, 25), undated=date(2026, 8, 6)))
    found = bisector.find("--since", "2026-07-19").json
    assert pair(found) == (LAST_GOOD, FIRST_BAD)
    assert len(found["losses"]) == 1


def test_purged_tags_known_only_to_the_history_are_still_searched(start: Start) -> None:
    bisector = start(Scenario(keep=14, as_of=datetime(2026, 8, 1, 23, tzinfo=UTC)))
    before = bisector("builds", "--json").json["builds"]
    assert LAST_GOOD in {build["id"] for build in before}
    bisector.lab.move_to(datetime(2026, 8, 16, 23, tzinfo=UTC))
    answer = bisector.find()
    assert pair(answer.json) == (LAST_GOOD, FIRST_BAD)
    entry = next(entry for entry in answer.json["timeline"] if entry["id"] == LAST_GOOD)
    assert entry["marks"] == ["gone"]
    digest = bisector.lab.night("2026-07-30").digest
    assert bisector("check", f"vllm/vllm-openai@{digest}", "--arch", "sm120").exit_code == 0


def test_a_purged_stream_that_nobody_remembers_says_how_far_it_looked(start: Start) -> None:
    bisector = start(Scenario(keep=14, as_of=datetime(2026, 8, 11, 23, tzinfo=UTC)))
    answer = bisector.find()
    assert (answer.exit_code, answer.json["outcome"]) == (3, "inconclusive")
    assert "12" in answer.json["reason"]


def test_main_is_searched_without_docker_hub(start: Start) -> None:
    bisector = start()
    arguments = ("--source", "commits:vllm-project/vllm", "--good", "2026-07-01", "--bad", "2026-08-05")
    # 2026-07-01 is before the kernels came on 07-02, so that end does not hold; a day later it does.
    assert bisector.find(*arguments).exit_code == 3
    found = bisector.find("--source", "commits:vllm-project/vllm", "--good", "2026-07-03", "--bad", "2026-08-05").json
    assert pair(found) == (commits.LAST_GOOD, commits.CULPRIT)
    assert found["strategy"] == "bisect"
    assert not bisector.lab.hub.site.requests
    by_day = bisector.find(
        *("--source", "commits:vllm-project/vllm", "--good", "2026-07-20", "--bad", "2026-08-05", "--every", "day")
    ).json
    assert by_day["strategy"] == "sweep"
    assert by_day["outcome"] == "found"
    assert len(by_day["timeline"]) == 17


def test_when_github_is_down_the_builds_are_found_and_the_commits_are_a_note(start: Start) -> None:
    bisector = start()
    bisector.lab.github.site.interrupt(Refusal(status=500), times=50)
    answer = bisector.find("--commits", "--since", "2026-07-25")
    assert answer.exit_code == 1
    assert pair(answer.json) == (LAST_GOOD, FIRST_BAD)
    assert answer.json["commits"] is None
    assert any("commits could not be searched" in note for note in answer.json["notes"])


def test_a_family_that_stopped_says_so(start: Start) -> None:
    bisector = start(Scenario(cu130=True))
    answer = bisector.find("--source", "dockerhub:vllm/vllm-openai?family=cu130-nightly")
    assert any("2026-04-2" in note and "discontinued" in note for note in answer.json["notes"])


def test_an_unknown_family_and_an_unknown_tag_are_mistakes_in_the_request(start: Start) -> None:
    bisector = start()
    assert bisector.find("--source", "dockerhub:vllm/vllm-openai?family=cu999-nightly").exit_code == 2
    assert bisector("check", f"vllm/vllm-openai:nightly-{'0' * 40}", "--arch", "sm120").exit_code == 2


def test_a_commit_wheel_index_that_is_not_there_leaves_the_images(start: Start, tmp_path: Path) -> None:
    bisector = start(Scenario(first=date(2026, 7, 29), last=date(2026, 8, 1), without_wheels=_heads()))
    found = bisector.find().json
    assert pair(found) == (LAST_GOOD, FIRST_BAD)
    handed = bisector.find("--commits", db="other.db").json["commits"]
    assert handed["culprit"] == commits.CULPRIT
    assert tmp_path.exists()


def _heads() -> frozenset[str]:
    return frozenset(commits.at_night(date(2026, 7, 29 + day)).sha for day in range(3)) | {
        commits.at_night(date(2026, 8, 1)).sha
    }


@pytest.mark.parametrize("spelling", ["digest", "tag"])
def test_verify_reads_to_the_end_and_gives_the_same_answer(start: Start, spelling: str) -> None:
    bisector = start(Scenario(first=date(2026, 7, 30), last=date(2026, 7, 31)))
    night = bisector.lab.night("2026-07-30")
    build = f"vllm/vllm-openai@{night.digest}" if spelling == "digest" else f"vllm/vllm-openai:{night.tag}"
    quick = bisector("inspect", build, "--json").json
    whole = bisector("inspect", build, "--verify", "--json", db="verified.db").json
    assert quick["kernels"] == whole["kernels"]
    assert quick["build"]["digest"] == whole["build"]["digest"] == night.platforms["linux/amd64"]
    assert whole["cost"]["bytes"] >= quick["cost"]["bytes"]


def test_any_registry_is_a_stream(start: Start) -> None:
    bisector: Bisector = start(Scenario(first=date(2026, 7, 29), last=date(2026, 8, 1)))
    host = bisector.lab.registry.url.removeprefix("http://")
    found = bisector.find("--source", f"registry:{host}/vllm/vllm-openai?tags=nightly-{{commit}}").json
    assert pair(found) == (LAST_GOOD, FIRST_BAD)
