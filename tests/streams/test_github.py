from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from bisector.errors import (
    ConfigError,
    RateLimited,
    ReversedRange,
    Unavailable,
    UnknownBuild,
    UnknownSource,
    Unreadable,
    UsageError,
)
from bisector.http import Http, Patience
from bisector.model import Commit, DependencyPin
from bisector.streams.github import GitHub
from tests.fakes.pages import Asked, Page, Pages, as_json, serving

REPO = "/repos/vllm-project/vllm"
START = datetime(2026, 7, 30, tzinfo=UTC)
TOKEN = "ghp_sEcReT0123456789"  # noqa: S105 - invented


@pytest.fixture
def api() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=Patience(first_wait=0.001, longest_wait=0.01, jitter=0.001)) as http:
        yield http


def sha(number: int) -> str:
    return f"{number:040x}"


def entry(number: int, *parents: int, title: str | None = None, when: datetime | None = None) -> dict[str, Any]:
    moment = when or START + timedelta(hours=number)
    person = {"name": "GitHub", "email": "noreply@github.com", "date": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    message = f"{title or f'Change {number} (#{number + 50_000})'}\n\nSigned-off-by: A"
    return {
        "sha": sha(number),
        "node_id": "x",
        "commit": {"author": person, "committer": person, "message": message, "comment_count": 0},
        "parents": [{"sha": sha(parent), "url": "x"} for parent in parents or (number - 1,)],
    }


def comparison(entries: Sequence[dict[str, Any]], *, status: str = "ahead", total: int | None = None) -> dict[str, Any]:
    return {
        "status": status,
        "total_commits": len(entries) if total is None else total,
        "commits": entries,
        "files": [],
    }


def paged(items: Sequence[dict[str, Any]], body: Callable[[Sequence[dict[str, Any]]], Any]) -> Callable[[Asked], Page]:
    def answer(asked: Asked) -> Page:
        page, size = int(asked.query.get("page", "1")), int(asked.query["per_page"])
        shown = items[(page - 1) * size : page * size]
        links = [f'<?{urlencode({**asked.query, "page": 1})}>; rel="first"']
        if page * size < len(items):
            links.append(f'<{asked.path}?{urlencode({**asked.query, "page": page + 1})}>; rel="next"')
        return as_json(body(shown), headers={"Link": ", ".join(links)})

    return answer


def github(http: Http, api: Pages, *, token: str | None = None) -> GitHub:
    return GitHub(http, repository="vllm-project/vllm", api_base=api.url, token=token)


def compare(base: str, head: str) -> str:
    return f"{REPO}/compare/{base}...{head}"


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_commit_that_is_not_there_is_an_unknown_build(http: Http, api: Pages) -> None:
    with pytest.raises(UnknownBuild, match="vllm-project/vllm has no commit 000000000000, or none 000000000000"):
        await github(http, api).between(sha(1), sha(2))
    with pytest.raises(UnknownBuild, match="no repository vllm-project/vllm with a branch 'main'"):
        await github(http, api).since(START)
    api.at[f"{REPO}/commits/{sha(1)}"] = as_json({"message": "No commit found for SHA"}, status=422)
    with pytest.raises(UnknownBuild, match="has no commit 000000000000"):
        await github(http, api).commit(sha(1))
    with pytest.raises(UnknownBuild, match="has no commit 000000000000"):
        await github(http, api).pin(sha(1))


@pytest.mark.parametrize("spelling", ["main", "abc", "../../user", "0" * 41, "--help", "", "0000000...1111111"])
async def test_what_is_no_commit_is_not_asked_for(http: Http, api: Pages, spelling: str) -> None:
    with pytest.raises(UnknownBuild, match="is no commit"):
        await github(http, api).commit(spelling)
    with pytest.raises(UnknownBuild, match="is no commit"):
        await github(http, api).between(sha(1), spelling)
    with pytest.raises(UnknownBuild, match="is no commit"):
        await github(http, api).pin(spelling)
    assert api.asked == []


async def test_a_spent_rate_limit_names_the_time_it_is_renewed(http: Http, api: Pages) -> None:
    spent = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1785412800"}
    api.at[f"{REPO}/commits"] = as_json({"message": "API rate limit exceeded"}, status=403, headers=spent)
    with pytest.raises(RateLimited, match="answers no more requests before 2026-07-30 12:00:00 UTC") as caught:
        await github(http, api).since(START)
    assert "token" in caught.value.hint
    assert "--repo" in caught.value.hint
    assert len(api.asked) == 1


@pytest.mark.parametrize("reset", ["", "soon", "9" * 30])
async def test_a_rate_limit_without_a_time_is_still_one(http: Http, api: Pages, reset: str) -> None:
    spent = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    api.at[f"{REPO}/commits"] = Page(status=403, headers=spent)
    with pytest.raises(RateLimited, match="no more requests for now"):
        await github(http, api).since(START)


async def test_the_secondary_rate_limit_is_one_too(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits"] = Page(status=403, headers={"retry-after": "60", "x-ratelimit-remaining": "4000"})
    with pytest.raises(RateLimited, match="asks to wait 60 s"):
        await github(http, api).since(START)
    api.at[f"{REPO}/commits"] = Page(status=429, headers={"retry-after": "3600"})
    with pytest.raises(RateLimited, match="answered 429"):
        await github(http, api).since(START)


async def test_another_refusal_is_unavailable(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits"] = Page(status=403, headers={"x-ratelimit-remaining": "9"})
    with pytest.raises(Unavailable, match="answered 403 for vllm-project/vllm") as caught:
        await github(http, api).since(START)
    assert not isinstance(caught.value, RateLimited)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b"[" * 100_000,
        b'[{"sha": "' + b"0" * 40 + b'"}]',
        b'[{"sha": "'
        + b"0" * 40
        + b'", "parents": [], "commit": {"message": "", "committer": {"date": "yesterday"}}}]',
        b'[{"sha": "' + b"0" * 40 + b'", "parents": [], "commit": {"message": "", "committer": null}}]',
    ],
)
async def test_an_answer_of_another_form_is_unreadable(http: Http, api: Pages, body: bytes) -> None:
    api.at[f"{REPO}/commits"] = Page(body=body)
    with pytest.raises(Unreadable, match="in a form that is not GitHub's"):
        await github(http, api).since(START)


@pytest.mark.parametrize("name", ["", "x" * 40, "0" * 39, "0" * 41])
async def test_a_commit_of_another_name_is_unreadable(http: Http, api: Pages, name: str) -> None:
    api.at[f"{REPO}/commits"] = as_json([entry(1) | {"sha": name}])
    with pytest.raises(Unreadable, match="not 40 hexadecimal digits"):
        await github(http, api).since(START)
    api.at[f"{REPO}/commits/{sha(2)}"] = as_json(entry(1))
    with pytest.raises(Unreadable, match="describes another commit"):
        await github(http, api).commit(sha(2))


async def test_the_next_page_is_not_fetched_from_another_host(http: Http, api: Pages) -> None:
    link = {"Link": '<http://127.0.0.1:1/repos?page=2>; rel="next"'}
    api.at[f"{REPO}/commits"] = as_json([entry(1)], headers=link)
    with pytest.raises(Unreadable, match="for the next page"):
        await github(http, api, token=TOKEN).since(START)


async def test_a_range_of_many_thousand_commits_is_refused_at_its_first_page(http: Http, api: Pages) -> None:
    api.at[compare(sha(0), sha(9))] = as_json(comparison([entry(1)], total=20_000))
    with pytest.raises(UsageError, match="More than 10,000 commits lie between"):
        await github(http, api).between(sha(0), sha(9))
    assert len(api.asked) == 1


async def test_pages_without_end_are_left(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits"] = as_json([], headers={"Link": '<?per_page=100>; rel="next"'})
    with pytest.raises(Unreadable, match="without end"):
        await github(http, api).since(START)
    assert len(api.asked) == 101


async def test_commits_in_a_circle_lead_nowhere(http: Http, api: Pages) -> None:
    api.at[compare(sha(7), sha(2))] = as_json(comparison([entry(1, 2), entry(2, 1)]))
    with pytest.raises(UsageError, match="does not lie on the branch"):
        await github(http, api).between(sha(7), sha(2))


async def test_the_wrong_way_round_and_two_branches_are_told_apart(http: Http, api: Pages) -> None:
    api.at[compare(sha(5), sha(1))] = as_json(comparison([], status="behind"))
    with pytest.raises(ReversedRange):
        await github(http, api).between(sha(5), sha(1))
    api.at[compare(sha(5), sha(8))] = as_json(comparison([entry(7, 3), entry(8)], status="diverged"))
    with pytest.raises(UsageError, match="000000000000 does not lie on the branch"):
        await github(http, api).between(sha(5), sha(8))
    api.at[compare(sha(5), sha(5))] = as_json(comparison([], status="identical"))
    assert await github(http, api).between(sha(5), sha(5)) == ()


# --- the token -------------------------------------------------------------------------------------------------------


async def test_the_token_goes_to_its_host_and_into_no_log(
    http: Http, api: Pages, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving() as elsewhere:
        elsewhere.at["/moved"] = as_json([])
        api.at[f"{REPO}/commits"] = Page(status=302, headers={"Location": f"{elsewhere.url}/moved"})
        assert await github(http, api, token=f" {TOKEN}\n").since(START) == []
        assert api.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert "authorization" not in elsewhere.asked[0].headers
    assert caplog.records
    assert TOKEN not in caplog.text


async def test_without_a_token_nothing_is_shown(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits"] = as_json([])
    await github(http, api).since(START)
    assert "authorization" not in api.asked[0].headers


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünicode", "\x7f"])
async def test_what_is_no_token_is_refused_without_showing_it(http: Http, api: Pages, token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        github(http, api, token=token)
    assert token not in caught.value.message + caught.value.hint


async def test_a_token_that_is_not_accepted_is_a_matter_of_configuration(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits"] = as_json({"message": "Bad credentials"}, status=401)
    with pytest.raises(ConfigError, match="does not accept the GitHub token") as caught:
        await github(http, api, token=TOKEN).since(START)
    assert TOKEN not in caught.value.message
    with pytest.raises(Unavailable, match="answered 401"):
        await github(http, api).since(START)


@pytest.mark.parametrize("repository", ["vllm", "a/b/c", "a/b?x", "../b", "a/b\n", ""])
async def test_what_is_no_repository_is_refused(http: Http, api: Pages, repository: str) -> None:
    with pytest.raises(UnknownSource):
        GitHub(http, repository=repository, api_base=api.url)


# --- commits ---------------------------------------------------------------------------------------------------------


async def test_between_pages_through_and_keeps_the_first_parents(http: Http, api: Pages) -> None:
    merged = [entry(900, 100), entry(901, 900)]
    entries = [entry(1, 0), *(entry(number) for number in range(2, 250)), *merged, entry(250, 249, 901)]
    api.at[compare(sha(0), sha(250))] = paged(entries, comparison)
    found = await github(http, api).between(sha(0), sha(250))
    assert [commit.sha for commit in found] == [sha(number) for number in range(1, 251)]
    assert [asked.query for asked in api.asked] == [{"per_page": "100", "page": str(page)} for page in (1, 2, 3)]


async def test_abbreviated_commits_are_understood(http: Http, api: Pages) -> None:
    base, head = "a" * 40, "b" * 40
    described = entry(1) | {"sha": head, "parents": [{"sha": base}]}
    api.at[compare(base[:9], head[:9])] = as_json(comparison([described]))
    assert [commit.sha for commit in await github(http, api).between(base[:9].upper(), head[:9])] == [head]


async def test_a_commit_has_its_title_pull_request_and_parent(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits/{sha(2)}"] = as_json(entry(2, title='Revert "[Model] Kimi\x1b[31m K3 (#50000)" (#50100)'))
    assert await github(http, api).commit(sha(2)) == Commit(
        sha=sha(2),
        parent=sha(1),
        committed_at=START + timedelta(hours=2),
        title='Revert "[Model] Kimi [31m K3 (#50000)" (#50100)',
        pull_request=50100,
    )


@pytest.mark.parametrize("title", ["No number", "(#12) is not at the end", "(#)", "(#99999999999999999999)"])
async def test_a_title_without_a_pull_request_has_none(http: Http, api: Pages, title: str) -> None:
    api.at[f"{REPO}/commits/{sha(2)}"] = as_json(entry(2, title=title))
    assert (await github(http, api).commit(sha(2))).pull_request is None


async def test_since_is_oldest_first_and_asks_for_the_branch(http: Http, api: Pages) -> None:
    entries = [entry(number) for number in range(150, 0, -1)]
    api.at[f"{REPO}/commits"] = paged(entries, list)
    found = await github(http, api).since(START)
    assert [commit.sha for commit in found] == [sha(number) for number in range(1, 151)]
    assert api.asked[0].query == {"sha": "main", "since": "2026-07-30T00:00:00Z", "per_page": "100"}
    assert len(api.asked) == 2


async def test_a_merged_commit_at_the_end_of_a_range_is_not_taken_for_the_branch(http: Http, api: Pages) -> None:
    beside = entry(900, 1, when=START + timedelta(hours=9))
    api.at[f"{REPO}/commits"] = as_json([beside, *(entry(number) for number in range(5, 0, -1))])
    found = await github(http, api).since(START, START + timedelta(hours=12))
    assert [commit.sha for commit in found] == [sha(number) for number in range(1, 6)]
    assert api.asked[0].query["until"] == "2026-07-30T12:00:00Z"


# --- the pin ---------------------------------------------------------------------------------------------------------

CMAKE = """
  FetchContent_Declare(deepgemm SOURCE_DIR ${DEEPGEMM_SRC_DIR})
  # GIT_TAG old
  FetchContent_Declare(
    deepgemm
    GIT_REPOSITORY https://github.com/vllm-project/DeepGEMM.git
    GIT_TAG f5a764260000000000000000000000000000aaaa  # a fork (Kimi)
    GIT_PROGRESS TRUE
  )
"""
SCRIPT = """#!/bin/bash
# Keep DEEPGEMM_GIT_REF in sync
DEEPGEMM_GIT_REPO="https://github.com/deepseek-ai/DeepGEMM.git"
DEEPGEMM_GIT_REF="594953acce41793ae00a1233eb516044d604bcb6"
            DEEPGEMM_GIT_REF="$2"
"""
FORK = DependencyPin(
    repository="https://github.com/vllm-project/DeepGEMM.git", revision="f5a764260000000000000000000000000000aaaa"
)
UPSTREAM = DependencyPin(
    repository="https://github.com/deepseek-ai/DeepGEMM.git", revision="594953acce41793ae00a1233eb516044d604bcb6"
)
IN_CMAKE = f"{REPO}/contents/cmake/external_projects/deepgemm.cmake"
IN_SCRIPT = f"{REPO}/contents/tools/install_deepgemm.sh"


def contents(text: str, **other: str) -> Page:
    encoded = base64.encodebytes(text.encode()).decode()
    return as_json({"type": "file", "encoding": "base64", "content": encoded, "size": 1} | other)


async def test_the_pin_is_read_from_cmake(http: Http, api: Pages) -> None:
    api.at |= {IN_CMAKE: contents(CMAKE), IN_SCRIPT: contents(SCRIPT)}
    assert await github(http, api).pin(sha(1)) == FORK
    assert api.asked[0].query == {"ref": sha(1)}


async def test_before_cmake_the_pin_is_read_from_the_script(http: Http, api: Pages) -> None:
    api.at[IN_SCRIPT] = contents(SCRIPT)
    assert await github(http, api).pin(sha(1)) == UPSTREAM


async def test_a_pin_behind_a_variable_is_looked_for_in_the_other_file(http: Http, api: Pages) -> None:
    behind = CMAKE.replace("f5a764260000000000000000000000000000aaaa", "${DEEPGEMM_TAG}")
    api.at |= {IN_CMAKE: contents(behind), IN_SCRIPT: contents(SCRIPT)}
    assert await github(http, api).pin(sha(1)) == UPSTREAM
    del api.at[IN_SCRIPT]
    assert await github(http, api).pin(sha(1)) is None


async def test_a_commit_without_either_file_has_no_pin(http: Http, api: Pages) -> None:
    api.at[f"{REPO}/commits/{sha(1)}"] = as_json(entry(1))
    assert await github(http, api).pin(sha(1)) is None


@pytest.mark.parametrize("other", [{"encoding": "none"}, {"content": "a"}, {"content": "é"}])
async def test_a_damaged_file_is_unreadable(http: Http, api: Pages, other: dict[str, str]) -> None:
    api.at[IN_CMAKE] = contents(CMAKE, **other)
    with pytest.raises(Unreadable, match=r"deepgemm\.cmake"):
        await github(http, api).pin(sha(1))
