"""Spellings of architectures and GPUs, and the rules of what runs on what."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.arch import (
    KNOWN,
    Arch,
    CodeKind,
    Served,
    Target,
    deepgemm_arch,
    gate_admits,
    parse,
    parse_target,
    runs_on,
)
from bisector.errors import UnknownArchitecture
from bisector.reference import gpus

GPUS = gpus()


def name(spelling: str) -> str:
    return str(parse(spelling, GPUS))


# --- spellings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    [
        "sm120",
        "SM120",
        "sm_120",
        "sm-120",
        "sm 120",
        " 120 ",
        "12.0",
        "compute_120",
        "cc12.0",
        "Compute Capability 12.0",
    ],
)
def test_one_architecture_has_many_spellings(spelling: str) -> None:
    assert parse(spelling, {}) == Arch(12, 0)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("sm75", "sm75"),
        ("9.0", "sm90"),
        ("100", "sm100"),
        ("10.3", "sm103"),
        ("SM_120a", "sm120a"),
        ("12.0A", "sm120a"),
        ("compute_120f", "sm120f"),
        ("90a", "sm90a"),
    ],
)
def test_the_last_digit_is_the_minor_and_a_suffix_stays(spelling: str, expected: str) -> None:
    assert name(spelling) == expected


def test_an_architecture_has_a_name_for_files_and_one_for_compilers() -> None:
    arch = Arch(12, 0, "a")
    assert (arch.name, arch.code, str(arch)) == ("sm120", "sm_120a", "sm120a")


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        # what people write
        ("RTX PRO 6000", "sm120"),
        ("RTX 6000 Pro", "sm120"),
        ("RTX 6000 Blackwell", "sm120"),
        ("pro 6000", "sm120"),
        ("rtx5090", "sm120"),
        ("5090", "sm120"),
        ("RTX-5090", "sm120"),
        ("GeForce RTX 5070 Ti", "sm120"),
        ("DGX Spark", "sm121"),
        ("spark", "sm121"),
        ("h100 80gb", "sm90"),
        ("A10040GB", "sm80"),
        ("A10 24GB", "sm86"),
        ("rtx 4090 24GiB", "sm89"),
        ("DGX H100", "sm90"),
        ("GB200 NVL72", "sm100"),
        ("Jetson Thor", "sm110"),
        ("jetson orin", "sm87"),
        ("Quadro RTX 6000", "sm75"),
        ("RTX 6000 Ada", "sm89"),
        ("Quadro RTX A6000", "sm86"),
        ("RTX 8000", "sm75"),
        ("Rubin", "sm107"),
        # what nvidia-smi writes
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm120"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "sm120"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "sm120"),
        ("NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU", "sm120"),
        ("NVIDIA GeForce RTX 5090 D v2", "sm120"),
        ("NVIDIA GB10", "sm121"),
        ("NVIDIA RTX 6000 Ada Generation", "sm89"),
        ("NVIDIA L40S", "sm89"),
        ("NVIDIA A100-SXM4-80GB", "sm80"),
        ("NVIDIA A100 80GB PCIe", "sm80"),
        ("NVIDIA H100 80GB HBM3", "sm90"),
        ("NVIDIA H100 NVL", "sm90"),
        ("NVIDIA H20-3e", "sm90"),
        ("NVIDIA GH200 144G HBM3e", "sm90"),
        ("NVIDIA B300 SXM6 AC", "sm103"),
        ("Tesla V100-SXM2-16GB", "sm70"),
        ("Tesla T4", "sm75"),
        ("Orin (nvgpu)", "sm87"),
        ("NVIDIA Thor", "sm110"),
    ],
)
def test_a_gpu_stands_for_its_architecture(spelling: str, expected: str) -> None:
    assert name(spelling) == expected


@pytest.mark.parametrize(("gpu", "architecture"), GPUS.items())
def test_every_gpu_goes_by_its_own_name(gpu: str, architecture: str) -> None:
    squeezed = re.sub(r"\W", "", gpu).lower()
    assert {name(gpu), name(squeezed), name(f"NVIDIA {gpu}"), name(f"{squeezed}16gb")} == {architecture}


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("RTX 6000", "Quadro RTX 6000 (sm75), RTX 6000 Ada (sm89) or RTX PRO 6000 Blackwell (sm120)"),
        ("6000", "Quadro RTX 6000 (sm75), RTX 6000 Ada (sm89) or RTX PRO 6000 Blackwell (sm120)"),
        ("NVIDIA RTX 4500", "RTX 4500 Ada (sm89) or RTX PRO 4500 Blackwell (sm120)"),
        ("RTX 4000 SFF", "RTX 4000 SFF Ada (sm89) or RTX PRO 4000 SFF Blackwell (sm120)"),
    ],
)
def test_a_name_that_several_architectures_share_is_not_guessed(spelling: str, meant: str) -> None:
    with pytest.raises(UnknownArchitecture) as raised:
        parse(spelling, GPUS)
    assert raised.value.message == f"{spelling!r} may be {meant}"
    assert "whole name" in raised.value.hint


@pytest.mark.parametrize(
    ("spelling", "near"),
    [
        ("sm_125", ["sm120", "sm121"]),
        ("12", ["sm120", "sm121"]),
        ("13.7", ["sm103", "sm107"]),
        ("sm_86a", ["sm86"]),
        ("RTX 5095", ["GeForce RTX 5090"]),
        ("GTX 1080 Ti", ["GeForce RTX 2080 Ti"]),
        ("H1000", ["H100"]),
        ("L40X", ["L40", "L40S"]),
    ],
)
def test_what_is_unknown_is_told_with_what_is_near(spelling: str, near: list[str]) -> None:
    with pytest.raises(UnknownArchitecture) as raised:
        parse(spelling, GPUS)
    told = re.split(r"near it: |, | or |\.$", raised.value.message)
    assert set(near) <= set(told)


@pytest.mark.parametrize("spelling", ["", " ", "MI300X", "gfx942", "90f", "89a", "012.0", "1200", "sm_", "rtx"])
def test_what_is_nothing_is_unknown(spelling: str) -> None:
    with pytest.raises(UnknownArchitecture, match="is no known GPU or architecture"):
        parse(spelling, GPUS)


known = st.sampled_from(KNOWN)
suffixed = st.one_of(
    known,
    known.filter(lambda arch: arch >= Arch(9, 0)).map(lambda arch: Arch(arch.major, arch.minor, "a")),
    known.filter(lambda arch: arch >= Arch(10, 0)).map(lambda arch: Arch(arch.major, arch.minor, "f")),
)


@given(suffixed)
def test_an_architecture_reads_back_from_every_form_it_prints(arch: Arch) -> None:
    dotted = f"{arch.major}.{arch.minor}{arch.suffix}"
    assert {parse(form, {}) for form in (arch.code, str(arch), dotted)} == {arch}
    assert parse(arch.name, {}).suffix == ""


@given(st.text(max_size=30).filter(lambda text: not re.search("[0-9]", text)))
def test_text_without_a_digit_or_a_name_is_unknown_and_repeated(spelling: str) -> None:
    with pytest.raises(UnknownArchitecture, match=re.escape(repr(spelling))):
        parse(spelling, {})


# --- what runs on what -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "devices"),
    [
        # machine code: this major, from this minor on
        ("sm_70", "sm70 sm75"),
        ("sm_80", "sm80 sm86 sm88 sm89"),
        ("sm_86", "sm86 sm88 sm89"),
        ("sm_90", "sm90"),
        ("sm_100", "sm100 sm103 sm107"),
        ("sm_120", "sm120 sm121"),
        ("sm_121", "sm121"),
        ("sm_61", ""),
        # integrated GPUs are alone; Thor was renamed
        ("sm_87", "sm87"),
        ("sm_101", "sm101 sm110"),
        ("sm_110", "sm110"),
        # exactly this one
        ("sm_90a", "sm90"),
        ("sm_100a", "sm100"),
        ("sm_120a", "sm120"),
        ("compute_90a", "sm90"),
        ("compute_120a", "sm120"),
        # this family
        ("sm_100f", "sm100 sm103 sm107"),
        ("sm_103f", "sm103 sm107"),
        ("sm_110f", "sm110"),
        ("sm_120f", "sm120 sm121"),
        ("sm_121f", "sm121"),
        ("compute_100f", "sm100 sm103 sm107"),
        ("compute_120f", "sm120 sm121"),
        # PTX: this and everything after it
        ("compute_80", "sm80 sm86 sm87 sm88 sm89 sm90 sm100 sm101 sm103 sm107 sm110 sm120 sm121"),
        ("compute_90", "sm90 sm100 sm101 sm103 sm107 sm110 sm120 sm121"),
        ("compute_121", "sm121"),
        ("compute_130", ""),
    ],
)
def test_code_runs_where_nvidia_says(target: str, devices: str) -> None:
    assert [device.name for device in KNOWN if runs_on(parse_target(target), device)] == devices.split()


targets = st.builds(Target, kind=st.sampled_from(CodeKind), arch=suffixed)


@given(targets, known)
def test_a_narrower_suffix_never_runs_on_more(target: Target, device: Arch) -> None:
    wider = {"a": "f", "f": "", "": ""}[target.arch.suffix]
    widened = parse_target(str(target).rstrip("af") + wider)
    assert runs_on(target, device) <= runs_on(widened, device)


@given(targets, known)
def test_machine_code_never_runs_on_more_than_its_ptx(target: Target, device: Arch) -> None:
    machine = Target(kind=CodeKind.MACHINE, arch=target.arch)
    ptx = Target(kind=CodeKind.PTX, arch=target.arch)
    assert runs_on(machine, device) <= runs_on(ptx, device)


@given(targets)
def test_code_runs_on_its_own_architecture_and_on_none_before_it(target: Target) -> None:
    own = Arch(target.arch.major, target.arch.minor)
    assert next(device for device in KNOWN if runs_on(target, device)) == own


@given(known, known, known)
def test_ptx_that_runs_on_a_device_runs_on_every_newer_one(code: Arch, device: Arch, newer: Arch) -> None:
    ptx = Target(kind=CodeKind.PTX, arch=code)
    if device <= newer:
        assert runs_on(ptx, device) <= runs_on(ptx, newer)


@given(targets, suffixed)
def test_the_suffix_of_a_device_does_not_matter(target: Target, device: Arch) -> None:
    assert runs_on(target, device) == runs_on(target, Arch(device.major, device.minor))


@given(targets)
def test_a_target_reads_back_from_what_it_prints(target: Target) -> None:
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    "spelling", ["", "120", "sm120", "sm_", "sm_1", "sm_12.0", "sm_120b", "lto_90", "sm_9000", "SM_90"]
)
def test_what_no_compiler_writes_is_no_target(spelling: str) -> None:
    with pytest.raises(UnknownArchitecture, match="is not a CUDA target"):
        parse_target(spelling)


# --- DeepGEMM --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "by"),
    [
        ("sm90", "sm90"),
        ("sm100", "sm100"),
        ("sm101", "sm100"),
        ("sm103", "sm100"),
        ("sm107", "sm100"),
        ("sm120", "sm120"),
        ("sm120a", "sm120"),
        ("sm121", "sm120"),
    ],
)
def test_deepgemm_serves_by_the_major_number(device: str, by: str) -> None:
    served = deepgemm_arch(parse(device, {}))
    assert served is not None
    assert served.by.name == by
    assert (served.note is None) == device.startswith(by)


@pytest.mark.parametrize("device", ["sm70", "sm75", "sm80", "sm89", "sm110"])
def test_deepgemm_does_not_know_the_others(device: str) -> None:
    assert deepgemm_arch(parse(device, {})) is None


def test_a_device_served_by_another_architecture_is_told_the_condition() -> None:
    assert deepgemm_arch(Arch(12, 1)) == Served(
        by=Arch(12, 0),
        note="sm121 is served by DeepGEMM's sm120 kernels (needs a CUDA 12.9 or newer compiler)",
    )


@pytest.mark.parametrize(
    ("device", "admitted"),
    [
        ("sm89", False),
        ("sm90", True),
        ("sm90a", True),
        ("sm100", True),
        ("sm103", True),
        ("sm110", False),
        ("sm120", True),
        ("sm121", True),
    ],
)
def test_the_gate_takes_capabilities_exactly_and_families_by_major(device: str, *, admitted: bool) -> None:
    gate = {"capabilities": ("sm90",), "families": ("sm100", "sm120")}
    assert gate_admits(parse(device, {}), **gate) is admitted


def test_an_exact_capability_admits_no_sibling() -> None:
    assert not gate_admits(Arch(12, 1), capabilities=("sm120",), families=())
    assert not gate_admits(Arch(12, 0), capabilities=(), families=())


def test_a_gate_may_name_an_architecture_nobody_knows_yet() -> None:
    assert gate_admits(Arch(13, 1), capabilities=(), families=("sm130",))


def test_a_gate_that_names_no_architecture_is_refused() -> None:
    with pytest.raises(UnknownArchitecture, match="'hopper' is not an architecture"):
        gate_admits(Arch(9, 0), capabilities=("hopper",), families=())
