from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.boot.log_facts import LogReading
from bisector.trials import Chosen, LogFacts, Phase

EAGER = """\
2026-11-29T11:27:45.570737237Z (APIServer pid=1) INFO 11-29 11:27:45 [api_utils.py:286] non-default args: \
{'max_model_len': 4096, 'enforce_eager': True, 'tensor_parallel_size': 2}
(APIServer pid=1) INFO 11-29 11:27:53 [model.py:2152] Using max model len 4096
(EngineCore pid=23) INFO 11-29 11:27:59 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: \
model='/models/tiny', tensor_parallel_size=2, enforce_eager=True, compilation_config={'mode': \
<CompilationMode.NONE: 0>, 'cudagraph_mode': <CUDAGraphMode.NONE: 0>}
(Worker_TP0 pid=37) INFO 11-29 11:53:35 [default_loader.py:501] Loading weights took 0.00 seconds
(EngineCore pid=25) INFO 11-29 11:54:11 [kv_cache_utils.py:2327] CPU KV cache size: 262,144 tokens, \
Maximum concurrency for 4,096 tokens per request: 64.00x
"""
GPU = """\
INFO 08-31 10:00:00 [core.py:93] Initializing a V1 LLM engine (v0.27.0) with config: tensor_parallel_size=2, \
enforce_eager=False, compilation_config={"cudagraph_mode": <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>}
(Worker_TP0 pid=9) INFO [cuda.py:300] Using FLASHINFER_MLA attention backend out of potential backends: \
['FLASHINFER_MLA', 'TRITON_MLA'].
(Worker_TP0 pid=9) INFO [nvfp4.py:70] Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of potential backends: \
['FLASHINFER_CUTLASS', 'MARLIN'].
(Worker_TP0 pid=9) INFO [gpu_model_runner.py:1] Model loading took 75.3 GiB memory and 60.1 seconds
(Worker_TP0 pid=9) INFO [gpu_worker.py:1] Available KV cache memory: 12.1 GiB
(EngineCore pid=8) INFO GPU KV cache size: 602,920 tokens
(EngineCore pid=8) INFO Maximum concurrency for 250,000 tokens per request: 2.41x
(Worker_TP0 pid=9) INFO [gpu_model_runner.py:2] Graph capturing finished in 12 secs, took 0.71 GiB
"""


def facts(text: str) -> LogFacts:
    reading = LogReading()
    reading.feed(text.encode())
    return reading.facts()


def test_the_log_of_a_cpu_server_is_read() -> None:
    assert facts(EAGER) == LogFacts(
        version="0.32.0",
        tensor_parallel=2,
        max_context=4096,
        kv_tokens=262_144,
        concurrency=64.0,
        eager=True,
        graphs="NONE",
    )


def test_the_log_of_a_gpu_server_is_read() -> None:
    assert facts(GPU) == LogFacts(
        version="0.27.0",
        tensor_parallel=2,
        kv_tokens=602_920,
        concurrency=2.41,
        eager=False,
        graphs="FULL_AND_PIECEWISE",
        captured=True,
        backends=(
            Chosen(role="attention", name="FLASHINFER_MLA", among=("FLASHINFER_MLA", "TRITON_MLA")),
            Chosen(role="NvFp4 MoE", name="FLASHINFER_CUTLASS", among=("FLASHINFER_CUTLASS", "MARLIN")),
        ),
    )


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("Based on the available memory, the estimated maximum model length is 16256. Try", "estimated_context", 16256),
        ("reserved 60.00 GiB memory for KV Cache and skipped memory profiling", "skipped_profiling", True),
        ("\x1b[32mINFO\x1b[0m Using max model len 250000", "max_context", 250_000),
    ],
)
def test_one_line_tells_one_thing(line: str, field: str, value: object) -> None:
    assert getattr(facts(line), field) == value


@pytest.mark.parametrize(
    "line",
    [
        "non-default args: {'enforce_eager': True}",
        "Reset SSM cache type to float32 for accelerated GDN mamba backend 'none'.",
        "distributed_init_method=file:///tmp/vllm_dist backend=gloo",
        "Cannot use AttentionBackendEnum.FLASH_ATTN backend on CPU.",
    ],
)
def test_what_was_asked_for_or_is_no_choice_is_not_a_fact(line: str) -> None:
    assert facts(line) == LogFacts()


def test_a_flag_that_is_off_does_not_mean_that_graphs_are_on() -> None:
    start = "Initializing a V1 LLM engine (v0.32.0) with config: "
    line = f"{start}enforce_eager=False, 'cudagraph_mode': <CUDAGraphMode.NONE: 0>"
    assert (facts(line).eager, facts(line).graphs, facts(line).captured) == (False, "NONE", False)


@given(st.lists(st.integers(0, len(GPU)), max_size=20))
def test_where_a_log_is_cut_does_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(GPU)]
    reading = LogReading()
    phases = [phase for a, b in pairwise(edges) for phase in reading.feed(GPU[a:b].encode())]
    assert phases == [Phase.WEIGHTS, Phase.PROFILED, Phase.GRAPHS]
    assert reading.facts() == facts(GPU)


@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange(noise: bytes) -> None:
    reading = LogReading()
    reading.feed(noise)
    assert reading.facts().kv_tokens is None
