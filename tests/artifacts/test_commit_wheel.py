from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from bisector.artifacts.commit_wheel import CommitWheels
from bisector.errors import NoBuildForPlatform, Unavailable, UnknownBuild, Unreadable, UsageError
from bisector.http import Http, Patience
from bisector.model import CommitWheel, Platform, RemoteWheel
from tests.fakes.index import serving as serving_files
from tests.fakes.opening import opener
from tests.fakes.pages import Page, Pages, as_json, serving

COMMIT = "a" * 40
AMD64, ARM64 = Platform("linux/amd64"), Platform("linux/arm64")
WANTED = CommitWheel(commit=COMMIT, platform=AMD64)
PATH = f"/{COMMIT}/vllm/metadata.json"
NAME = f"vllm-0.27.1.dev7%2Bg{COMMIT[:9]}-cp38-abi3-manylinux_2_28_x86_64.whl"


@pytest.fixture
def index() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=Patience(first_wait=0.001, longest_wait=0.01, jitter=0.001)) as http:
        yield http


def wheel(tag: str = "manylinux_2_28_x86_64", **other: Any) -> dict[str, Any]:
    version = f"0.27.1.dev7+g{COMMIT[:9]}"
    described = {
        "package_name": "vllm",
        "version": version,
        "build_tag": None,
        "python_tag": "cp38",
        "abi_tag": "abi3",
        "platform_tag": tag,
        "variant": None,
        "filename": f"vllm-{version}-cp38-abi3-{tag}.whl",
        "path": f"../vllm-{version.replace('+', '%2B')}-cp38-abi3-{tag}.whl",
    }
    return described | other


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_a_commit_without_a_folder_has_no_wheel(http: Http, index: Pages, status: int) -> None:
    index.at[PATH] = Page(status=status, body=b"<Error><Code>AccessDenied</Code></Error>")
    with pytest.raises(NoBuildForPlatform, match=r"^No wheel was built of commit aaaaaaaaa$") as caught:
        await CommitWheels(http, base=index.url).locate(WANTED)
    assert "commit before or after" in caught.value.hint


@pytest.mark.parametrize(
    "listed", [[], [wheel("manylinux_2_28_aarch64")], [wheel("win_x86_64")], [wheel(package_name="vllm-extra")]]
)
async def test_wheels_of_other_kinds_are_no_wheel_for_the_platform(http: Http, index: Pages, listed: Any) -> None:
    index.at[PATH] = as_json(listed)
    with pytest.raises(NoBuildForPlatform, match=r"for linux/amd64$"):
        await CommitWheels(http, base=index.url).locate(WANTED)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'[{"filename": "x.whl"}]', b"[" * 100_000])
async def test_a_list_of_another_form_is_unreadable(http: Http, index: Pages, body: bytes) -> None:
    index.at[PATH] = Page(body=body)
    with pytest.raises(Unreadable, match="lists the wheels of commit aaaaaaaaa in a form"):
        await CommitWheels(http, base=index.url).locate(WANTED)


@pytest.mark.parametrize(
    "path",
    ["http://127.0.0.1:1/x.whl", "//example.invalid/x.whl", "file:///x.whl", "../metadata.json", "", "http://[/x.whl"],
)
async def test_a_wheel_placed_elsewhere_is_unreadable(http: Http, index: Pages, path: str) -> None:
    index.at[PATH] = as_json([wheel(path=path)])
    with pytest.raises(Unreadable, match="outside of itself"):
        await CommitWheels(http, base=index.url).locate(WANTED)


async def test_a_huge_list_is_not_read(http: Http, index: Pages) -> None:
    index.at[PATH] = Page(body=b" " * (5 << 20))
    with pytest.raises(Unreadable, match="longer than"):
        await CommitWheels(http, base=index.url).locate(WANTED)


async def test_an_index_that_fails_is_unavailable_and_not_a_missing_wheel(http: Http, index: Pages) -> None:
    index.at[PATH] = Page(status=500)
    with pytest.raises(Unavailable, match="answered 500"):
        await CommitWheels(http, base=index.url).locate(WANTED)
    index.at[PATH] = Page(status=401)
    with pytest.raises(Unavailable, match="answered 401 for the wheels of commit"):
        await CommitWheels(http, base=index.url).locate(WANTED)


@pytest.mark.parametrize(
    ("commit", "variant"), [("abc", None), ("../" + COMMIT, None), (f"{COMMIT}\n", None), (COMMIT, "../x")]
)
async def test_what_is_no_commit_or_variant_is_not_asked_for(
    http: Http, index: Pages, commit: str, variant: str | None
) -> None:
    wanted = CommitWheel(commit=commit, platform=AMD64, variant=variant)
    with pytest.raises(UnknownBuild, match="There can be no wheel"):
        await CommitWheels(http, base=index.url).locate(wanted)
    assert index.asked == []


async def test_a_platform_without_wheels_is_a_wrong_question(http: Http, index: Pages) -> None:
    index.at[PATH] = as_json([wheel()])
    with pytest.raises(UsageError, match="platform 'linux/s390x'"):
        await CommitWheels(http, base=index.url).locate(CommitWheel(commit=COMMIT, platform=Platform("linux/s390x")))


# --- wheels ----------------------------------------------------------------------------------------------------------


async def test_the_path_is_resolved_against_the_list_and_stays_encoded(http: Http, index: Pages) -> None:
    index.at[PATH] = as_json([wheel("manylinux_2_28_aarch64"), wheel()])
    found = await CommitWheels(http, base=f"{index.url}/").locate(WANTED)
    assert found == RemoteWheel(url=f"{index.url}/{COMMIT}/{NAME}")
    arm = await CommitWheels(http, base=index.url).locate(CommitWheel(commit=COMMIT, platform=ARM64))
    assert arm.url.endswith("_aarch64.whl")


async def test_a_variant_has_its_own_folder(http: Http, index: Pages) -> None:
    index.at[f"/{COMMIT}/cu129/vllm/metadata.json"] = as_json([wheel(path=f"../../{NAME}", variant="cu129")])
    wanted = CommitWheel(commit=COMMIT, platform=AMD64, variant="cu129")
    assert (await CommitWheels(http, base=index.url).locate(wanted)).url == f"{index.url}/{COMMIT}/{NAME}"
    index.at.clear()
    with pytest.raises(NoBuildForPlatform, match=r"of commit aaaaaaaaa with cu129$"):
        await CommitWheels(http, base=index.url).locate(wanted)


@pytest.mark.parametrize("tag", ["manylinux1_x86_64", "linux_x86_64", "manylinux2014_x86_64.manylinux_2_17_x86_64"])
async def test_every_age_of_platform_tag_is_known(http: Http, index: Pages, tag: str) -> None:
    index.at[PATH] = as_json([wheel(tag)])
    assert (await CommitWheels(http, base=index.url).locate(WANTED)).url.endswith(".whl")


class Everything:
    """Lists all paths and reads none."""

    key = "everything"

    def lists(self, path: str) -> bool:
        return bool(path)

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        return paths[:0]

    def enters(self, directory: str) -> bool:
        return bool(directory)

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        return not listed and not last


async def test_what_was_located_opens_as_a_wheel(http: Http) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("vllm/_version.py", "__commit_id__ = 'gaaaaaaaaa'")
    with serving() as pages, serving_files() as files:
        url = files.add("vllm-1-cp38-abi3-manylinux_2_28_x86_64.whl", content.getvalue())
        files_host = f"http://127.0.0.1:{files.port}"
        # The list sends the client on, as the real one's host does for its storage; paths belong to where it was asked.
        pages.at[PATH] = as_json([wheel(path=f"..{urlsplit(url).path}")])
        pages.at[f"/{COMMIT}{urlsplit(url).path}"] = Page(
            status=302, headers={"Location": f"{files_host}{urlsplit(url).path}"}
        )
        found = await CommitWheels(http, base=pages.url).locate(WANTED)
        async with opener(http).open(found, digest=None) as artifact:
            assert (await artifact.select(Everything())).listed == {"vllm/_version.py": 28}
