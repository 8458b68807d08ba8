from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from tests.lab import commits
from tests.lab.dockerfile import SITE_PACKAGES
from tests.lab.github import GitHub
from tests.lab.lab import Lab
from tests.lab.scenario import Scenario
from tests.lab.website import Answer

REPOSITORY = "vllm/vllm-openai"
MANIFEST_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
WITHOUT_WHEELS = frozenset({commits.LAST_GOOD, commits.HEAD_OF_0730})

needs_registry = [
    pytest.mark.registry,
    pytest.mark.online,  # the first time, to fill its cache
    pytest.mark.skipif(shutil.which("docker-registry") is None, reason="Debian's docker-registry is not installed"),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    scenario = Scenario(
        without_wheels=WITHOUT_WHEELS,
        stale=date(2026, 8, 13),
        repushed=date(2026, 7, 25),
        vanished=date(2026, 8, 3),
        cu129=True,
        cu130=True,
    )
    with Lab(scenario) as lab:
        yield lab


@pytest.fixture
def web() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=20) as client:
        yield client


@pytest.fixture
def github(web: httpx.Client) -> Iterator[GitHub]:
    github = GitHub("vllm-project/vllm", limit=60)
    with github.site:
        web.base_url = httpx.URL(f"{github.site.url}/repos/vllm-project/vllm/")
        yield github


# --- the history ------------------------------------------------------------------------------------------------------


def test_the_known_commits_are_at_their_places() -> None:
    def parent(sha: str) -> str:
        found = commits.find(sha)
        assert found
        return commits.history()[found.number - 1].sha

    assert parent(commits.CULPRIT) == commits.LAST_GOOD
    assert parent(commits.FIX) == commits.LAST_BAD
    assert commits.at_night(date(2026, 7, 30)).sha == commits.HEAD_OF_0730
    assert commits.at_night(date(2026, 7, 31)).sha == commits.HEAD_OF_0731
    assert commits.at_night(date(2026, 8, 12)).sha == commits.HEAD_OF_0812
    assert commits.at_night(date(2026, 8, 13)).sha == commits.HEAD_OF_0813


def test_a_day_has_about_twenty_commits_and_each_its_own_names() -> None:
    first, last = commits.find(commits.HEAD_OF_0730), commits.find(commits.HEAD_OF_0731)
    assert first
    assert last
    assert 18 <= last.number - first.number <= 24
    assert len({commit.sha for commit in commits.history()}) == len(commits.history())
    assert len({commit.pull for commit in commits.history()}) == len(commits.history())
    assert [commit.at for commit in commits.history()] == sorted(commit.at for commit in commits.history())


# --- GitHub -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("github")
def test_a_comparison_comes_in_pages_with_its_files_on_the_first(web: httpx.Client) -> None:
    path = f"compare/{commits.HEAD_OF_0730}...{commits.HEAD_OF_0731}"
    first = web.get(path, params={"per_page": 10, "page": 1})
    pages = [first]
    while link := pages[-1].links.get("next"):
        pages.append(web.get(link["url"]))
    seen = [commit for page in pages for commit in page.json()["commits"]]
    assert len(pages) == 3
    assert len(seen) == first.json()["total_commits"]
    assert seen[-1]["sha"] == commits.HEAD_OF_0731
    assert [commit["sha"] for commit in seen].count(commits.CULPRIT) == 1
    assert all(re.search(r"\(#\d+\)$", commit["commit"]["message"].partition("\n")[0]) for commit in seen)
    patches = {file["filename"]: file["patch"] for file in first.json()["files"]}
    assert "+    GIT_REPOSITORY https://github.com/vllm-project/DeepGEMM.git" in patches[commits.PIN_FILE]
    assert "files" not in pages[1].json()


@pytest.mark.usefixtures("github")
def test_commits_are_listed_newest_first_between_two_moments(web: httpx.Client) -> None:
    since, until = "2026-07-29T04:00:00Z", "2026-07-31T04:00:00Z"
    answer = web.get("commits", params={"sha": "main", "since": since, "until": until, "per_page": 5, "page": 2})
    dates = [commit["commit"]["committer"]["date"] for commit in answer.json()]
    assert len(dates) == 5
    assert dates == sorted(dates, reverse=True)
    assert all(since <= moment <= until for moment in dates)
    assert set(answer.links) == {"prev", "next", "first", "last"}


@pytest.mark.usefixtures("github")
def test_a_commit_its_pull_request_and_its_pin(web: httpx.Client) -> None:
    commit = web.get(f"commits/{commits.CULPRIT[:9]}").json()
    assert commit["sha"] == commits.CULPRIT
    assert commit["parents"] == [{"sha": commits.LAST_GOOD}]
    assert web.get(f"commits/{commits.CULPRIT}/pulls").json()[0]["number"] == 50000
    file = web.get(f"contents/{commits.PIN_FILE}", params={"ref": commits.LAST_GOOD})
    raw = web.get(
        f"contents/{commits.PIN_FILE}",
        params={"ref": commits.LAST_GOOD},
        headers={"Accept": "application/vnd.github.raw+json"},
    )
    assert file.json()["encoding"] == "base64"
    assert re.search(r"GIT_TAG a6b593d2[0-9a-f]{32}\n", raw.text)
    assert web.get("commits/0123456789").status_code == 422
    assert web.get("contents/README.md").status_code == 404


def test_github_counts_requests_and_then_refuses(github: GitHub, web: httpx.Client) -> None:
    assert web.get("commits").headers["x-ratelimit-remaining"] == "59"
    github.remaining = 0
    refused = web.get("commits")
    assert refused.status_code == 403
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.headers["x-ratelimit-reset"]) > datetime.now(UTC).timestamp()


# --- everything at once -----------------------------------------------------------------------------------------------


def tags(web: httpx.Client, lab: Lab, **query: Any) -> list[dict[str, Any]]:
    url: str | None = f"{lab.hub.site.url}/v2/namespaces/vllm/repositories/vllm-openai/tags"
    found: list[dict[str, Any]] = []
    while url:
        page = web.get(url, params=query if "?" not in url else None).raise_for_status().json()
        found += page["results"]
        url = page["next"]
    assert len(found) == page["count"]
    return found


def authorization(web: httpx.Client, lab: Lab) -> dict[str, str]:
    challenge = web.get(f"{lab.front.site.url}/v2/{REPOSITORY}/tags/list")
    assert challenge.status_code == 401
    given = dict(re.findall(r'(\w+)="([^"]*)"', challenge.headers["WWW-Authenticate"]))
    token = web.get(given["realm"], params={"service": given["service"], "scope": given["scope"]}).json()
    assert token["expires_in"] == lab.scenario.token_seconds
    return {"Authorization": f"Bearer {token['token']}", "Accept": MANIFEST_LIST}


class TestLab:
    pytestmark = needs_registry

    def test_the_nights_lost_the_kernels_and_had_them_again(self, lab: Lab) -> None:
        nights = [night for night in lab.nights if night.family == "nightly"]
        assert len(nights) >= 24
        bad = [night.date for night in nights if not night.sm120]
        assert (bad[0], bad[-1]) == (date(2026, 7, 31), date(2026, 8, 13))  # the last of them is the stale one
        assert lab.night("2026-08-13").plan.wheel.sha == commits.HEAD_OF_0812

    def test_the_tags_api_pages_and_says_when(self, lab: Lab, web: httpx.Client) -> None:
        listed = tags(web, lab, page_size=7, ordering="last_updated")
        assert {tag["name"] for tag in listed} >= {"nightly", "nightly-x86_64", "nightly-aarch64", "cu130-nightly"}
        dates = [tag["last_updated"] for tag in listed if tag["last_updated"]]
        assert dates == sorted(dates, reverse=True)
        by_name = {tag["name"]: tag for tag in listed}
        night = lab.night("2026-07-30")
        tag = by_name[night.tag]
        assert tag["digest"] == night.digest
        assert {f"{image['os']}/{image['architecture']}": image["digest"] for image in tag["images"]} == night.platforms
        assert by_name["nightly-x86_64"]["digest"] == by_name["nightly"]["images"][0]["digest"]
        assert by_name[lab.night("2026-08-06").tag]["tag_last_pushed"] is None
        assert by_name[lab.night("2026-07-25").tag]["tag_last_pushed"] > "2026-07-30"
        assert by_name[lab.night("2026-08-03").tag]["tag_status"] == "active"

    def test_the_tags_api_gives_no_more_than_a_hundred_and_no_order(self, lab: Lab, web: httpx.Client) -> None:
        old = f"{lab.hub.site.url}/v2/repositories/vllm/vllm-openai/tags"
        page = web.get(old, params={"page_size": 1000, "name": "nightly-"})
        assert len(page.json()["results"]) == min(100, page.json()["count"])
        dates = [tag["last_updated"] or "" for tag in page.json()["results"]]
        assert dates != sorted(dates, reverse=True)
        assert int(page.headers["X-RateLimit-Remaining"]) < int(page.headers["X-RateLimit-Limit"])
        assert web.get(old, params={"page": 1000}).status_code == 404

    def test_a_site_gives_the_answers_it_is_told_to(self, lab: Lab, web: httpx.Client) -> None:
        lab.hub.site.interrupt(Answer(status=429, headers={"Retry-After": "1"}), times=2)
        url = f"{lab.hub.site.url}/v2/repositories/vllm/vllm-openai/tags"
        assert [web.get(url).status_code for _ in range(3)] == [429, 429, 200]

    def test_the_front_wants_a_token_and_counts_pulls_but_not_looks(self, lab: Lab, web: httpx.Client) -> None:
        night = lab.night("2026-07-30")
        url = f"{lab.front.site.url}/v2/{REPOSITORY}/manifests/{night.tag}"
        token = authorization(web, lab)
        looked = web.head(url, headers=token)
        got = web.get(url, headers=token)
        assert looked.headers["Docker-Content-Digest"] == night.digest
        assert int(looked.headers["Content-Length"]) == len(got.content)
        assert f"sha256:{hashlib.sha256(got.content).hexdigest()}" == night.digest
        before = int(looked.headers["ratelimit-remaining"].partition(";")[0])
        assert got.headers["ratelimit-remaining"] == f"{before - 1};w=21600"
        assert web.get(url, headers={"Authorization": "Bearer stolen"}).status_code == 401
        gone = web.get(url.replace(night.tag, lab.night("2026-08-03").tag), headers=token)
        assert (gone.status_code, gone.json()["errors"][0]["code"]) == (404, "MANIFEST_UNKNOWN")

    def test_blobs_lie_elsewhere_where_tokens_are_refused(self, lab: Lab, web: httpx.Client) -> None:
        night = lab.night("2026-07-31")
        token = authorization(web, lab)
        moved = web.get(f"{lab.front.site.url}/v2/{REPOSITORY}/blobs/{night.layer}", headers=token)
        assert moved.status_code == 307
        address = moved.headers["Location"]
        assert web.get(address, headers=token).status_code == 400
        assert web.get(address.replace("signature=", "signature=0")).status_code == 403
        head, tail = (web.get(address, headers={"Range": f"bytes={span}"}) for span in ("0-999999", "1000000-"))
        assert (head.status_code, tail.status_code) == (206, 206)
        assert f"sha256:{hashlib.sha256(head.content + tail.content).hexdigest()}" == night.layer

    def test_the_layer_holds_what_the_wheel_holds(self, lab: Lab, web: httpx.Client) -> None:
        night = lab.night("2026-07-31")
        layer = gzip.decompress(lab.registry.blob(night.layer).read_bytes())
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            names = archive.getnames()
            assert names == sorted(names, key=lambda name: name.split("/"))
            files = {entry.name.removeprefix(f"{SITE_PACKAGES}/"): entry for entry in archive if entry.isfile()}
            index = f"{lab.wheels.site.url}/{night.commit}/vllm/metadata.json"
            entry = web.get(index).json()[0]
            assert "%2B" in entry["path"]
            wheel = web.get(urljoin(index, entry["path"])).content
            with zipfile.ZipFile(io.BytesIO(wheel)) as unpacked:
                assert {info.filename for info in unpacked.infolist()} == set(files)
                for name in ("vllm/_version.py", "vllm/platforms/cuda.py"):
                    member = archive.extractfile(files[name])
                    assert member
                    assert member.read() == unpacked.read(name)
                assert f"commit_id = 'g{night.commit[:9]}'" in unpacked.read("vllm/_version.py").decode()
                record = next(name for name in files if name.endswith("/RECORD"))
                sums = {path: told for path, told, _ in csv.reader(unpacked.read(record).decode().splitlines())}
                assert sums.keys() == files.keys()
                for name in sums.keys() - {record}:
                    digest = base64.urlsafe_b64encode(hashlib.sha256(unpacked.read(name)).digest())
                    assert sums[name] == f"sha256={digest.decode().rstrip('=')}"
        assert not [name for name in files if "impls/sm120" in name]

    def test_a_wheel_can_be_read_by_range(self, lab: Lab, web: httpx.Client) -> None:
        index = f"{lab.wheels.site.url}/{commits.FIX}/vllm/metadata.json"
        url = urljoin(index, web.get(index).json()[0]["path"])
        size = int(web.head(url).headers["Content-Length"])
        tail = web.get(url, headers={"Range": "bytes=-1048576"})
        assert tail.status_code == 206
        assert tail.headers["Content-Range"] == f"bytes {size - 1048576}-{size - 1}/{size}"
        sparse = b"\0" * (size - 1048576) + tail.content
        with zipfile.ZipFile(io.BytesIO(sparse)) as archive:
            names = archive.namelist()
            assert size - archive.start_dir > 350_000
        assert [name for name in names if "impls/sm120" in name]
        assert web.get(url, headers={"Range": f"bytes={size}-"}).status_code == 416

    def test_two_commits_have_no_wheels_and_nightly_has_the_newest(self, lab: Lab, web: httpx.Client) -> None:
        for sha in WITHOUT_WHEELS:
            assert web.get(f"{lab.wheels.site.url}/{sha}/vllm/metadata.json").status_code == 404
        nightly = f"{lab.wheels.site.url}/nightly/vllm/metadata.json"
        newest = lab.night(lab.scenario.last)
        url = urljoin(nightly, web.get(nightly).json()[0]["path"])
        assert url.startswith(f"{lab.wheels.site.url}/{newest.commit}/vllm-")
        assert web.head(url).status_code == 200

    @pytest.mark.parametrize("day", ["2026-07-24", "2026-07-23"])  # Docker's types and gzip; OCI's and zstd
    def test_skopeo_takes_the_front_for_docker_hub(self, lab: Lab, day: str) -> None:
        night = lab.night(day)
        address = lab.front.site.url.replace("http:", "docker:") + f"/{REPOSITORY}:{night.tag}"
        program = shutil.which("skopeo")
        assert program
        run = subprocess.run(
            [program, "inspect", "--tls-verify=false", "--override-os=linux", "--override-arch=amd64", address],
            capture_output=True,
            check=True,
            timeout=60,
        )
        seen = json.loads(run.stdout)
        assert seen["Labels"]["org.opencontainers.image.revision"] == night.commit
        assert f"VLLM_BUILD_COMMIT={night.commit}" in seen["Env"]
        assert night.layer in seen["Layers"]

    def test_history_names_the_layer_of_the_wheel(self, lab: Lab, web: httpx.Client) -> None:
        for day, from_the_top in ("2026-08-04", 9), ("2026-08-05", 8):
            night = lab.night(day)
            place = f"{lab.registry.url}/v2/{REPOSITORY}"
            kinds = {"Accept": "application/vnd.docker.distribution.manifest.v2+json"}
            manifest = web.get(f"{place}/manifests/{night.platforms['linux/amd64']}", headers=kinds).json()
            configuration = web.get(f"{place}/blobs/{manifest['config']['digest']}").json()
            lines = [line for line in configuration["history"] if not line.get("empty_layer")]
            assert len(lines) == len(manifest["layers"]) == len(configuration["rootfs"]["diff_ids"])
            hits = [number for number, line in enumerate(lines) if " dist/*.whl" in line["created_by"]]
            assert [manifest["layers"][number]["digest"] for number in hits] == [night.layer]
            assert len(lines) - hits[0] == from_the_top


@pytest.mark.registry
@pytest.mark.online
@pytest.mark.skipif(shutil.which("docker-registry") is None, reason="Debian's docker-registry is not installed")
def test_tags_are_purged_as_time_goes_by_and_digests_stay(web: httpx.Client) -> None:
    early = datetime(2026, 8, 2, 20, tzinfo=UTC)
    with Lab(Scenario(as_of=early, keep=14)) as lab:
        place = f"{lab.registry.url}/v2/{REPOSITORY}/manifests/"
        accept = {"Accept": MANIFEST_LIST}
        lost, newest = lab.night("2026-07-30"), lab.night("2026-08-02")
        names = {tag["name"] for tag in tags(web, lab)}
        assert lost.tag in names
        assert lab.night("2026-08-03").tag not in names
        assert len(names) == 3 + 12
        assert web.get(place + "nightly", headers=accept).headers["Docker-Content-Digest"] == newest.digest

        lab.move_to(early + timedelta(days=10))
        assert lost.tag not in {tag["name"] for tag in tags(web, lab)}
        assert web.get(place + lost.tag, headers=accept).status_code == 404
        assert web.get(place + lost.digest, headers=accept).status_code == 200
        assert web.get(place + "nightly", headers=accept).headers["Docker-Content-Digest"] != newest.digest
    with pytest.raises(httpx.ConnectError):
        web.get(place)
