"""Which kernels a library's strings and the shipped headers make together."""

from __future__ import annotations

import pytest

from bisector.errors import Unreadable
from bisector.kernels.templates import MOST_STRINGS, Template, arch_and_op, find_templates, inventory
from bisector.model import Kernel
from tests.kernels.elf import instantiation, template


def test_a_header_and_a_function_of_one_template_are_one_kernel() -> None:
    found = find_templates(template("impls/sm120_bmk_bnk_mn", "sm120_bmn_bnk_mn_gemm_impl"))
    assert found.count == 1
    assert inventory(found, {"impls/sm120_bmk_bnk_mn.cuh"}) == {
        "sm120": (
            Kernel(
                op="bmn_bnk_mn_gemm",
                units=("impls/sm120_bmk_bnk_mn.cuh",),
                entries=("sm120_bmn_bnk_mn_gemm_impl",),
            ),
        )
    }


def test_two_kernels_may_stand_on_one_header() -> None:
    found = find_templates(
        template("impls/sm100_mqa_logits", "sm100_mqa_logits")
        + template("impls/sm100_mqa_logits", "sm100_paged_mqa_logits")
    )
    kernels = inventory(found, {"impls/sm100_mqa_logits.cuh"})["sm100"]
    assert {kernel.op: kernel.units for kernel in kernels} == {
        "mqa_logits": ("impls/sm100_mqa_logits.cuh",),
        "paged_mqa_logits": ("impls/sm100_mqa_logits.cuh",),
    }


def test_a_scheduler_goes_with_its_namespaced_function() -> None:
    found = find_templates(template("scheduler/sm120_paged_mqa_logits", "sched::sm120_paged_mqa_logits_metadata"))
    (kernel,) = inventory(found, {"scheduler/sm120_paged_mqa_logits.cuh"})["sm120"]
    assert kernel == Kernel(
        op="paged_mqa_logits_metadata",
        units=("scheduler/sm120_paged_mqa_logits.cuh",),
        entries=("sched::sm120_paged_mqa_logits_metadata",),
    )


def test_a_function_named_in_a_string_of_its_own_joins_its_header() -> None:
    found = find_templates(
        template("impls/sm100_sparse_mqa_logits", None)
        + instantiation("sm100_sparse_mqa_logits")
        + instantiation("sm100_paged_sparse_mqa_logits")
    )
    assert found.count == 1
    assert inventory(found, {"impls/sm100_sparse_mqa_logits.cuh"})["sm100"] == (
        Kernel(op="paged_sparse_mqa_logits", entries=("sm100_paged_sparse_mqa_logits",)),
        Kernel(
            op="sparse_mqa_logits",
            units=("impls/sm100_sparse_mqa_logits.cuh",),
            entries=("sm100_sparse_mqa_logits",),
        ),
    )


def test_a_header_without_a_function_is_a_kernel_of_its_own_name() -> None:
    found = find_templates(template("impls/smxx_layout", None))
    assert inventory(found, {"impls/smxx_layout.cuh"}) == {
        "smxx": (Kernel(op="layout", units=("impls/smxx_layout.cuh",)),)
    }


def test_what_is_made_for_any_architecture_exists_where_its_header_is_shipped() -> None:
    found = find_templates(template("impls/sm{}_fp8_mqa_logits", "sm{}_fp8_mqa_logits"))
    shipped = {"impls/sm90_fp8_mqa_logits.cuh", "impls/sm100_fp8_mqa_logits.cuh", "impls/sm120_bf16_gemm.cuh"}
    assert inventory(found, shipped) == {
        arch: (
            Kernel(
                op="fp8_mqa_logits", units=(f"impls/{arch}_fp8_mqa_logits.cuh",), entries=(f"{arch}_fp8_mqa_logits",)
            ),
        )
        for arch in ("sm90", "sm100")
    }


def test_a_function_for_any_architecture_apart_from_its_header_exists_likewise() -> None:
    found = find_templates(template("impls/sm{}_x", None) + instantiation("sm{}_x"))
    kernel = Kernel(op="x", units=("impls/sm120_x.cuh",), entries=("sm120_x",))
    assert inventory(found, {"impls/sm120_x.cuh", "impls/sm120_xx.cuh"}) == {"sm120": (kernel,)}


def test_a_header_that_is_not_shipped_is_no_unit_but_the_function_stays() -> None:
    found = find_templates(template("impls/sm120_bf16_gemm", "sm120_bf16_gemm_impl"))
    assert inventory(found, {"impls/sm90_bf16_gemm.cuh"}) == {
        "sm120": (Kernel(op="bf16_gemm", entries=("sm120_bf16_gemm_impl",)),)
    }


def test_without_headers_to_check_plain_includes_count_and_others_do_not() -> None:
    found = find_templates(
        template("impls/sm120_bf16_gemm", "sm120_bf16_gemm_impl") + template("impls/sm{}_x", "sm{}_x")
    )
    assert inventory(found, None) == {
        "sm120": (Kernel(op="bf16_gemm", units=("impls/sm120_bf16_gemm.cuh",), entries=("sm120_bf16_gemm_impl",)),)
    }


def test_names_outside_of_templates_are_no_kernels() -> None:
    # Such as GCC's pieces of a name, a file, a class and an error message.
    strings = (
        b"sm100_paged_mqa_\0_logits_metadata\0sm120_bf16_gemm.hpp\0SM120BF16GemmRuntime\0no sm120_bf16_gemm here\0"
    )
    found = find_templates(strings)
    assert (found.count, found.naming) == (0, ())


def test_a_template_built_twice_is_counted_twice_and_named_once() -> None:
    found = find_templates(template("impls/sm90_x", "sm90_x") * 2)
    assert found.count == 2
    assert found.naming == (Template(includes=("impls/sm90_x.cuh",), entries=("sm90_x",)),)


def test_a_file_made_of_names_is_refused() -> None:
    with pytest.raises(Unreadable, match="strings name kernels"):
        find_templates(b"".join(b"auto x = &sm120_op%d;\0" % number for number in range(MOST_STRINGS + 1)))


@pytest.mark.parametrize(
    ("name", "arch", "op"),
    [
        ("impls/sm120_bf16_gemm.cuh", "sm120", "bf16_gemm"),
        ("scheduler/sm90_paged_mqa_logits.cuh", "sm90", "paged_mqa_logits"),
        ("sm100_fp8_gemm_1d1d_impl", "sm100", "fp8_gemm_1d1d"),
        ("sched::smxx_paged_mqa_logits_metadata", "smxx", "paged_mqa_logits_metadata"),
        ("sm{}_fp8_mqa_logits", "sm{}", "fp8_mqa_logits"),
    ],
)
def test_a_name_holds_an_architecture_and_an_operation(name: str, arch: str, op: str) -> None:
    assert arch_and_op(name) == (arch, op)


def test_a_name_without_an_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match="transpose_fp32"):
        arch_and_op("transpose_fp32")
