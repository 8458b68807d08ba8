"""What a build says of itself: the versions it pins, and the commit it was made from. Pure.

All of it is text that strangers wrote: it is read as data, and what is kept of it is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bisector.model import Package, Provenance

_LONGEST_TEXT = 200
_LONGEST_FILE = 4 << 20
_MOST_REQUIREMENTS = 1000

# Pinned or not, these decide what a kernel is compiled with, called through or compared to.
_ALWAYS = {
    "apache-tvm-ffi",
    "compressed-tensors",
    "numba",
    "quack-kernels",
    "tilelang",
    "torch",
    "torchaudio",
    "torchvision",
    "transformers",
    "triton",
    "xformers",
    "xgrammar",
}
_ALWAYS_BY_PREFIX = ("flashinfer-", "nvidia-")

# vLLM is served on Linux; a requirement for another system, such as s390x, would only repeat a name.
_TARGETS = tuple(
    {
        "extra": "",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": machine,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": "3.12",
        "python_full_version": "3.12.0",
    }
    for machine in ("x86_64", "aarch64")
)

_VERSION = re.compile(r"^__version__\s*(?::\s*str\s*)?=(?:\s*version\s*=)?\s*['\"]([^'\"\n]{1,200})['\"]", re.MULTILINE)
_COMMIT = re.compile(r"^__commit_id__\s*=(?:\s*commit_id\s*=)?\s*['\"]g?([0-9a-f]{7,40})['\"]", re.MULTILINE)
_COMMIT_IN_VERSION = re.compile(r"[+.]g([0-9a-f]{7,40})(?:\.|$)")
_MODIFIED = re.compile(r"[+.]d(\d{4})(\d\d)(\d\d)(?:\.|$)")


def module_version(source: bytes) -> str | None:
    """``__version__`` as a Python module assigns it."""
    match = _VERSION.search(_text(source))
    return match[1] if match else None


def provenance(version_module: bytes | None, metadata: bytes | None) -> Provenance:
    """Where a build says it comes from.

    Args:
        version_module: ``vllm/_version.py``, which setuptools-scm writes.
        metadata: ``METADATA``, whose version serves when there is no such module.
    """
    source = _text(version_module or b"")
    version = module_version(version_module or b"") or _metadata_version(metadata)
    commit = _COMMIT.search(source) or _COMMIT_IN_VERSION.search(version or "")
    return Provenance(version=version, commit=commit[1] if commit else None, local_build=_local_build(version or ""))


def packages(metadata: bytes | None, *, vllm: str | None, deep_gemm: str | None) -> tuple[Package, ...]:
    """The versions worth comparing between builds, sorted by name.

    Args:
        metadata: ``METADATA`` of the wheel: what it pins with ``==``, and whatever else matters to kernels.
        vllm: vLLM's own version.
        deep_gemm: The version of the DeepGEMM in it.
    """
    found = dict(_requirements(metadata)) if metadata else {}
    found |= {name: version for name, version in (("vllm", vllm), ("deep_gemm", deep_gemm)) if version}
    return tuple(Package(name=name, version=version) for name, version in sorted(found.items()))


def _text(source: bytes) -> str:
    return source[:_LONGEST_FILE].decode("utf-8", "replace")


def _metadata_version(metadata: bytes | None) -> str | None:
    version = parse_email(metadata[:_LONGEST_FILE])[0].get("version") if metadata else None
    return version[:_LONGEST_TEXT] if version else None


def _requirements(metadata: bytes) -> Iterator[tuple[str, str]]:
    raw, _ = parse_email(metadata[:_LONGEST_FILE])
    for line in raw.get("requires_dist", [])[:_MOST_REQUIREMENTS]:
        try:
            requirement = Requirement(line)
            if requirement.marker is not None and not any(map(requirement.marker.evaluate, _TARGETS)):
                continue
        except (ValueError, RecursionError):  # the latter for a hostile pile of parentheses
            continue
        name, pin = canonicalize_name(requirement.name), _pin(requirement)
        if pin is not None or name in _ALWAYS or name.startswith(_ALWAYS_BY_PREFIX):
            yield name[:_LONGEST_TEXT], (pin or str(requirement.specifier) or "any")[:_LONGEST_TEXT]


def _pin(requirement: Requirement) -> str | None:
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator == "==" and not specifiers[0].version.endswith(".*"):
        return specifiers[0].version
    return None


def _local_build(version: str) -> str | None:
    """In words, the mark that setuptools-scm leaves when files differed from the commit (``.d20260801``)."""
    match = _MODIFIED.search(version)
    if match is None:
        return None
    try:
        return f"built from a modified source tree on {date(int(match[1]), int(match[2]), int(match[3])).isoformat()}"
    except ValueError:
        return "built from a modified source tree"
