"""Builds of vLLM held in memory, as a wheel or an image would show them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bisector.errors import Unreadable
from bisector.model import Digest, EvidenceKind
from bisector.ports import FoundFiles, Selection
from tests.kernels.elf import for_archs, headers_for

VENDORED = "vllm/third_party/deep_gemm"
GATE = b'''
class CudaPlatformBase(Platform):
    @classmethod
    def support_deep_gemm(cls) -> bool:
        """Currently, only Hopper and Blackwell GPUs are supported."""
        return (
            cls.is_device_capability(90)
            or cls.is_device_capability_family(100)
            or cls.is_device_capability_family(120)
        )

    @classmethod
    def other(cls) -> bool:
        return True
'''
VERSION_MODULE = b"""
__version__ = version = '0.27.0'
__version_tuple__ = version_tuple = (0, 27, 0)

__commit_id__ = commit_id = 'g4bdc8a788'
"""
METADATA = b"""Metadata-Version: 2.4
Name: vllm
Version: 0.27.0
Requires-Dist: torch==2.13.0

# vLLM
"""


class Holding:
    """An `Artifact` that holds its files in memory, counts what is read of them, and may have damaged ones."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        evidence: EvidenceKind = EvidenceKind.WHEEL,
        damaged: Mapping[str, Unreadable] | None = None,
    ) -> None:
        self._files = files
        self._evidence = evidence
        self._damaged = damaged or {}
        self.reads: list[tuple[str, ...]] = []

    @property
    def evidence(self) -> EvidenceKind:
        return self._evidence

    async def digest(self) -> Digest:
        return Digest("sha256:" + hashlib.sha256(repr(sorted(self._files.items())).encode()).hexdigest())

    async def select(self, selection: Selection) -> FoundFiles:
        listed = {path: len(content) for path, content in sorted(self._files.items()) if selection.lists(path)}
        wanted = tuple(selection.reads(tuple(listed)))
        self.reads.append(wanted)
        for path in wanted:
            if path in self._damaged:
                raise self._damaged[path]
        contents = {path: self._files[path] for path in wanted}
        return FoundFiles(listed=listed, contents=contents, digest=await self.digest())


def build(
    *archs: str,
    library: bytes | None = None,
    name: str = "_C.cpython-312-x86_64-linux-gnu.so",
    headers: list[str] | None = None,
    directory: str = VENDORED,
    prefix: str = "",
) -> dict[str, bytes]:
    """The files of a vLLM whose DeepGEMM has kernels for these architectures."""
    files = {
        "vllm/__init__.py": b"",
        "vllm/_C.abi3.so": b"",
        "vllm/_version.py": VERSION_MODULE,
        "vllm/platforms/cuda.py": GATE,
        "vllm/utils/deep_gemm.py": b"",
        "vllm-0.27.0.dist-info/METADATA": METADATA,
        f"{directory}/__init__.py": b"__version__ = '2.6.1'\n",
        f"{directory}/{name}": library if library is not None else for_archs(*archs),
        f"{directory}/include/deep_gemm/common/sm120_utils.cuh": b"",
    }
    for header in headers if headers is not None else headers_for(*archs):
        files[f"{directory}/include/deep_gemm/{header}"] = b""
    return {f"{prefix}{path}": content for path, content in files.items()}
