"""Differences between observations, and the questions they answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.kernels.inventory import carries, gained, lost, operations, package_changes
from bisector.model import (
    Answer,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Kernel,
    LibraryStatus,
    Observation,
    Package,
)
from bisector.results import PackageChange


def seen(
    kernels: Mapping[str, tuple[Kernel, ...]] | None = None,
    *,
    status: LibraryStatus = LibraryStatus.PRESENT,
    depth: Depth = Depth.KERNELS,
    headers: tuple[str, ...] = (),
    reason: str | None = None,
    packages: tuple[Package, ...] = (),
) -> Observation:
    return Observation(
        digest=Digest("sha256:" + "0" * 64),
        depth=depth,
        probe_version=1,
        evidence=EvidenceKind.WHEEL,
        deep_gemm=DeepGemm(status=status, headers=headers, reason=reason),
        kernels=kernels or {},
        packages=packages,
    )


def kernel(op: str, unit: str | None = None, entry: str | None = None) -> Kernel:
    return Kernel(op=op, units=(unit,) if unit else (), entries=(entry,) if entry else ())


GEMM = kernel("bf16_gemm", "impls/sm120_bf16_gemm.cuh", "sm120_bf16_gemm_impl")
BATCHED = kernel("bmn_bnk_mn_gemm", "impls/sm120_bmk_bnk_mn.cuh", "sm120_bmn_bnk_mn_gemm_impl")


def test_a_kernel_without_entry_and_unit_is_lost() -> None:
    before, after = seen({"sm120": (GEMM, BATCHED)}), seen({"sm120": (GEMM,)})
    assert lost(before, after, "sm120") == ("bmn_bnk_mn_gemm",)
    assert gained(before, after, "sm120") == ()
    assert gained(after, before, "sm120") == ("bmn_bnk_mn_gemm",)
    assert lost(before, after, "sm90") == ()


def test_a_whole_architecture_is_lost() -> None:
    before, after = seen({"sm120": (BATCHED, GEMM)}), seen({"sm90": (GEMM,)})
    assert lost(before, after, "sm120") == ("bf16_gemm", "bmn_bnk_mn_gemm")


def test_a_library_that_is_not_bundled_any_more_has_lost_all() -> None:
    assert lost(seen({"sm120": (GEMM,)}), seen(status=LibraryStatus.ABSENT), "sm120") == ("bf16_gemm",)
    absent_by_name = seen(status=LibraryStatus.ABSENT, depth=Depth.NAMES)
    assert lost(seen({"sm120": (GEMM,)}), absent_by_name, "sm120") == ("bf16_gemm",)


@pytest.mark.parametrize("after", [seen(status=LibraryStatus.UNREADABLE), seen(depth=Depth.NAMES)])
def test_what_could_not_be_read_is_not_lost(after: Observation) -> None:
    assert lost(seen({"sm120": (GEMM,)}), after, "sm120") == ()


def test_a_renamed_header_is_no_loss() -> None:
    # 0.32 → 0.33 did this.
    entry = "sched::sm100_mqa_logits_metadata"
    before = seen({"sm100": (kernel("mqa_logits_metadata", "scheduler/sm100_mqa_logits_metadata.cuh", entry),)})
    after = seen({"sm100": (kernel("mqa_logits_metadata", "scheduler/sm100_mqa_logits.cuh", entry),)})
    assert lost(before, after, "sm100") == ()
    assert gained(before, after, "sm100") == ()


def test_a_renamed_function_is_no_loss() -> None:
    unit = "impls/sm120_bmk_bnk_mn.cuh"
    before = seen({"sm120": (kernel("bmn_bnk_mn_gemm", unit, "sm120_bmn_bnk_mn_gemm_impl"),)})
    after = seen({"sm120": (kernel("batched_gemm", unit, "sm120_batched_gemm_impl"),)})
    assert lost(before, after, "sm120") == ()


def test_a_function_that_could_not_be_found_beside_its_header_is_no_loss() -> None:
    before = seen({"sm120": (kernel("x_gemm", "impls/sm120_x.cuh", "sm120_x_gemm_impl"),)})
    assert lost(before, seen({"sm120": (kernel("x", "impls/sm120_x.cuh"),)}), "sm120") == ()


def test_a_header_shared_with_a_kernel_that_stays_does_not_hide_a_loss() -> None:
    unit = "impls/sm100_mqa_logits.cuh"
    stays = kernel("mqa_logits", unit, "sm100_mqa_logits")
    before = seen({"sm100": (stays, kernel("paged_mqa_logits", unit, "sm100_paged_mqa_logits"))})
    assert lost(before, seen({"sm100": (stays,)}), "sm100") == ("paged_mqa_logits",)


def test_moving_between_one_architecture_and_all_is_no_loss() -> None:
    # 0.26 → 0.27 did this.
    every = seen({"smxx": (kernel("paged_mqa_logits_metadata", entry="sched::smxx_paged_mqa_logits_metadata"),)})
    some = seen({"sm90": (kernel("paged_mqa_logits_metadata", entry="sched::sm90_paged_mqa_logits_metadata"),)})
    assert lost(every, some, "smxx") == ()
    assert lost(some, every, "sm90") == ()
    assert lost(every, seen({"sm90": (GEMM,)}), "smxx") == ("paged_mqa_logits_metadata",)


OPS = st.sampled_from("abcde")
KERNELS = st.lists(
    st.builds(
        kernel,
        OPS,
        st.none() | OPS.map("impls/sm120_{}.cuh".format),
        st.none() | OPS.map("sm120_{}".format),
    ),
    unique_by=lambda kernel: kernel.op,
).map(tuple)
OBSERVATIONS = st.dictionaries(st.sampled_from(["sm90", "sm120", "smxx"]), KERNELS).map(seen)


@given(OBSERVATIONS, OBSERVATIONS, st.sampled_from(["sm90", "sm120", "smxx"]))
def test_a_difference_is_between_two(before: Observation, after: Observation, arch: str) -> None:
    assert lost(before, before, arch) == ()
    assert gained(before, after, arch) == lost(after, before, arch)
    assert not set(lost(before, after, arch)) & set(gained(before, after, arch))
    assert set(lost(before, after, arch)) <= set(operations(before, arch)) - set(operations(after, arch))


def test_packages_differ_by_version_or_presence() -> None:
    def having(**versions: str) -> Observation:
        return seen(packages=tuple(Package(name=name, version=version) for name, version in versions.items()))

    assert package_changes(having(torch="2.12.0", old="1", same="1"), having(torch="2.13.0", new="2", same="1")) == (
        PackageChange(name="new", before=None, after="2"),
        PackageChange(name="old", before="1", after=None),
        PackageChange(name="torch", before="2.12.0", after="2.13.0"),
    )


def test_operations_are_sorted() -> None:
    observation = seen({"sm120": (BATCHED, GEMM)})
    assert operations(observation, "sm120") == ("bf16_gemm", "bmn_bnk_mn_gemm")
    assert operations(observation, "sm90") == ()


def test_names_tell_any_at_all() -> None:
    headers = ("impls/sm120_bf16_gemm.cuh", "impls/sm120_x.cuh", "impls/sm90_x.cuh", "scheduler/sm100_x.cuh")
    observation = seen(depth=Depth.NAMES, headers=headers)
    verdicts = {arch: carries(observation, arch) for arch in ("sm120", "sm90", "sm100", "sm12")}
    assert {arch: (verdict.answer, verdict.reason) for arch, verdict in verdicts.items()} == {
        "sm120": (Answer.GOOD, "2 sm120 kernel headers"),
        "sm90": (Answer.GOOD, "1 sm90 kernel header"),
        "sm100": (Answer.BAD, "bundled, no sm100 kernel headers"),
        "sm12": (Answer.BAD, "bundled, no sm12 kernel headers"),
    }


def test_names_do_not_tell_operations() -> None:
    with pytest.raises(ValueError, match="names alone"):
        carries(seen(depth=Depth.NAMES), "sm120", ["bf16_gemm"])


def test_kernels_tell_any_at_all() -> None:
    observation = seen({"sm120": (GEMM, BATCHED), "smxx": (kernel("layout", "impls/smxx_layout.cuh"),)})
    assert carries(observation, "sm120").reason == "2 sm120 kernels"
    verdict = carries(observation, "sm90")
    assert (verdict.answer, verdict.reason) == (Answer.BAD, "bundled, no sm90 kernels")


@pytest.mark.parametrize(
    "op",
    [
        "bf16_gemm",
        "sm120_bf16_gemm",
        "sm120_bf16_gemm_impl",
        "impls/sm120_bf16_gemm.cuh",
        "bmk_bnk_mn",
        "bmn_bnk_mn_gemm",
        "layout",
    ],
)
def test_an_operation_may_be_required_by_any_of_its_names(op: str) -> None:
    observation = seen({"sm120": (GEMM, BATCHED), "smxx": (kernel("layout", "impls/smxx_layout.cuh"),)})
    assert carries(observation, "sm120", [op]).answer is Answer.GOOD


def test_every_required_operation_must_be_there() -> None:
    verdict = carries(seen({"sm120": (GEMM,)}), "sm120", ["bf16_gemm", "mega_moe", "mqa_logits"])
    assert (verdict.answer, verdict.reason) == (
        Answer.BAD,
        "the sm120 kernels lack mega_moe, mqa_logits",
    )


@pytest.mark.parametrize("depth", Depth)
def test_absent_is_bad_and_unreadable_is_untestable(depth: Depth) -> None:
    absent = carries(seen(status=LibraryStatus.ABSENT, depth=depth, reason="It is not there."), "sm120")
    assert (absent.answer, absent.reason) == (Answer.BAD, "It is not there.")
    unreadable = carries(seen(status=LibraryStatus.UNREADABLE, depth=depth, reason="It is cut."), "sm120")
    assert (unreadable.answer, unreadable.reason) == (Answer.UNTESTABLE, "It is cut.")
