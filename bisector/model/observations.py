"""What was seen in an artifact, once and for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from bisector.model.builds import (
    Digest,
)


class Depth(StrEnum):
    """How far an artifact was read.

    ``names`` is the cheap look: which files are there. It is right for "any kernel of this architecture at all".
    ``kernels`` also opens the library and the version files.
    """

    NAMES = "names"
    KERNELS = "kernels"


class EvidenceKind(StrEnum):
    """What kind of artifact an observation was made on."""

    IMAGE = "image"
    WHEEL = "wheel"
    FILE = "file"


class LibraryStatus(StrEnum):
    """The three answers about a bundled library; "without this architecture" is read from the inventory."""

    PRESENT = "present"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One operation of one architecture, with the evidence for it.

    Attributes:
        op: The operation without its architecture: ``bf16_gemm``.
        units: The headers a JIT template includes for it and the package ships: ``impls/sm120_bf16_gemm.cuh``.
        entries: The functions a JIT template instantiates for it: ``sm120_bf16_gemm_impl``.
    """

    op: str
    units: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


ANY_ARCH = "smxx"
"""The key of kernels that serve every architecture."""


Inventory: TypeAlias = Mapping[str, tuple[Kernel, ...]]
"""Architecture (``sm120``, or ``ANY_ARCH``) → its operations, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepGemm:
    """The bundled DeepGEMM as it was found.

    Attributes:
        status: Present, absent, or there and unreadable.
        reason: Why it is absent or unreadable, in one sentence.
        version: Its own ``__version__``.
        files: The paths of its shared libraries in the artifact.
        headers: The JIT headers it ships, relative to ``include/deep_gemm``: ``impls/sm120_bf16_gemm.cuh``.
        templates: How many JIT templates the library holds; ``None`` when the library was not opened.
    """

    status: LibraryStatus
    reason: str | None = None
    version: str | None = None
    files: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    templates: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Which GPUs vLLM sends to DeepGEMM, read from ``vllm/platforms/cuda.py``.

    Attributes:
        capabilities: Architectures named exactly, such as ``sm90``.
        families: Families named by their base, such as ``sm120`` for every 12.x.
        readable: False when the function was there in a form that could not be understood.
    """

    capabilities: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A dependency as the build declares it: ``torch`` ``==2.14.0``."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the build says it comes from.

    Attributes:
        version: vLLM's own version.
        commit: The abbreviated or full commit in ``vllm/_version.py``.
        local_build: What a local-build mark in the version means, in words, or ``None``.
    """

    version: str | None = None
    commit: str | None = None
    local_build: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaTarget:
    """Device code of one target in an ahead-of-time library.

    Attributes:
        target: ``sm_90a`` for machine code, ``compute_80`` for PTX.
        count: How many code objects of it.
    """

    target: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaLibrary:
    """An ahead-of-time library and the device code it carries."""

    path: str
    size: int
    targets: tuple[CudaTarget, ...]
    unreadable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was seen in one artifact, once and for all.

    Attributes:
        digest: The content address of the artifact it was seen in.
        depth: How far it was read.
        probe_version: The version of the code that read it; a newer one reads again.
        evidence: What kind of artifact it was.
        deep_gemm: The library.
        kernels: Its operations by architecture; empty at depth ``names``.
        gate: vLLM's gate; ``None`` when there was none to read.
        packages: Pinned and bundled packages.
        provenance: Version and commit.
        libraries: Ahead-of-time libraries, when they were asked for.
    """

    digest: Digest
    depth: Depth
    probe_version: int
    evidence: EvidenceKind
    deep_gemm: DeepGemm
    kernels: Inventory = field(default_factory=dict)
    gate: Gate | None = None
    packages: tuple[Package, ...] = ()
    provenance: Provenance = Provenance()
    libraries: tuple[CudaLibrary, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSummary:
    """The part of an observation that a timeline shows: it can be told without the whole.

    Attributes:
        status: Whether DeepGEMM is bundled.
        depth: How far the build was read.
        reason: Why the library is absent or unreadable.
        operations: Architecture → how many operations it has, or kernel headers at depth ``names``; none: not there.
        commit: The commit, as the artifact itself says.
    """

    status: LibraryStatus
    depth: Depth
    reason: str | None = None
    operations: Mapping[str, int] = field(default_factory=dict)
    commit: str | None = None
