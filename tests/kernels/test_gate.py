"""vLLM's gate, in the forms its sources have had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.kernels.gate import read_gate
from bisector.model import Gate
from tests.kernels.builds import GATE


def platform(body: str) -> bytes:
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    return f"class Cuda:\n    @classmethod\n    def support_deep_gemm(cls) -> bool:\n{indented}\n\n    x = 1\n".encode()


def test_since_0_24_three_kinds_of_gpu_are_admitted() -> None:
    assert read_gate(GATE) == Gate(capabilities=("sm90",), families=("sm100", "sm120"))


def test_before_two_were() -> None:
    gate = read_gate(
        platform('"""Only Hopper."""\nreturn cls.is_device_capability(90) or cls.is_device_capability_family(100)')
    )
    assert gate == Gate(capabilities=("sm90",), families=("sm100",))


def test_until_0_19_the_gate_stood_elsewhere() -> None:
    source = b'''
@functools.cache
def is_deep_gemm_supported() -> bool:
    """Return `True` if DeepGEMM is supported on the current platform.
    Currently, only Hopper and Blackwell GPUs are supported.
    """
    is_supported_arch = current_platform.is_cuda() and (
        current_platform.is_device_capability(90)
        or current_platform.is_device_capability(100)
    )
    return envs.VLLM_USE_DEEP_GEMM and has_deep_gemm() and is_supported_arch

@functools.cache
def is_deep_gemm_e8m0_used() -> bool:
    return False
'''
    assert read_gate(source) == Gate(capabilities=("sm90", "sm100"))


def test_a_capability_may_be_a_pair() -> None:
    assert read_gate(platform("return cls.is_device_capability((9, 0))")) == Gate(capabilities=("sm90",))


def test_a_gate_that_admits_nothing_is_understood() -> None:
    assert read_gate(platform("return False")) == Gate()


def test_a_source_without_a_gate_has_none() -> None:
    assert read_gate(b"class CudaPlatformBase:\n    pass\n") is None


@pytest.mark.parametrize(
    "body",
    [
        "return True",
        "return cls.has_device_capability(90)",
        "return not cls.is_device_capability(90)",
        "return cls.is_device_capability(90) and cls.is_device_capability(100)",
        "return cls.is_device_capability(90, device_id=1)",
        "return cls.is_device_capability(capability)",
        "if cls.is_device_capability_family(120):\n    return False\nreturn cls.is_device_capability(90)",
        "return",
        "pass",
        "x = x\nreturn x",
        "return (((",
        "return " + "(" * 3000 + "1" + ")" * 3000,
        "return " + "-" * 3900 + "1",
        "return cls.is_device_capability(" + "9" * 3900 + ")",
        "return cls.is_device_capability(90)\n" + "#" * 5000,
    ],
)
def test_what_is_not_understood_is_said_to_be_so(body: str) -> None:
    assert read_gate(platform(body)) == Gate(readable=False)


@given(st.binary(max_size=200) | st.text(alphabet="clsorand ()90.=\n\t:return", max_size=200).map(str.encode))
def test_no_source_breaks_it(body: bytes) -> None:
    gate = read_gate(b"    def support_deep_gemm(cls):\n        " + body)
    assert gate is not None
    assert not (gate.readable is False and (gate.capabilities or gate.families))
