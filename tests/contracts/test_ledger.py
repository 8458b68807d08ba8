"""What every ledger does, in a file or in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from bisector.history.store import History
from bisector.kernels.inventory import summarize
from bisector.model import (
    Build,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Kernel,
    KernelSummary,
    LibraryStatus,
    Observation,
    Platform,
    Provenance,
)
from bisector.ports import Catalogue, Ledger
from tests.fakes.clock import SteppingClock
from tests.fakes.ledger import MemoryLedger

AMD64 = Platform("linux/amd64")
ARM64 = Platform("linux/arm64")
ONE = Digest("sha256:" + "1" * 64)
TWO = Digest("sha256:" + "2" * 64)
THREE = Digest("sha256:" + "3" * 64)


def build(name: str, digest: Digest | None = None, *, platform: Platform = AMD64, source: str = "pypi:vllm") -> Build:
    return Build(id=name, source=source, spec=f"{source}=={name}", platform=platform, location=None, digest=digest)


def names(digest: Digest, version: int = 1) -> Observation:
    return Observation(
        digest=digest,
        depth=Depth.NAMES,
        probe_version=version,
        evidence=EvidenceKind.WHEEL,
        deep_gemm=DeepGemm(status=LibraryStatus.PRESENT, headers=("impls/sm120_bf16_gemm.cuh",)),
    )


def kernels(digest: Digest, version: int = 1) -> Observation:
    operation = Kernel(op="bf16_gemm", units=("impls/sm120_bf16_gemm.cuh",), entries=("sm120_bf16_gemm_impl",))
    return replace(names(digest, version), depth=Depth.KERNELS, kernels={"sm120": (operation,)})


class ListingLedger(Ledger, Catalogue, Protocol):
    """Observations by content, and builds by stream: what a stream lists decides what a build is known by."""


@pytest.fixture(params=["history", "memory"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ListingLedger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    async with History.open(tmp_path / "history.db", SteppingClock()) as history:
        yield history


async def test_an_empty_ledger_knows_nothing(ledger: ListingLedger) -> None:
    assert await ledger.observation(ONE, Depth.NAMES, version=1) is None
    assert await ledger.known([build("1.0", ONE), build("1.1")]) == {}
    assert await ledger.known([]) == {}


async def test_what_was_recorded_is_found_by_its_content(ledger: ListingLedger) -> None:
    await ledger.record(kernels(ONE), None)
    assert await ledger.observation(ONE, Depth.KERNELS, version=1) == kernels(ONE)
    assert await ledger.observation(TWO, Depth.KERNELS, version=1) is None


async def test_the_first_record_of_a_reading_stays(ledger: ListingLedger) -> None:
    await ledger.record(kernels(ONE), build("1.0", ONE))
    await ledger.record(replace(kernels(ONE), kernels={}), build("1.0", ONE))
    assert await ledger.observation(ONE, Depth.KERNELS, version=1) == kernels(ONE)


async def test_the_deep_look_answers_for_the_cheap_one_and_not_the_reverse(ledger: ListingLedger) -> None:
    await ledger.record(kernels(ONE), None)
    await ledger.record(names(TWO), None)
    assert await ledger.observation(ONE, Depth.NAMES, version=1) == kernels(ONE)
    assert await ledger.observation(TWO, Depth.KERNELS, version=1) is None


@pytest.mark.parametrize("depth", list(Depth))
async def test_an_older_probe_does_not_answer(ledger: ListingLedger, depth: Depth) -> None:
    await ledger.record(names(ONE, version=1), None)
    await ledger.record(kernels(ONE, version=1), None)
    assert await ledger.observation(ONE, depth, version=2) is None


@pytest.mark.parametrize("versions", [(2, 3), (3, 2)])
async def test_the_newest_probe_answers(ledger: ListingLedger, versions: tuple[int, ...]) -> None:
    for version in versions:
        await ledger.record(kernels(ONE, version), None)
    assert await ledger.observation(ONE, Depth.KERNELS, version=1) == kernels(ONE, 3)
    assert await ledger.observation(ONE, Depth.KERNELS, version=3) == kernels(ONE, 3)


async def test_of_two_depths_at_one_version_the_deeper_answers(ledger: ListingLedger) -> None:
    await ledger.record(kernels(ONE), None)
    await ledger.record(names(ONE), None)
    assert await ledger.observation(ONE, Depth.NAMES, version=1) == kernels(ONE)


async def test_known_gives_the_deepest_then_the_newest(ledger: ListingLedger) -> None:
    for observation in (names(ONE, 9), kernels(ONE, 1), kernels(ONE, 2), names(TWO, 1), names(TWO, 2)):
        await ledger.record(observation, None)
    wanted = [build("1.0", ONE), build("1.1", TWO), build("1.2")]
    assert await ledger.known(wanted) == {"1.0": kernels(ONE, 2), "1.1": names(TWO, 2)}


async def test_builds_of_one_content_share_its_observation(ledger: ListingLedger) -> None:
    await ledger.record(names(ONE), build("1.0", ONE))
    assert await ledger.known([build("1.0", ONE), build("again", ONE)]) == {"1.0": names(ONE), "again": names(ONE)}


async def test_a_build_without_a_digest_is_known_by_what_was_read_in_it(ledger: ListingLedger) -> None:
    await ledger.see([build("abc"), build("def")])
    await ledger.record(names(ONE), build("abc"))
    await ledger.see([build("abc"), build("def")])
    assert await ledger.known([build("abc"), build("def")]) == {"abc": names(ONE)}


async def test_a_build_without_a_digest_is_known_by_what_a_listing_said(ledger: ListingLedger) -> None:
    await ledger.record(names(ONE), None)
    await ledger.see([build("abc", ONE)])
    assert await ledger.known([build("abc")]) == {"abc": names(ONE)}


async def test_a_build_pushed_again_is_known_by_each_content_and_else_by_the_last(ledger: ListingLedger) -> None:
    await ledger.record(names(ONE), build("nightly", ONE))
    await ledger.record(kernels(TWO), build("nightly", TWO))
    assert await ledger.known([build("nightly")]) == {"nightly": kernels(TWO)}
    assert await ledger.known([build("nightly", ONE)]) == {"nightly": names(ONE)}
    await ledger.see([build("nightly", ONE)])
    assert await ledger.known([build("nightly")]) == {"nightly": names(ONE)}


async def test_platforms_and_sources_are_not_confused(ledger: ListingLedger) -> None:
    await ledger.record(names(ONE), build("1.0"))
    assert await ledger.known([build("1.0", platform=ARM64)]) == {}
    assert await ledger.known([build("1.0", source="commits:vllm-project/vllm")]) == {}


async def test_a_summary_says_of_an_observation_what_a_timeline_shows(ledger: ListingLedger) -> None:
    headers = ("impls/sm100_a.cuh", "impls/sm100_b.cuh", "impls/sm120_a.cuh", "layout/smem.cuh", "impls/common.cuh")
    shallow = replace(names(ONE), deep_gemm=DeepGemm(status=LibraryStatus.PRESENT, headers=headers))
    absent = replace(names(TWO), deep_gemm=DeepGemm(status=LibraryStatus.ABSENT, reason="none of its files is there"))
    deep = replace(kernels(THREE), provenance=Provenance(commit="gabc"))
    for observation in (shallow, absent, names(THREE), deep):
        await ledger.record(observation, None)
    builds = [build("1.0", ONE), build("1.1", TWO), build("1.2", THREE), build("1.3", Digest("sha256:unread"))]
    assert await ledger.summaries(builds) == {
        "1.0": KernelSummary(status=LibraryStatus.PRESENT, depth=Depth.NAMES, operations={"sm100": 2, "sm120": 1}),
        "1.1": KernelSummary(status=LibraryStatus.ABSENT, depth=Depth.NAMES, reason="none of its files is there"),
        "1.2": KernelSummary(status=LibraryStatus.PRESENT, depth=Depth.KERNELS, operations={"sm120": 1}, commit="gabc"),
    }
    assert {name: summarize(seen) for name, seen in (await ledger.known(builds)).items()} == await ledger.summaries(
        builds
    )


async def test_a_long_stream_is_known_in_one_question(ledger: ListingLedger) -> None:
    builds = [build(f"1.{number}", Digest(f"sha256:{number:064x}")) for number in range(2000)]
    for number in (0, 1000, 1999):
        await ledger.record(names(Digest(f"sha256:{number:064x}")), builds[number])
    assert sorted(await ledger.summaries(builds)) == sorted(await ledger.known(builds)) == ["1.0", "1.1000", "1.1999"]
