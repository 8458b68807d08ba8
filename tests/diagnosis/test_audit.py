from __future__ import annotations

import pytest

from bisector import reference
from bisector.diagnosis.audit import audit
from bisector.diagnosis.manifest import launch
from bisector.diagnosis.workarounds import read, shipped
from bisector.errors import ConfigError
from bisector.results import Audit, Flag


def judged(text: str) -> Audit:
    return audit(launch(text), shipped())


def found(text: str) -> list[tuple[int, str]]:
    return [(flag.line, flag.flag) for flag in judged(text).flags]


RUN = r"""#!/bin/sh
# --disable-custom-all-reduce would be one, but this is a comment
export NCCL_P2P_DISABLE=1   # --enforce-eager
docker run --gpus all --rm --ipc=host \
  -e VLLM_USE_DEEP_GEMM=0 --env "VLLM_ATTENTION_BACKEND=FLASHINFER" --env-file prod.env \
  -eNCCL_NVLS_ENABLE=0 --env=CUDA_LAUNCH_BLOCKING=1 \
  -p 8000:8000 vllm/vllm-openai:nightly \
  --model 'a model' --enforce_eager --gpu-memory-utilization=0.70 --max-num-seqs "1" \
  --no-enable-prefix-caching --compilation-config '{"cudagraph_mode": "NONE"}' && echo "it's up"
"""


def test_a_docker_run_in_a_script() -> None:
    assert found(RUN) == [
        (3, "NCCL_P2P_DISABLE=1"),
        (5, "VLLM_USE_DEEP_GEMM=0"),
        (5, "VLLM_ATTENTION_BACKEND=FLASHINFER"),
        (6, "NCCL_NVLS_ENABLE=0"),
        (6, "CUDA_LAUNCH_BLOCKING=1"),
        (8, "--enforce-eager"),
        (8, "--gpu-memory-utilization=0.70"),
        (8, "--max-num-seqs 1"),
        (9, "--no-enable-prefix-caching"),
        (9, '--compilation-config {"cudagraph_mode": "NONE"}'),
    ]
    assert judged(RUN).elsewhere == ("prod.env",)


COMPOSE = """\
x-shared: &shared
  environment:
    NCCL_P2P_DISABLE: "1"
services:
  vllm:
    <<: *shared
    image: vllm/vllm-openai:nightly
    env_file: [.env]
    command: >
      --model m
      --enforce-eager
      --max-num-seqs 2
  second:
    environment:
      - VLLM_USE_V1=0
      - PASSED_THROUGH
    command: ["--model", "m", "--disable-custom-all-reduce", "--gpu-memory-utilization", "0.97"]
  third:
    entrypoint: [sh, -c, "vllm serve m --enforce-eager"]
    command: |
      # --disable-log-stats
      --model m \\
      --no-async-scheduling
"""


def test_a_compose_file() -> None:
    assert found(COMPOSE) == [
        (3, "NCCL_P2P_DISABLE=1"),
        (11, "--enforce-eager"),
        (12, "--max-num-seqs 2"),
        (15, "VLLM_USE_V1=0"),
        (17, "--disable-custom-all-reduce"),
        (19, "--enforce-eager"),
        (23, "--no-async-scheduling"),
    ]
    assert judged(COMPOSE).elsewhere == (".env",)


KUBERNETES = """\
apiVersion: v1
kind: Pod
spec:
  containers:
    - name: vllm
      args: ["--model", "m", "--enforce-eager"]
      envFrom:
        - secretRef: {name: tokens}
      env:
        - name: VLLM_USE_DEEP_GEMM
          value: "0"
        - name: HF_TOKEN
          valueFrom: {secretKeyRef: {name: hf, key: token}}
"""


def test_a_kubernetes_manifest() -> None:
    assert found(KUBERNETES) == [(6, "--enforce-eager"), (10, "VLLM_USE_DEEP_GEMM=0")]
    assert judged(KUBERNETES).elsewhere == ("tokens",)


def test_what_docker_inspect_prints() -> None:
    assert found('[{"Args": ["serve", "m", "--enforce-eager"],\n "Config": {"Env": ["NCCL_P2P_DISABLE=1"]}}]') == [
        (1, "--enforce-eager"),
        (2, "NCCL_P2P_DISABLE=1"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[profile]\narguments = ["--tensor-parallel-size", "2", "--max-num-seqs", "1"]\n',
        '[[flags]]\nflag = "--max-num-seqs"\nvalue = 1\n',
        '[flags]\n"--max-num-seqs" = { value = 1, why = "memory" }\n',
        "[Service]\nExecStart=/usr/bin/vllm serve m --max-num-seqs 1\n",
        'ENTRYPOINT ["vllm", "serve", "--max-num-seqs", "1"]\n',
        "vllm serve m --max-num-seqs\\\r\n 1\r\n",
    ],
)
def test_profiles_units_and_dockerfiles(text: str) -> None:
    assert [flag for _, flag in found(text)] == ["--max-num-seqs 1"]


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --gpu-memory-utilization 0.95 --max-num-seqs 64 --tensor-parallel-size 2",
        "docker run -e VLLM_USE_DEEP_GEMM=1 -e NCCL_P2P_DISABLE=0 --no-healthcheck vllm/vllm-openai:nightly",
        "docker run -e VLLM_USE_DEEP_GEMM vllm/vllm-openai:nightly",
        "echo 'an --enforce-eager inside a sentence is one word'",
        "# --enforce-eager",
        "",
        "services: {",
        "\x07\xff",
    ],
)
def test_settings_that_are_no_workarounds(text: str) -> None:
    assert found(text) == []


def test_aliases_cannot_multiply() -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
    )
    assert found(f"{bomb}services:\n  v:\n    command: --enforce-eager\n") == [(13, "--enforce-eager")]


@pytest.mark.parametrize("workaround", reference.load("workarounds")["workaround"], ids=lambda each: each["name"])
def test_every_workaround_says_why_until_when_and_at_what_cost(workaround: dict[str, str]) -> None:
    assert all(workaround[key].endswith(".") for key in ("why", "remove_when", "cost"))


@pytest.mark.parametrize(
    ("change", "says"), [({"colour": "red"}, "colour"), ({"name": "("}, "no regular expression"), ({"cost": 3}, "cost")]
)
def test_a_mistake_in_the_list_is_named(change: dict[str, object], says: str) -> None:
    entry = {"name": "--a", "why": "w.", "remove_when": "r.", "cost": "c."}
    with pytest.raises(ConfigError, match=says):
        read({"workaround": [entry | change]})


def test_a_flag_tells_everything() -> None:
    [flag] = judged("vllm serve m --enforce-eager").flags
    assert isinstance(flag, Flag)
    assert flag.kind == "flag"
    assert "graph" in flag.why
    assert "without it" in flag.remove_when
    assert "slower" in flag.cost
