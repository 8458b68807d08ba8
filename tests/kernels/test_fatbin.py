"""Device code in ahead-of-time libraries."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import Unreadable
from bisector.kernels.fatbin import find_targets, in_order
from bisector.kernels.parser import LibraryParser
from bisector.model import CudaTarget
from tests.kernels.fatbin import ARCH_SPECIFIC, FAMILY_SPECIFIC, LTO, PTX, SASS, ZSTD, code, container


def test_targets_are_counted_over_all_containers() -> None:
    section = (
        container(code(SASS, 90, ARCH_SPECIFIC), code(PTX, 80, ZSTD, header=80, payload=b"compressed"))
        + container(code(SASS, 120, FAMILY_SPECIFIC, header=112), code(SASS, 120, header=112))
        + container(code(SASS, 90, ARCH_SPECIFIC), code(LTO, 90, header=120))
    )
    assert in_order(find_targets(section)) == (
        CudaTarget(target="sm_90a", count=2),
        CudaTarget(target="sm_120", count=1),
        CudaTarget(target="sm_120f", count=1),
        CudaTarget(target="compute_80", count=1),
        CudaTarget(target="lto_90", count=1),
    )


def test_padding_between_and_after_containers_is_passed_over() -> None:
    section = container(code(SASS, 75)) + bytes(24) + container(code(SASS, 75)) + bytes(13)
    assert find_targets(section) == Counter({"sm_75": 2})


def test_an_empty_section_holds_nothing() -> None:
    assert not find_targets(b"")


def test_code_of_a_kind_that_no_gpu_runs_is_not_counted() -> None:
    assert find_targets(container(code(0x40, 90), code(SASS, 90))) == Counter({"sm_90": 1})


@pytest.mark.parametrize(
    "section",
    [
        b"no container at all, by far",
        container(code(SASS, 90))[:-8],
        struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0),
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 2**63),
        container(b"less than an entry"),
        container(code(SASS, 90)[:40] + bytes(40)),
        container(struct.pack("<HHIQ12xI8xQ16x", SASS, 0x0101, 64, 2**60, 90, 0)),
        container(struct.pack("<HHIQ12xI8xQ16x", SASS, 0x0101, 0, 64, 90, 0)),
    ],
    ids=["text", "cut", "no header", "too long", "short entry", "zeroed entry", "long entry", "entry without header"],
)
def test_damage_is_told_and_never_taken_for_emptiness(section: bytes) -> None:
    with pytest.raises(Unreadable, match="damaged at offset"):
        find_targets(section)


@given(st.binary(max_size=400) | st.binary(max_size=200).map(lambda tail: container(code(SASS, 90)) + tail))
def test_no_bytes_break_the_walk(section: bytes) -> None:
    try:
        found = find_targets(section)
    except Unreadable:
        return
    assert 64 * found.total() <= len(section)


async def test_what_nvidia_s_compiler_writes_is_read(tmp_path: Path) -> None:
    if not (nvcc := shutil.which("nvcc")):
        pytest.skip("nvcc is not on this machine")
    source, compiled = tmp_path / "k.cu", tmp_path / "k.o"
    source.write_text('extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2.f; }\n')
    wanted = [
        "arch=compute_120a,code=sm_120a",
        "arch=compute_120f,code=sm_120f",
        "arch=compute_90,code=[sm_90,compute_90]",
    ]
    await anyio.run_process([nvcc, "-c", str(source), "-o", str(compiled), *(f"-gencode={one}" for one in wanted)])
    async with LibraryParser() as parser:
        found = await parser.targets(compiled.read_bytes(), name="k.o")
    assert {target.target for target in found} == {"sm_90", "sm_120a", "sm_120f", "compute_90"}
