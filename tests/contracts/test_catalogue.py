"""What every memory of streams does, in a file or in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from bisector.history.store import History
from bisector.model import (
    Answer,
    Build,
    CommitWheel,
    DeepGemm,
    Depth,
    Digest,
    EngineImage,
    EvidenceKind,
    LibraryStatus,
    LocalImage,
    LocalPath,
    Mark,
    Observation,
    Platform,
    RemoteImage,
    RemoteWheel,
    Verdict,
)
from bisector.ports import Backlog, Catalogue, Ledger
from tests.fakes.clock import SteppingClock
from tests.fakes.ledger import MemoryLedger

AMD64 = Platform("linux/amd64")
SOURCE = "dockerhub:vllm/vllm-openai"
START = datetime(2026, 7, 1, 8, tzinfo=UTC)
UNTESTABLE = Verdict(answer=Answer.UNTESTABLE, reason="its wheel was never built")


class Memory(Ledger, Catalogue, Backlog, Protocol):
    """What a harvest needs."""


@pytest.fixture(params=["history", "memory"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    async with History.open(tmp_path / "history.db", SteppingClock()) as history:
        yield history


def nightly(day: int, *, digest: str | None = "", source: str = SOURCE) -> Build:
    name = f"nightly-{day:040x}"
    content = None if digest is None else Digest(f"sha256:{digest or day:0>64}")
    return Build(
        id=name,
        source=source,
        spec=f"vllm/vllm-openai:{name}",
        platform=AMD64,
        location=RemoteImage(registry="docker.io", repository="vllm/vllm-openai", reference=name, platform=AMD64),
        witness=CommitWheel(commit=f"{day:040x}", platform=AMD64),
        digest=content,
        published_at=START + timedelta(days=day),
        commit=f"{day:040x}",
        pin=f"vllm/vllm-openai@{content}",
    )


def look(digest: Digest | None, depth: Depth = Depth.NAMES, version: int = 1) -> Observation:
    return Observation(
        digest=digest or Digest(""),
        depth=depth,
        probe_version=version,
        evidence=EvidenceKind.IMAGE,
        deep_gemm=DeepGemm(status=LibraryStatus.PRESENT),
    )


async def test_nothing_is_remembered_of_a_stream_nobody_listed(memory: Memory) -> None:
    assert await memory.remembered(SOURCE, AMD64) == []


async def test_a_build_comes_back_as_it_was_listed(memory: Memory) -> None:
    places = (
        RemoteWheel(url="https://files.test/vllm-1.0.whl", size=12),
        RemoteWheel(url="https://files.test/vllm-1.0.whl"),
        LocalPath(path="/tmp/vllm.whl"),  # noqa: S108 - nothing is there
        LocalImage(path="layout", name=None, platform=AMD64),
        EngineImage(name="vllm:latest"),
        CommitWheel(commit="a" * 40, platform=AMD64, variant="cu129"),
        None,
    )
    builds = [
        replace(nightly(day), location=place, elsewhere=tuple(it for it in places[:day] if it), marks=(Mark.YANKED,))
        for day, place in enumerate(places)
    ]
    await memory.see(builds)
    assert await memory.remembered(SOURCE, AMD64) == builds


async def test_a_build_that_is_not_listed_again_is_gone_and_found_by_digest(memory: Memory) -> None:
    old, kept, unknown = nightly(1), nightly(2), nightly(3, digest=None)
    await memory.see([old, kept, unknown])
    await memory.see([kept])
    gone, still, lost = await memory.remembered(SOURCE, AMD64)
    assert still == kept
    assert gone == replace(
        old,
        marks=(Mark.GONE,),
        location=RemoteImage(
            registry="docker.io", repository="vllm/vllm-openai", reference=str(old.digest), platform=AMD64
        ),
    )
    assert lost == replace(unknown, marks=(Mark.GONE,))


async def test_a_build_that_comes_back_is_not_gone(memory: Memory) -> None:
    for listing in ([nightly(1), nightly(2)], [nightly(2)], [nightly(1), nightly(2)]):
        await memory.see(listing)
    assert await memory.remembered(SOURCE, AMD64) == [nightly(1), nightly(2)]


async def test_a_build_that_is_read_after_it_went_is_still_gone(memory: Memory) -> None:
    await memory.see([nightly(1), nightly(2)])
    await memory.see([nightly(2)])
    (gone, _) = await memory.remembered(SOURCE, AMD64)
    await memory.record(look(gone.digest), gone)
    assert (await memory.remembered(SOURCE, AMD64))[0] == gone


async def test_of_a_name_pushed_again_the_latest_content_is_remembered(memory: Memory) -> None:
    await memory.see([nightly(1), nightly(2)])
    again = replace(nightly(1, digest="f"), published_at=START + timedelta(days=9))
    await memory.see([nightly(2), again])
    assert await memory.remembered(SOURCE, AMD64) == [nightly(2), again]


async def test_builds_are_remembered_by_date_unless_something_knows_better(memory: Memory) -> None:
    undated = replace(nightly(0), published_at=None)
    late = replace(nightly(1), published_at=START + timedelta(days=9))
    builds = [undated, nightly(2), nightly(3), late]
    await memory.see(builds)
    assert await memory.remembered(SOURCE, AMD64) == builds
    in_order = [late, nightly(2), undated, nightly(3)]
    await memory.arrange(in_order)
    assert await memory.remembered(SOURCE, AMD64) == in_order


async def test_other_streams_and_platforms_are_not_confused(memory: Memory) -> None:
    arm = replace(nightly(1), platform=Platform("linux/arm64"))
    await memory.see([nightly(1)])
    await memory.see([arm])
    await memory.see([nightly(1, source="registry:ghcr.io/vllm")])
    assert await memory.remembered(SOURCE, AMD64) == [nightly(1)]
    assert await memory.remembered(SOURCE, Platform("linux/arm64")) == [arm]


# --- what is still to be read ----------------------------------------------------------------------------------------


async def test_what_was_read_deep_and_new_enough_is_not_read_again(memory: Memory) -> None:
    builds = [nightly(day) for day in range(5)]
    await memory.record(look(builds[1].digest), builds[1])
    await memory.record(look(builds[2].digest, Depth.KERNELS), builds[2])
    await memory.record(look(builds[3].digest, Depth.KERNELS, version=2), builds[3])
    assert await memory.unread(builds, Depth.NAMES, version=1) == [builds[0], builds[4]]
    assert await memory.unread(builds, Depth.KERNELS, version=1) == [builds[0], builds[1], builds[4]]
    assert await memory.unread(list(reversed(builds)), Depth.KERNELS, version=2) == [builds[it] for it in (4, 2, 1, 0)]


async def test_a_build_without_a_digest_is_read_once(memory: Memory) -> None:
    build = nightly(1, digest=None)
    await memory.see([build])
    assert await memory.unread([build], Depth.NAMES, version=1) == [build]
    await memory.record(look(Digest("sha256:found")), build)
    assert await memory.unread([build], Depth.NAMES, version=1) == []


async def test_a_build_given_up_is_tried_again_when_the_reason_expires(memory: Memory) -> None:
    builds = [nightly(day) for day in range(3)]
    await memory.see(builds[:2])
    soon = datetime(2026, 11, 29, 5, 36, tzinfo=UTC)  # the clock began at 5:30 and goes a minute each time it is asked
    await memory.give_up(builds[0], UNTESTABLE)
    await memory.give_up(builds[1], replace(UNTESTABLE, expires_at=soon))
    await memory.give_up(builds[2], replace(UNTESTABLE, expires_at=soon))
    await memory.give_up(builds[2], UNTESTABLE)
    for _ in range(10):
        left = await memory.unread(builds, Depth.NAMES, version=1)
    assert left == [builds[1]]


async def test_a_build_given_up_is_still_known(memory: Memory) -> None:
    await memory.give_up(nightly(1), UNTESTABLE)
    assert await memory.remembered(SOURCE, AMD64) == [nightly(1)]
