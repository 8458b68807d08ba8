"""Versions and provenance, as builds declare them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.kernels.packages import module_version, packages, provenance
from bisector.model import Package, Provenance
from tests.kernels.builds import VERSION_MODULE

METADATA = b"""Metadata-Version: 2.4
Name: vllm
Version: 0.32.0
Requires-Dist: regex
Requires-Dist: requests>=2.33.0
Requires-Dist: transformers<5.20.0,>=5.16.1
Requires-Dist: protobuf!=6.30.*,>=5.29.6; platform_machine != "s390x"
Requires-Dist: protobuf==7.36.1; platform_machine == "s390x"
Requires-Dist: lark==1.2.2
Requires-Dist: xgrammar==0.2.8; platform_machine == "x86_64" or platform_machine == "aarch64"
Requires-Dist: torch==2.13.0
Requires-Dist: flashinfer-python==0.7.0.post1
Requires-Dist: nvidia-cudnn-frontend>=1.19.1
Requires-Dist: nvidia-cutlass-dsl[cu13]==4.8.0
Requires-Dist: outlines_core==0.2.14
Requires-Dist: setuptools==80.*
Requires-Dist: zentorch==2.13.0.1; extra == "zen"
Requires-Dist: this is no requirement

# vLLM

Requires-Dist: triton==0.0.0
"""


def test_pins_and_what_matters_to_kernels_are_kept() -> None:
    found = packages(METADATA, vllm="0.32.0", deep_gemm="2.8.0")
    assert {package.name: package.version for package in found} == {
        "deep_gemm": "2.8.0",
        "flashinfer-python": "0.7.0.post1",
        "lark": "1.2.2",
        "nvidia-cudnn-frontend": ">=1.19.1",
        "nvidia-cutlass-dsl": "4.8.0",
        "outlines-core": "0.2.14",
        "torch": "2.13.0",
        "transformers": "<5.20.0,>=5.16.1",
        "vllm": "0.32.0",
        "xgrammar": "0.2.8",
    }
    assert [package.name for package in found] == sorted(package.name for package in found)


def test_without_metadata_there_is_what_is_known_otherwise() -> None:
    assert packages(None, vllm=None, deep_gemm="2.6.1") == (Package(name="deep_gemm", version="2.6.1"),)


def test_a_hostile_requirement_is_passed_over() -> None:
    bomb = b"Requires-Dist: torch; " + b"(" * 20_000 + b"os_name == 'posix'" + b")" * 20_000
    assert packages(b"Name: vllm\n" + bomb, vllm=None, deep_gemm=None) == ()


def test_what_is_kept_is_short() -> None:
    (package,) = packages(b"Name: vllm\nRequires-Dist: torch==1." + b"0" * 10_000, vllm=None, deep_gemm=None)
    assert len(package.version) <= 200


def test_a_release_tells_its_version_and_commit() -> None:
    assert provenance(VERSION_MODULE, None) == Provenance(version="0.27.0", commit="4bdc8a788")


@pytest.mark.parametrize(
    ("version", "commit", "local_build"),
    [
        ("0.27.1.dev123+g4bdc8a788.d20260801.cu129", "4bdc8a788", "built from a modified source tree on 2026-08-01"),
        ("0.27.1.dev123+g4bdc8a788.cu129", "4bdc8a788", None),
        ("0.27.0+cu129", None, None),
        ("0.27.0+d20260801", None, "built from a modified source tree on 2026-08-01"),
        ("0.27.1+gffd46bfab.d20269999", "ffd46bfab", "built from a modified source tree"),
    ],
)
def test_a_version_alone_tells_them_too(version: str, commit: str | None, local_build: str | None) -> None:
    source = f"__version__ = version = {version!r}\n__commit_id__ = commit_id = None\n".encode()
    assert provenance(source, None) == Provenance(version=version, commit=commit, local_build=local_build)


def test_the_metadata_s_version_serves_when_the_module_is_missing() -> None:
    assert provenance(None, METADATA) == Provenance(version="0.32.0")


def test_an_annotation_is_no_version() -> None:
    assert module_version(b'__all__ = ["__version__"]\n__version__: str\n__version__ = "2.8.0"\n') == "2.8.0"
    assert module_version(b"__version__: str\n") is None


@given(st.binary(max_size=300))
def test_no_bytes_break_the_readers(source: bytes) -> None:
    provenance(b"__version__ = '" + source + b"'\n", b"Version: 1\nRequires-Dist: torch " + source)
    packages(b"Requires-Dist: torch " + source + b"\nRequires-Dist: lark==1", vllm=None, deep_gemm=None)
