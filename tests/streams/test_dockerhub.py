from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bisector.errors import RateLimited, Unavailable, UnknownBuild, UnknownSource, Unreadable
from bisector.http import Http, Patience
from bisector.model import CommitWheel, Platform, RemoteImage
from bisector.streams.dockerhub import DockerHubStream, HubSource, parse_source
from tests.fakes.pages import Asked, Page, Pages, as_json, serving

AMD64, ARM64 = Platform("linux/amd64"), Platform("linux/arm64")
PATH = "/v2/namespaces/vllm/repositories/vllm-openai/tags"
QUICK = Patience(first_wait=0.001, longest_wait=0.01, jitter=0.001)


@pytest.fixture
def hub() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=QUICK) as http:
        yield http


def commit(digit: str) -> str:
    return digit * 40


def digest(digit: str) -> str:
    return f"sha256:{digit * 64}"


def tag(
    name: str, *, pushed: str | None = "2026-07-30T05:12:44.128Z", index: str = "1", **other: Any
) -> dict[str, Any]:
    images = [
        {"architecture": "unknown", "os": "unknown", "digest": digest("f")},
        {"architecture": "arm64", "os": "linux", "variant": "v8", "digest": digest("c"), "size": 9},
        {"architecture": "amd64", "os": "linux", "digest": digest(index), "size": 9, "status": "active"},
    ]
    described = {"name": name, "digest": digest("a"), "images": images, "tag_last_pushed": pushed, "last_updated": None}
    return described | {"full_size": 10_000_000_000, "id": 1} | other


def lists(*tags: dict[str, Any], following: str | None = None) -> Page:
    return as_json({"count": len(tags), "next": following, "previous": None, "results": tags})


def stream(
    http: Http, hub: Pages, *, family: str = "nightly", platform: Platform = AMD64, witness: bool = True
) -> DockerHubStream:
    return DockerHubStream(http, family=family, platform=platform, api_base=hub.url, witness=witness)


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_repository_that_is_not_there_is_an_unknown_build(http: Http, hub: Pages) -> None:
    with pytest.raises(UnknownBuild, match=r"no repository 'vllm/vllm-openai' on 127\.0\.0\.1"):
        await stream(http, hub).builds()


async def test_a_family_without_tags_is_an_unknown_build(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}"))
    with pytest.raises(UnknownBuild, match="has no tags cu999-nightly-<commit>"):
        await stream(http, hub, family="cu999-nightly").builds()


@pytest.mark.parametrize("status", [401, 403, 418])
async def test_a_refusal_is_unavailable(http: Http, hub: Pages, status: int) -> None:
    hub.at[PATH] = Page(status=status)
    with pytest.raises(Unavailable, match=f"answered {status} for the tags of vllm/vllm-openai"):
        await stream(http, hub).builds()


async def test_a_long_wait_asked_for_is_not_waited_for(http: Http, hub: Pages) -> None:
    hub.at[PATH] = Page(status=429, headers={"Retry-After": "3600"})
    with pytest.raises(RateLimited, match="asks to wait until"):
        await stream(http, hub).builds()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b'{"results": {}}',
        b'{"results": [{"name": 7}]}',
        b"[" * 100_000,
        b'{"results": [], "next": 3}',
    ],
    ids=["html", "list", "no list", "no name", "deep", "next"],
)
async def test_an_answer_of_another_form_is_unreadable(http: Http, hub: Pages, body: bytes) -> None:
    hub.at[PATH] = Page(body=body)
    with pytest.raises(Unreadable, match="in a form that is not Docker Hub's"):
        await stream(http, hub).builds()


@pytest.mark.parametrize(
    "elsewhere", ["http://127.0.0.1:1/v2/tags", "//example.invalid/", "ftp://x/", "http://[", "https:"]
)
async def test_the_next_page_is_not_fetched_from_another_host(http: Http, hub: Pages, elsewhere: str) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}"), following=elsewhere)
    with pytest.raises(Unreadable, match="for the next page of its listing"):
        await stream(http, hub).builds()
    assert len(hub.asked) == 1


async def test_pages_without_end_are_left(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}"), following=f"{hub.url}{PATH}?page=2")
    with pytest.raises(Unreadable, match="without end"):
        await stream(http, hub).builds()
    assert len(hub.asked) == 100


async def test_a_huge_page_is_not_read(http: Http, hub: Pages) -> None:
    hub.at[PATH] = Page(body=b" " * (17 << 20))
    with pytest.raises(Unreadable, match="longer than"):
        await stream(http, hub).builds()


@pytest.mark.parametrize(
    "name",
    [
        f"nightly-{commit('1')}\n",
        f"nightly-\x1b{commit('1')}",
        f"nightly-{'1' * 39}",
        f"nightly-{'1' * 41}",
        f"nightly-{'A' * 40}",
        f"cu129-nightly-{commit('1')}",
        f"base-nightly-{commit('1')}",
        "nightly-x86_64",
        "v0.27.0",
    ],
)
async def test_what_is_no_per_commit_tag_of_the_family_is_no_build(http: Http, hub: Pages, name: str) -> None:
    hub.at[PATH] = lists(tag(name), tag(f"nightly-{commit('2')}"))
    assert [build.commit for build in await stream(http, hub).builds()] == [commit("2")]


# --- builds ----------------------------------------------------------------------------------------------------------


async def test_a_build_is_named_by_its_tag_and_pinned_by_its_index(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('b')}", index="2"))
    [build] = await stream(http, hub).builds()
    assert (build.id, build.source) == (f"nightly-{commit('b')}", "dockerhub:vllm/vllm-openai")
    assert build.spec == f"vllm/vllm-openai:nightly-{commit('b')}"
    assert build.location == RemoteImage(
        registry="docker.io", repository="vllm/vllm-openai", reference=digest("2"), platform=AMD64
    )
    assert build.witness == CommitWheel(commit=commit("b"), platform=AMD64)
    assert (build.digest, build.pin) == (digest("2"), f"vllm/vllm-openai@{digest('a')}")
    assert build.published_at == datetime(2026, 7, 30, 5, 12, 44, 128_000, tzinfo=UTC)
    assert build.commit == commit("b")


async def test_builds_are_sorted_by_their_push_and_undated_ones_are_never_the_newest(http: Http, hub: Pages) -> None:
    dates = {
        "1": "2026-08-02T04:00:00Z",
        "2": None,
        "3": "2026-08-01T04:00:00+00:00",
        "4": "0001-01-01T00:00:00Z",
        "5": "?",
    }
    hub.at[PATH] = lists(*(tag(f"nightly-{commit(digit)}", pushed=date) for digit, date in dates.items()))
    builds = await stream(http, hub).builds()
    assert [build.commit and build.commit[0] for build in builds] == ["2", "4", "5", "3", "1"]
    assert [build.published_at is None for build in builds] == [True, True, True, False, False]


async def test_the_update_stands_in_for_a_push_that_is_not_told(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}", pushed=None, last_updated="2026-08-02T04:00:00Z"))
    [build] = await stream(http, hub).builds()
    assert build.published_at == datetime(2026, 8, 2, 4, tzinfo=UTC)


@pytest.mark.parametrize("absent", [None, "", "sha256:../../etc", "sha512:" + "a" * 128])
async def test_without_a_digest_the_tag_is_the_reference(http: Http, hub: Pages, absent: str | None) -> None:
    images = [{"architecture": "amd64", "os": "linux", "digest": absent}]
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}", digest=absent, images=images))
    [build] = await stream(http, hub).builds()
    assert isinstance(build.location, RemoteImage)
    assert (build.location.reference, build.digest, build.pin) == (f"nightly-{commit('1')}", None, None)


async def test_without_an_index_the_platforms_digest_is_the_pin(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"nightly-{commit('1')}", index="7", digest=None))
    [build] = await stream(http, hub).builds()
    assert build.pin == f"vllm/vllm-openai@{digest('7')}"


async def test_another_platform_has_its_own_digest_or_no_location(http: Http, hub: Pages) -> None:
    only_amd64 = [{"architecture": "amd64", "os": "linux", "digest": digest("5")}]
    hub.at[PATH] = lists(
        tag(f"nightly-{commit('1')}", pushed="2026-08-01T00:00:00Z"),
        tag(f"nightly-{commit('2')}", pushed="2026-08-02T00:00:00Z", images=only_amd64),
        tag(f"nightly-{commit('3')}", pushed="2026-08-03T00:00:00Z", images=None),
    )
    both, one, unsaid = await stream(http, hub, platform=ARM64).builds()
    assert both.digest == digest("c")
    assert (one.digest, one.location) == (None, None)
    assert unsaid.location is not None


async def test_the_witness_of_a_cuda_family_is_of_its_variant(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(tag(f"cu129-nightly-{commit('1')}"), tag(f"nightly-{commit('2')}"))
    cu129 = stream(http, hub, family="cu129-nightly")
    [build] = await cu129.builds()
    assert build.witness == CommitWheel(commit=commit("1"), platform=AMD64, variant="cu129")
    assert build.source == cu129.source == "dockerhub:vllm/vllm-openai?family=cu129-nightly"
    [build] = await stream(http, hub, witness=False).builds()
    assert build.witness is None


async def test_all_pages_are_read_and_a_tag_that_moved_between_them_counts_once(http: Http, hub: Pages) -> None:
    pages = {
        None: lists(tag(f"nightly-{commit('1')}"), tag(f"nightly-{commit('2')}"), following="?page=2&page_size=100"),
        "2": lists(tag(f"nightly-{commit('2')}"), tag(f"nightly-{commit('3')}")),
    }
    hub.at[PATH] = lambda asked: pages[asked.query.get("page")]
    assert [build.commit and build.commit[0] for build in await stream(http, hub).builds()] == ["1", "2", "3"]
    assert hub.asked[0].query == {"page_size": "100", "name": "nightly"}


async def test_floating_tags_tell_which_build_they_show(http: Http, hub: Pages) -> None:
    hub.at[PATH] = lists(
        tag("nightly", index="2", digest=digest("d")),
        tag(
            "nightly-x86_64",
            digest=digest("2"),
            images=[{"architecture": "amd64", "os": "linux", "digest": digest("2")}],
        ),
        tag("nightly-stale", index="8", digest=digest("8")),
        tag(f"nightly-{commit('1')}", index="1", digest=digest("b"), pushed="2026-08-01T00:00:00Z"),
        tag(f"nightly-{commit('2')}", index="2", digest=digest("d"), pushed="2026-08-02T00:00:00Z"),
        tag("cu129-nightly", index="2", digest=digest("d")),
    )
    listing = await stream(http, hub).listing()
    newest = f"nightly-{commit('2')}"
    assert listing.floating == {"nightly": newest, "nightly-x86_64": newest}


async def test_a_server_error_that_passes_is_not_noticed(http: Http, hub: Pages) -> None:
    def answer(_: Asked) -> Page:
        return lists(tag(f"nightly-{commit('1')}")) if len(hub.asked) > 2 else Page(status=502)

    hub.at[PATH] = answer
    assert len(await stream(http, hub).builds()) == 1


# --- spelling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["dockerhub:vllm/vllm-openai", "dockerhub:a/b?family=cu129-nightly"])
def test_a_source_is_spelled_as_it_was_read(spelling: str) -> None:
    assert str(parse_source(spelling)) == spelling


def test_the_usual_family_is_nightly() -> None:
    usual = HubSource(repository="vllm/vllm-openai", family="nightly")
    assert parse_source("dockerhub:vllm/vllm-openai") == parse_source(f"{usual}?family=nightly") == usual


@pytest.mark.parametrize(
    "spelling",
    [
        "dockerhub:",
        "dockerhub:vllm",
        "dockerhub:a/b/c",
        "dockerhub:A/b",
        "dockerhub:../x",
        "pypi:vllm",
        "dockerhub:a/b?famly=x",
        "dockerhub:a/b?family=",
        "dockerhub:a/b?family=a%0Ab",
        "dockerhub:a/b\n",
    ],
)
def test_what_names_no_family_is_an_unknown_source(spelling: str) -> None:
    with pytest.raises(UnknownSource, match="names no tags") as caught:
        parse_source(spelling)
    assert "dockerhub:vllm/vllm-openai" in caught.value.hint
