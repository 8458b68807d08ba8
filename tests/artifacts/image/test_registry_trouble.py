"""Everything that can go wrong with a registry ends in the right data or in one sentence, and shows no token."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.client import RegistryClient
from bisector.artifacts.image.credentials import Credentials, DockerCredentials
from bisector.artifacts.image.reference import ImageReference
from bisector.errors import BisectorError, RateLimited, Unavailable, UnknownBuild, Unreadable
from bisector.http import Http, Patience
from bisector.model import Platform, RateLimit
from tests.fakes.images import ROOT, Image, file, image, pack
from tests.fakes.registry import SECRET, Answer, Registry, Request, serving
from tests.fakes.wheels import only

REPOSITORY = "vllm/vllm-openai"
LIBRARY = os.urandom(1_500_000)
MADE = image([pack([file(f"{ROOT}/vllm/_C.so", LIBRARY), file(f"{ROOT}/vllm/_version.py", b"x")])])
QUICK = Patience(attempts=3, first_wait=0.01, longest_wait=0.02, jitter=0.01, longest_asked=0.5)


@pytest_asyncio.fixture
async def registry() -> AsyncIterator[Registry]:
    async with serving(Registry()) as served:
        served.push(MADE, "nightly")
        yield served


@pytest.fixture(autouse=True)
def no_token_in_any_log(caplog: pytest.LogCaptureFixture) -> object:
    caplog.set_level(logging.DEBUG, logger="bisector")
    yield
    assert SECRET not in caplog.text


def reference(registry: Registry, tag: str = "nightly") -> ImageReference:
    return ImageReference(host=registry.host, repository=REPOSITORY, tag=tag)


async def library(registry: Registry, *, credentials: Credentials | None = None, made: Image = MADE) -> bytes:
    async with Http(patience=QUICK) as http:
        client = RegistryClient(http, registry.host, REPOSITORY, credentials=credentials)
        artifact = ImageArtifact(client, made.digest, Platform("linux/amd64"), verify=True)
        found = await artifact.select(only(["vllm/_C.so"]))
        assert artifact.verified
        return found.contents["vllm/_C.so"]


async def failure(registry: Registry) -> BisectorError:
    with pytest.raises(BisectorError) as caught:
        await library(registry)
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"
    assert "\n" not in caught.value.message
    return caught.value


def blobs_only(answer: Answer) -> object:
    """Give this answer for the layer, and behave for all else."""
    layer = json.loads(MADE.manifest)["layers"][0]["digest"]
    return lambda request, usual: answer if request.path.endswith(layer) else usual


async def test_a_well_behaved_registry_is_read(registry: Registry) -> None:
    assert await library(registry) == LIBRARY


async def test_a_tag_is_resolved_without_a_pull_and_the_limit_is_remembered(registry: Registry) -> None:
    async with Http() as http:
        client = RegistryClient(http, registry.host, REPOSITORY)
        assert await client.resolve(reference(registry)) == MADE.digest
        assert [request.method for request in registry.seen] == ["HEAD"]
        assert client.rate_limit == RateLimit(limit=100, remaining=76, window=21600)
        with pytest.raises(UnknownBuild, match="no-such-tag"):
            await client.resolve(reference(registry, "no-such-tag"))


async def test_a_registry_that_says_nothing_to_head_is_asked_again(registry: Registry) -> None:
    registry.trouble.append(Answer(status=405))
    async with Http() as http:
        assert await RegistryClient(http, registry.host, REPOSITORY).resolve(reference(registry)) == MADE.digest


async def test_tags_are_paged(registry: Registry) -> None:
    registry.push(MADE, "a", "b", "c", "d")
    async with Http() as http:
        assert await RegistryClient(http, registry.host, REPOSITORY).tags() == ["a", "b", "c", "d", "nightly"]


async def test_tags_do_not_lead_to_another_server(registry: Registry) -> None:
    link = {"Link": '<https://elsewhere.example/v2/x/tags/list?last=a>; rel="next"'}
    registry.trouble.append(Answer(headers=link, body=b'{"tags": ["a"]}'))
    async with Http() as http:
        with pytest.raises(Unreadable, match="another server"):
            await RegistryClient(http, registry.host, REPOSITORY).tags()


async def test_a_list_of_tags_without_end_is_left(registry: Registry) -> None:
    link = {"Link": '<?n=2>; rel="next"'}
    registry.change = lambda _, answer: Answer(headers=link, body=answer.body)
    async with Http() as http:
        with pytest.raises(Unavailable, match="without an end"):
            await RegistryClient(http, registry.host, REPOSITORY).tags()


async def test_a_token_that_expires_in_mid_layer_is_renewed(registry: Registry) -> None:
    registry.tokens = 1
    registry.cut_every = 400_000
    assert await library(registry) == LIBRARY
    assert len(registry.asked("/token")) >= 4


async def test_the_first_place_for_tokens_is_asked_for_ever(registry: Registry) -> None:
    registry.tokens = 2
    registry.cut_every = 400_000
    turns = 0

    def elsewhere(_: Request, answer: Answer) -> Answer:
        nonlocal turns
        if answer.status != 401:
            return answer
        turns += 1
        later = {"WWW-Authenticate": 'Bearer realm="https://expired.example/token"'}
        return answer if turns == 1 else Answer(status=401, headers=later)

    registry.change = elsewhere
    assert await library(registry) == LIBRARY
    assert turns > 1


async def test_a_login_is_used_and_nobody_is_tried_last(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.tokens = 100
    login = base64.b64encode(f"user:{SECRET}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": login}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    registry.login = login
    assert await library(registry, credentials=DockerCredentials()) == LIBRARY
    registry.login = None
    registry.trouble.extend([None, Answer(status=401)])
    assert await library(registry, credentials=DockerCredentials()) == LIBRARY
    assert [("authorization" in request.headers) for request in registry.asked("/token")] == [True, True, False]


async def test_a_registry_that_lets_nobody_in_is_told_about(registry: Registry) -> None:
    registry.tokens, registry.login = 1, "nobody"
    assert "docker login" in (await failure(registry)).hint


async def test_a_token_that_is_never_good_enough_ends(registry: Registry) -> None:
    registry.tokens = 0
    assert isinstance(await failure(registry), Unavailable)


async def test_tokens_are_not_fetched_in_the_clear(registry: Registry) -> None:
    realm = {"WWW-Authenticate": 'Bearer realm="http://127.0.0.1:1@tokens.example/token"'}
    registry.trouble.append(Answer(status=401, headers=realm))
    assert "not encrypted" in (await failure(registry)).message


@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {}])
async def test_being_asked_to_wait_is_obeyed(registry: Registry, headers: dict[str, str]) -> None:
    registry.trouble.extend([Answer(status=429, headers=headers), None, Answer(status=429, headers=headers)])
    assert await library(registry) == LIBRARY


@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, {}])
async def test_a_limit_that_does_not_pass_is_told_about(registry: Registry, headers: dict[str, str]) -> None:
    registry.trouble.extend([Answer(status=429, headers=headers)] * 10)
    assert isinstance(await failure(registry), RateLimited)


async def test_server_errors_pass_or_are_told_about(registry: Registry) -> None:
    registry.trouble.extend([Answer(status=500), None, Answer(status=503), Answer(status=502)])
    assert await library(registry) == LIBRARY
    registry.trouble.extend([Answer(status=500)] * 10)
    assert "500" in (await failure(registry)).message


@pytest.mark.parametrize("ranges", [True, False])
async def test_a_connection_that_breaks_again_and_again_is_taken_up(registry: Registry, ranges: bool) -> None:  # noqa: FBT001
    registry.cut_every = 150_000
    registry.ranges = ranges
    if ranges:
        assert await library(registry) == LIBRARY
        assert len(registry.asked("/blobs/")) >= 10
    else:
        assert isinstance(await failure(registry), Unavailable)


async def test_a_whole_answer_to_a_part_is_skipped_into(registry: Registry) -> None:
    registry.ranges = False
    cuts = iter([200_000, 700_000])
    registry.change = lambda request, answer: (
        Answer(status=answer.status, headers=answer.headers, body=answer.body, cut=next(cuts, None))
        if "/blobs/" in request.path and len(answer.body) > 100_000
        else answer
    )
    assert await library(registry) == LIBRARY


async def test_a_connection_that_brings_nothing_is_given_up(registry: Registry) -> None:
    registry.cut_every = 0
    assert isinstance(await failure(registry), Unavailable)


async def test_a_part_that_was_not_asked_for_is_refused(registry: Registry) -> None:
    registry.cut_every = 500_000
    registry.change = lambda _, answer: (
        Answer(status=206, headers={"Content-Range": "bytes 1-9/10"}, body=answer.body)
        if answer.status == 206
        else answer
    )
    assert isinstance(await failure(registry), Unreadable)


async def test_storage_elsewhere_gets_no_token(registry: Registry) -> None:
    registry.tokens = 100
    async with serving(Registry()) as storage:
        storage.blobs = registry.blobs
        storage.cut_every = 600_000
        registry.redirect = f"http://localhost:{storage.port}"
        assert await library(registry) == LIBRARY
        assert storage.seen
        assert not [request for request in storage.seen if "authorization" in request.headers]
        # what it redirects to expires: each time, the registry itself is asked first
        assert len(registry.asked("/blobs/")) == len(storage.seen)


async def test_storage_whose_address_expired_is_asked_for_anew(registry: Registry) -> None:
    async with serving(Registry()) as storage:
        storage.blobs = registry.blobs
        storage.trouble.append(Answer(status=403))
        registry.redirect = f"http://localhost:{storage.port}"
        assert await library(registry) == LIBRARY


async def test_redirects_without_end_are_left(registry: Registry) -> None:
    registry.redirect = f"http://127.0.0.1:{registry.port}"
    assert "without end" in (await failure(registry)).message


async def test_a_wrong_digest_is_refused(registry: Registry) -> None:
    other = bytearray(MADE.layers[0])
    other[-100] ^= 1
    registry.change = blobs_only(Answer(body=bytes(other)))  # type: ignore[assignment]
    assert isinstance(await failure(registry), Unreadable)
    plain = pack([file(f"{ROOT}/vllm/_C.so", b"other" * 1000)])
    small = image([plain], how="tar")
    wrong = plain.replace(b"other", b"OTHER")
    registry.push(small)
    registry.change = lambda request, usual: (
        Answer(body=wrong) if "/blobs/" in request.path and len(usual.body) == len(wrong) else usual
    )
    with pytest.raises(Unreadable, match="wrong di"):
        await library(registry, made=small)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=MADE.layers[0] + b"x"),
        Answer(body=MADE.layers[0][:-1]),
        Answer(body=MADE.layers[0] + b"x", headers={"Content-Length": ""}),
        Answer(body=MADE.layers[0], headers={"Content-Length": ""}, endless=True),
    ],
    ids=["longer", "shorter", "longer unannounced", "endless"],
)
async def test_a_wrong_length_is_refused(registry: Registry, answer: Answer) -> None:
    registry.change = blobs_only(answer)  # type: ignore[assignment]
    error = await failure(registry)
    assert isinstance(error, Unreadable)
    assert "bytes its manifest says" in error.message


async def test_a_layer_that_ends_too_early_without_a_word_is_given_up(registry: Registry) -> None:
    short = Answer(body=MADE.layers[0][:-9], headers={"Content-Length": ""}, cut=len(MADE.layers[0]) - 9)
    registry.change = blobs_only(short)  # type: ignore[assignment]
    registry.ranges = False
    await failure(registry)


async def test_a_manifest_of_two_hundred_megabytes_is_not_read(registry: Registry) -> None:
    registry.change = lambda request, usual: (
        Answer(body=b"{" + b" " * 200_000_000, headers={"Content-Length": str(200_000_001)})
        if "/manifests/" in request.path
        else usual
    )
    async with Http(patience=QUICK) as http:
        client = RegistryClient(http, registry.host, REPOSITORY)
        with pytest.raises(Unreadable, match="longer than"):
            await client.manifest(MADE.digest)
        assert http.meter.bytes < 8 << 20


async def test_another_manifest_is_refused(registry: Registry) -> None:
    registry.change = lambda request, usual: Answer(body=b"{}") if "/manifests/" in request.path else usual
    assert "wrong digest" in (await failure(registry)).message


async def test_a_purged_layer_is_told_about(registry: Registry) -> None:
    registry.change = blobs_only(Answer(status=404))  # type: ignore[assignment]
    assert isinstance(await failure(registry), UnknownBuild)
