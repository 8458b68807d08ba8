from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.results import Certainty, Layer
from tests.diagnosis.logs import CASES, ids, read, read_lines

SHARED = Path(__file__).parents[3] / "shared" / "cases"

BOOTS = {
    "docker_attn_backend_flag": [],
    "docker_bad_flag": ["flag_unknown"],
    "docker_bad_flag_value": ["flag_value_invalid"],
    "docker_default_shm": ["shm_too_small"],
    "docker_engine_killed_mid_bench": ["worker_killed"],
    "docker_healthy_eager": [],
    "docker_healthy_eager_quiet": [],
    "docker_healthy_then_engine_dead_on_first_request_exit0": ["cxx_compiler_missing"],
    "docker_kv_too_small": ["kv_cache_too_small"],
    "docker_ladder_16256": [],
    "docker_ladder_16384": ["kv_cache_too_small"],
    "docker_maxlen_over_derived": ["max_model_len_over_derived"],
    "docker_noneager_ci_env": [],
    "docker_noneager_dynamo_disabled": ["torch_compile_disabled"],
    "docker_oom_1400m": ["killed_silently"],
    "docker_oom_300m": ["unknown"],
    "docker_oom_900m": ["killed_silently"],
    "docker_shm1g_healthy_eager_with_4_benches": [],
    "docker_shm1g_healthy_noneager_with_4_benches": [],
    "docker_worker_killed": ["worker_killed"],
    "docker_wrong_model_path": ["model_not_found"],
}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_cause_behind_real_lines(case: dict[str, Any]) -> None:
    diagnosis = read_lines(*case["lines"])
    if "cause" not in case:
        assert diagnosis.causes == ()
        return
    root = diagnosis.causes[0]
    assert (root.id, root.layer) == (case["cause"], case["layer"])
    assert root.arch == case.get("arch")
    assert set(case.get("also", ())) <= set(ids(diagnosis))
    assert 1 <= root.line <= len(case["lines"])
    assert diagnosis.exit_code == 0


def test_numbers_come_from_the_line() -> None:
    [kv] = read_lines(*next(case["lines"] for case in CASES if case.get("cause") == "kv_cache_too_small")).causes
    assert "262144" in kv.title
    assert "34736" in kv.title
    assert "24.0 GiB" in kv.meaning
    assert "--max-model-len 34736" in kv.advice
    [taken] = read_lines(*next(case["lines"] for case in CASES if case.get("cause") == "gpu_memory_taken")).causes
    assert "31.44 of 47.38 GiB" in taken.title
    assert "15.94 GiB are in use" in taken.meaning
    assert "below 0.66" in taken.advice


def test_one_line_with_two_meanings_names_both_and_is_sure_of_neither() -> None:
    diagnosis = read_lines(
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
    )
    assert ids(diagnosis) == ["torch_arch_dropped", "image_arch_not_built"]
    assert {cause.certainty for cause in diagnosis.causes} == {Certainty.POSSIBLE}


def test_the_gpu_named_elsewhere_in_the_log_is_the_arch() -> None:
    diagnosis = read_lines(
        "GPU 0: NVIDIA GeForce RTX 5090",
        "RuntimeError: Assertion error (/w/deepgemm-src/csrc/apis/layout.hpp:60): Unknown SF transformation",
    )
    assert [(cause.id, cause.arch) for cause in diagnosis.causes] == [("deepgemm_no_arch_kernels", "sm120")]
    assert "bisector check IMAGE --arch sm120" in diagnosis.causes[0].advice


def development_cases() -> list[dict[str, Any]]:
    path = SHARED / "dev.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.mark.skipif(not SHARED.exists(), reason="the development cases are not beside this checkout")
@pytest.mark.parametrize("case", development_cases(), ids=lambda case: case["id"])
def test_every_development_case(case: dict[str, Any]) -> None:
    expected = [] if case["cause_code"] == "not_a_fault" else [case["cause_code"]]
    assert ids(read_lines(*case["lines"]))[:1] == expected


@pytest.mark.skipif(not SHARED.exists(), reason="the recorded boots are not beside this checkout")
@pytest.mark.parametrize("name", BOOTS)
def test_every_recorded_boot(name: str) -> None:
    assert ids(read((SHARED / "boot_logs" / f"{name}.log").read_bytes())) == BOOTS[name]


def test_every_layer_has_a_case() -> None:
    assert {case["layer"] for case in CASES if "layer" in case} == set(Layer)
