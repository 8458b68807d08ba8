from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from bisector.errors import (
    BisectorError,
    NoBuildForPlatform,
    Unavailable,
    UnknownBuild,
    UnknownSource,
    Unreadable,
    UsageError,
)
from bisector.model import CommitWheel, Digest, Platform, RemoteImage
from bisector.ports import ImageFacts
from bisector.streams.registry import RegistryStream, parse_source
from bisector.streams.tag_pattern import TagParts, TagPattern

AMD64 = Platform("linux/amd64")


def digest(digit: str) -> Digest:
    return Digest(f"sha256:{digit * 64}")


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Repository:
    """Tags in memory, with what each answers; ``read`` counts what was looked at."""

    def __init__(self, images: Mapping[str, ImageFacts | BisectorError]) -> None:
        self._images = images
        self.read: list[str] = []

    async def tags(self) -> Sequence[str]:
        return tuple(self._images)

    async def image(self, tag: str) -> ImageFacts:
        self.read.append(tag)
        found = self._images[tag]
        if isinstance(found, BisectorError):
            raise found
        return found


def stream(
    tags: Repository, spelling: str = "registry:ghcr.io/a/b", *, witness: bool = False, most_read: int = 200
) -> RegistryStream:
    return RegistryStream(tags, named=parse_source(spelling), platform=AMD64, witness=witness, most_read=most_read)


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_an_image_that_cannot_be_read_keeps_its_place_without_a_date() -> None:
    tags = Repository({
        "b": ImageFacts(digest=digest("1"), created=day("2026-08-01")),
        "a": Unreadable("The configuration is no JSON"),
    })  # fmt: skip
    broken, whole = await stream(tags).builds()
    assert (broken.id, broken.published_at, broken.digest, broken.pin) == ("a", None, None, None)
    assert broken.location == RemoteImage(registry="ghcr.io", repository="a/b", reference="a", platform=AMD64)
    assert whole.location == RemoteImage(registry="ghcr.io", repository="a/b", reference=digest("1"), platform=AMD64)


async def test_a_tag_without_the_platform_has_no_location_and_a_deleted_one_is_no_build() -> None:
    tags = Repository({"arm": NoBuildForPlatform("no amd64"), "gone": UnknownBuild("deleted")})
    [build] = await stream(tags).builds()
    assert (build.id, build.location) == ("arm", None)


async def test_a_registry_that_stops_answering_is_not_half_a_stream() -> None:
    tags = Repository({"a": ImageFacts(digest=digest("1")), "b": Unavailable("down")})
    with pytest.raises(Unavailable):
        await stream(tags).builds()


async def test_too_many_tags_without_dates_are_refused_before_any_is_read() -> None:
    tags = Repository({f"t{number}": ImageFacts(digest=digest("1")) for number in range(5)})
    with pytest.raises(UsageError, match=r"ghcr\.io/a/b has 5 such tags, and bisector reads the dates of 4 at most"):
        await stream(tags, most_read=4).builds()
    assert tags.read == []


@pytest.mark.parametrize("tag", ["a\n", "a\x1b[31m", "-a", "a/b", "a" * 129, ""])
async def test_a_name_that_no_tag_can_have_is_left_out(tag: str) -> None:
    tags = Repository({tag: ImageFacts(digest=digest("1"))})
    assert await stream(tags).builds() == []
    assert tags.read == []


@pytest.mark.parametrize(
    "created", [datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), day("2026-01-01").replace(tzinfo=None)]
)
async def test_a_date_that_is_none_is_not_believed(created: datetime) -> None:
    [build] = await stream(Repository({"a": ImageFacts(digest=digest("1"), created=created)})).builds()
    assert build.published_at is None


# --- builds ----------------------------------------------------------------------------------------------------------


async def test_builds_are_sorted_by_creation_then_by_tag() -> None:
    same = day("2026-08-02")
    tags = Repository({
        "z": ImageFacts(digest=digest("1"), created=day("2026-08-01")),
        "c": ImageFacts(digest=digest("2"), created=same),
        "b": ImageFacts(digest=digest("2"), index_digest=digest("9"), created=same),
    })  # fmt: skip
    builds = await stream(tags).builds()
    assert [build.id for build in builds] == ["z", "b", "c"]
    assert [build.pin for build in builds] == [f"ghcr.io/a/b@{digest(digit)}" for digit in "192"]
    assert builds[0].spec == "ghcr.io/a/b:z"


async def test_where_tags_tell_dates_only_the_newest_are_read() -> None:
    tags = Repository({f"nightly-2026080{number}": ImageFacts(digest=digest("1")) for number in (3, 1, 2)})
    builds = await stream(tags, "registry:ghcr.io/a/b?tags=nightly-{date}", most_read=1).builds()
    assert tags.read == ["nightly-20260803"]
    assert [build.published_at for build in builds] == [day("2026-08-01"), day("2026-08-02"), day("2026-08-03")]
    assert [build.digest for build in builds] == [None, None, digest("1")]


async def test_a_label_completes_the_tags_commit_and_never_replaces_it() -> None:
    full = "0123456789" * 4
    tags = Repository({
        "nightly-01234567": ImageFacts(digest=digest("1"), commit=full),
        "nightly-01234568": ImageFacts(digest=digest("1"), commit=full),
        "nightly-01234569": ImageFacts(digest=digest("1"), commit="v1; rm -rf"),
    })  # fmt: skip
    builds = await stream(tags, "registry:ghcr.io/a/b?tags=nightly-{commit}", witness=True).builds()
    assert [build.commit for build in builds] == [full, "01234568", "01234569"]
    assert [build.witness for build in builds] == [CommitWheel(commit=full, platform=AMD64), None, None]


async def test_a_labels_commit_is_taken_where_tags_have_none() -> None:
    full = "f" * 40
    [build] = await stream(
        Repository({"26.03-cu130": ImageFacts(digest=digest("1"), commit=full)}), witness=True
    ).builds()
    assert (build.commit, build.witness) == (full, CommitWheel(commit=full, platform=AMD64, variant="cu130"))


# --- spelling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "tag", "parts"),
    [
        ("*", "latest", TagParts()),
        ("nightly-{commit}", f"nightly-{'a' * 40}", TagParts(commit="a" * 40)),
        ("{commit}-x86_64", f"{'a' * 40}-x86_64", TagParts(commit="a" * 40)),
        ("dev-{date}-{commit}", "dev-20260731-0a1b2c3d", TagParts(commit="0a1b2c3d", date=day("2026-07-31"))),
        ("jax-{date}", "jax-2026-07-31", TagParts(date=day("2026-07-31"))),
        ("{month}-py3", "26.03-py3", TagParts(date=day("2026-03-01"))),
        ("*.dev{date}-cuda*", "2.4.0.dev20260731-cuda13", TagParts(date=day("2026-07-31"))),
        ("nightly-{date}", "nightly-20269999", TagParts()),
        ("nightly-{commit}", "nightly-x86_64", None),
        ("nightly-{commit}", f"nightly-{'a' * 41}", None),
        ("a.b", "axb", None),
    ],
)
def test_a_pattern_reads_what_a_tag_tells(pattern: str, tag: str, parts: TagParts | None) -> None:
    assert TagPattern(pattern).read(tag) == parts


@pytest.mark.parametrize("pattern", ["", "{sha}", "a b", "{commit}{commit}", "(a+)+", "*****", "{", "\n"])
def test_what_is_no_pattern_is_an_unknown_source(pattern: str) -> None:
    with pytest.raises(UnknownSource, match="is no pattern of tags"):
        TagPattern(pattern)


@pytest.mark.parametrize(
    "spelling",
    [
        "registry:ghcr.io/nvidia/jax",
        "registry:127.0.0.1:5000/a?tags=nightly-dev-{date}-{commit}",
        "registry:[::1]:5000/a/b?tags=*-py3",
    ],
)
def test_a_source_is_spelled_as_it_was_read(spelling: str) -> None:
    assert str(parse_source(spelling)) == spelling


@pytest.mark.parametrize(
    "spelling",
    [
        "registry:",
        "registry:ghcr.io",
        "registry:ghcr.io/A",
        "registry:h/a//b",
        "registry:h/../a",
        "registry:h/a?tag=x",
        "pypi:vllm",
    ],
)
def test_what_names_no_repository_is_an_unknown_source(spelling: str) -> None:
    with pytest.raises(UnknownSource, match="names no repository of a registry"):
        parse_source(spelling)
