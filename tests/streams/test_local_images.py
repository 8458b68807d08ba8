"""Images on this machine as builds: those of the local engine, and those on disk."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from bisector.errors import UnknownSource
from bisector.model import Digest, EngineImage, LocalImage, Platform
from bisector.ports import LocalImageFacts
from bisector.streams import engine, layout
from bisector.streams.engine import EngineStream
from bisector.streams.layout import LayoutStream

AMD64 = Platform("linux/amd64")
DAY = datetime(2026, 7, 30, 8, tzinfo=UTC)


class Known:
    """A place with these images."""

    def __init__(self, *facts: LocalImageFacts) -> None:
        self._facts = facts

    async def images(self) -> Sequence[LocalImageFacts]:
        return self._facts


def facts(name: str, number: int, *, created: datetime | None = None) -> LocalImageFacts:
    digest = Digest(f"sha256:{number:064}")
    return LocalImageFacts(name=name, digest=digest, pin=f"pin {number}", created=created, commit=f"{number:040}")


NIGHTS = (
    facts("vllm/vllm-openai:nightly-b", 2, created=DAY + timedelta(days=1)),
    facts("vllm/vllm-openai:nightly-a", 1, created=DAY),
    facts("vllm/vllm-openai:reproducible", 3, created=datetime(1970, 1, 1, tzinfo=UTC)),
)


async def test_the_images_of_a_repository_are_its_tags_by_date() -> None:
    stream = EngineStream(Known(*NIGHTS), repository="vllm/vllm-openai", platform=AMD64)
    builds = await stream.builds()
    assert [build.id for build in builds] == ["reproducible", "nightly-a", "nightly-b"]
    assert builds[0].published_at is None
    assert builds[1].published_at == DAY
    assert {build.source for build in builds} == {"docker:vllm/vllm-openai"} == {stream.source}
    assert builds[1].spec == "docker:vllm/vllm-openai:nightly-a"
    assert builds[1].location == EngineImage(name="vllm/vllm-openai:nightly-a")
    assert (builds[1].digest, builds[1].pin, builds[1].commit) == (NIGHTS[1].digest, "pin 1", NIGHTS[1].commit)


async def test_the_images_of_an_engine_keep_their_whole_names() -> None:
    stream = EngineStream(Known(*NIGHTS, facts("sha256:abc", 4, created=DAY)), repository=None, platform=AMD64)
    assert stream.source == "docker:"
    assert [build.id for build in await stream.builds()] == [
        "vllm/vllm-openai:reproducible",
        "sha256:abc",
        "vllm/vllm-openai:nightly-a",
        "vllm/vllm-openai:nightly-b",
    ]


async def test_the_images_of_a_layout_are_its_names_by_date() -> None:
    stream = LayoutStream(Known(*NIGHTS, LocalImageFacts(name="arm")), path="here/oci", platform=AMD64)
    arm, _, first, second = await stream.builds()
    assert (arm.id, arm.location, arm.digest) == ("arm", None, None)
    assert (first.id, second.id) == (NIGHTS[1].name, NIGHTS[0].name)
    assert first.spec == f"oci:here/oci:{first.id}"
    assert first.location == LocalImage(path="here/oci", name=first.id, platform=AMD64)
    assert first.source == stream.source == "oci:here/oci"


@pytest.mark.parametrize(
    ("spelling", "repository"),
    [
        ("docker:", None),
        ("docker:vllm", "vllm"),
        ("docker:vllm/vllm-openai", "vllm/vllm-openai"),
        ("docker:127.0.0.1:5000/vllm/vllm-openai", "127.0.0.1:5000/vllm/vllm-openai"),
        ("docker:[::1]:5000/vllm", "[::1]:5000/vllm"),
    ],
)
def test_a_source_names_one_repository_of_the_engine_or_all(spelling: str, repository: str | None) -> None:
    assert engine.parse_source(spelling) == repository


@pytest.mark.parametrize("spelling", ["docker", "docker:VLLM", "docker:vllm:nightly", "docker: vllm", "pypi:vllm"])
def test_what_names_no_repository_is_refused(spelling: str) -> None:
    with pytest.raises(UnknownSource):
        engine.parse_source(spelling)


def test_a_source_names_a_layout() -> None:
    assert layout.parse_source("oci:/srv/images/oci") == "/srv/images/oci"
    for spelling in ("oci:", "oci", "docker:x"):
        with pytest.raises(UnknownSource):
            layout.parse_source(spelling)
