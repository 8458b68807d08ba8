from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.errors import Unreadable
from bisector.history.store import History
from bisector.model import Depth, Digest, Kernel, LibraryStatus, Mark, Observation
from tests.fakes.clock import SteppingClock
from tests.history.observing import OBSERVATIONS, a_build, an_observation
from tests.history.schema import query


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@given(st.lists(OBSERVATIONS, max_size=3, unique_by=lambda it: (it.digest, it.depth, it.probe_version)))
@settings(max_examples=60, deadline=None)
async def test_an_observation_comes_back_exactly_as_it_was(observations: list[Observation]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with History.open(Path(directory) / "history.db", SteppingClock()) as history:
            for observation in observations:
                await history.record(observation, a_build("1.0"))
        async with History.open(Path(directory) / "history.db", SteppingClock()) as history:
            for digest in {observation.digest for observation in observations}:
                expected = max(
                    (it for it in observations if it.digest == digest),
                    key=lambda it: (it.probe_version, it.depth is Depth.KERNELS),
                )
                assert await history.observation(digest, Depth.NAMES, version=0) == expected


async def test_an_inventory_of_any_mapping_can_be_kept(path: Path) -> None:
    inventory: Mapping[str, tuple[Kernel, ...]] = MappingProxyType({"sm120": (Kernel(op="bf16_gemm"),)})
    observation = replace(an_observation(), kernels=inventory)
    async with History.open(path, SteppingClock()) as history:
        await history.record(observation, None)
        found = await history.observation(observation.digest, Depth.KERNELS, version=1)
    assert found is not None
    assert found.kernels == dict(inventory)


async def test_an_operation_named_twice_is_kept_in_the_document_and_is_one_row(path: Path) -> None:
    observation = an_observation("sha256:one", "bf16_gemm", "bf16_gemm")
    async with History.open(path, SteppingClock()) as history:
        await history.record(observation, None)
        assert await history.observation(observation.digest, Depth.KERNELS, version=1) == observation
    assert query(path, "SELECT arch, op FROM kernels") == [{"arch": "sm120", "op": "bf16_gemm"}]


async def test_text_that_is_not_unicode_is_refused_and_leaves_nothing(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        with pytest.raises(Unreadable):
            await history.record(an_observation("sha256:one", "bf16_\udcff"), a_build("1.0"))
    assert query(path, "SELECT * FROM observations") == query(path, "SELECT * FROM builds") == []


async def test_a_document_of_another_shape_is_as_if_not_there_until_recorded_again(path: Path) -> None:
    build, observation = a_build("1.0", "sha256:one"), an_observation("sha256:one", "bf16_gemm")
    async with History.open(path, SteppingClock()) as history:
        await history.record(observation, build)
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT * FROM observations").fetchone()
        connection.execute("DELETE FROM observations")
        values = (*row[:-1], '{"digest": "sha256:one", "depth": "abyss"}')
        connection.execute(f"INSERT INTO observations VALUES ({','.join('?' * len(values))})", values)  # noqa: S608
        connection.commit()
    async with History.open(path, SteppingClock()) as history:
        assert await history.observation(observation.digest, Depth.KERNELS, version=1) is None
        assert await history.known([build]) == {}
        await history.record(observation, build)
        assert await history.observation(observation.digest, Depth.KERNELS, version=1) == observation
    assert query(path, "SELECT count(*) AS rows FROM observations") == [{"rows": 1}]


async def test_recording_and_listing_again_leaves_the_same_rows(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        for _ in range(2):
            await history.see([a_build("1.0"), a_build("1.1", "sha256:two")])
            await history.record(an_observation(), a_build("1.0"))
    assert query(path, "SELECT name, digest FROM builds ORDER BY id") == [
        {"name": "1.0", "digest": "sha256:one"},
        {"name": "1.1", "digest": "sha256:two"},
    ]
    counts = "SELECT (SELECT count(*) FROM streams) AS streams, (SELECT count(*) FROM observations) AS observations"
    assert query(path, counts) == [{"streams": 1, "observations": 1}]


async def test_a_build_pushed_again_and_one_that_vanished_are_told_apart(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        await history.see([a_build("gone", "sha256:a"), a_build("moved", "sha256:b"), a_build("same", "sha256:c")])
        await history.see([a_build("moved", "sha256:d"), a_build("same", "sha256:c")])
        await history.record(an_observation("sha256:a"), a_build("gone", "sha256:a"))
    rows = query(
        path,
        """
        SELECT name, digest, first_seen_at, last_listed_at < (SELECT max(last_listed_at) FROM builds) AS unlisted,
            EXISTS (
                SELECT * FROM builds AS other
                WHERE other.name = builds.name AND other.id <> builds.id AND other.last_seen_at > builds.last_seen_at
            ) AS superseded
        FROM builds ORDER BY id
        """,
    )
    first, second = "2026-11-29T05:31:00.000000Z", "2026-11-29T05:32:00.000000Z"
    assert [tuple(row.values()) for row in rows] == [
        ("gone", "sha256:a", first, 1, 0),
        ("moved", "sha256:b", first, 1, 1),
        ("same", "sha256:c", first, 0, 0),
        ("moved", "sha256:d", second, 0, 0),
    ]


async def test_a_listing_updates_what_it_says_and_keeps_what_it_no_longer_says(path: Path) -> None:
    build = replace(a_build("1.0", "sha256:one"), commit="abc", published_at=SteppingClock().now())
    async with History.open(path, SteppingClock()) as history:
        await history.see([build])
        await history.see([replace(build, commit=None, published_at=None, pin=None, marks=(Mark.YANKED,))])
    assert query(path, "SELECT commit_id, published_at, pin, marks FROM builds") == [
        {
            "commit_id": "abc",
            "published_at": "2026-11-29T05:31:00.000000Z",
            "pin": "vllm==1.0",
            "marks": '["yanked"]',
        }
    ]


async def test_the_views_tell_the_story_to_a_plain_client(path: Path) -> None:
    clock = SteppingClock()
    names = ("0.25", "0.26", "0.27", "0.28", "0.29", "unread")
    builds = {name: replace(a_build(name, f"sha256:{name}"), published_at=clock.now()) for name in names}
    async with History.open(path, clock) as history:
        await history.see(list(builds.values()))
        for observation in (
            an_observation("sha256:0.25", depth=Depth.NAMES),
            an_observation("sha256:0.25", "bf16_gemm", "fp8_gemm"),
            an_observation("sha256:0.26", depth=Depth.NAMES),
            an_observation("sha256:0.27"),
            an_observation("sha256:0.28", status=LibraryStatus.ABSENT, depth=Depth.NAMES),
            an_observation("sha256:0.29", status=LibraryStatus.UNREADABLE),
        ):
            await history.record(observation, builds[observation.digest.removeprefix("sha256:")])
    timeline = query(path, "SELECT build, arch, operations, status FROM kernel_timeline")
    assert [tuple(row.values()) for row in timeline] == [
        ("0.25", "sm120", 2, "present"),
        ("0.26", "sm120", None, "present"),
        ("0.27", "sm120", 0, "present"),
        ("0.28", "sm120", 0, "absent"),
        ("0.29", "sm120", None, "unreadable"),
    ]
    latest = query(path, "SELECT * FROM latest_observations WHERE build = '0.25'")
    assert latest == [
        {
            "source": "pypi:vllm",
            "platform": "linux/amd64",
            "build": "0.25",
            "published_at": "2026-11-29T05:31:00.000000Z",
            "digest": "sha256:0.25",
            "evidence": "wheel",
            "depth": "kernels",
            "probe_version": 1,
            "deep_gemm_status": "present",
            "deep_gemm_version": "2.5.0",
            "vllm_version": "0.27.0",
            "commit_id": "gabc123",
            "gate_capabilities": '["sm90"]',
            "gate_families": '["sm120"]',
            "gate_readable": 1,
            "marks": "[]",
            "observed_at": "2026-11-29T05:39:00.000000Z",
            "build_id": 1,
            "observation_id": 2,
        }
    ]
    assert len(query(path, "SELECT * FROM latest_observations")) == 5


async def test_an_observation_without_a_build_is_kept_for_the_build_that_comes(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        await history.record(an_observation(), None)
        assert query(path, "SELECT * FROM latest_observations") == []
        await history.see([a_build("1.0", "sha256:one")])
        assert await history.known([a_build("1.0")]) == {"1.0": an_observation()}
    assert [row["build"] for row in query(path, "SELECT build FROM latest_observations")] == ["1.0"]


async def test_a_digest_that_nobody_recorded_is_not_there(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        assert await history.observation(Digest("' OR 1 = 1 --"), Depth.NAMES, version=0) is None
