"""Observations as Hypothesis draws them, and plain ones."""

from __future__ import annotations

from hypothesis import strategies as st

from bisector.model import (
    Build,
    CudaLibrary,
    CudaTarget,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Gate,
    Kernel,
    LibraryStatus,
    Observation,
    Package,
    Platform,
    Provenance,
)

_COUNTS = st.integers(min_value=0, max_value=2**63 - 1)
_TEXT = st.text(max_size=20)
_TEXTS = st.lists(_TEXT, max_size=4).map(tuple)
_MAYBE = st.none() | _TEXT
_OPERATIONS = st.lists(
    st.builds(Kernel, op=_TEXT, units=_TEXTS, entries=_TEXTS), max_size=4, unique_by=lambda kernel: kernel.op
).map(tuple)
_TARGETS = st.lists(st.builds(CudaTarget, target=_TEXT, count=_COUNTS), max_size=3).map(tuple)
_LIBRARIES = st.builds(CudaLibrary, path=_TEXT, size=_COUNTS, targets=_TARGETS, unreadable=_MAYBE)

OBSERVATIONS: st.SearchStrategy[Observation] = st.builds(
    Observation,
    digest=_TEXT.map(Digest),
    depth=st.sampled_from(Depth),
    probe_version=st.integers(min_value=0, max_value=2**31),
    evidence=st.sampled_from(EvidenceKind),
    deep_gemm=st.builds(
        DeepGemm,
        status=st.sampled_from(LibraryStatus),
        reason=_MAYBE,
        version=_MAYBE,
        files=_TEXTS,
        headers=_TEXTS,
        templates=st.none() | _COUNTS,
    ),
    kernels=st.dictionaries(_TEXT, _OPERATIONS, max_size=3),
    gate=st.none() | st.builds(Gate, capabilities=_TEXTS, families=_TEXTS, readable=st.booleans()),
    packages=st.lists(st.builds(Package, name=_TEXT, version=_TEXT), max_size=3).map(tuple),
    provenance=st.builds(Provenance, version=_MAYBE, commit=_MAYBE, local_build=_MAYBE),
    libraries=st.none() | st.lists(_LIBRARIES, max_size=2).map(tuple),
)


def an_observation(
    digest: str = "sha256:one",
    *operations: str,
    depth: Depth = Depth.KERNELS,
    status: LibraryStatus = LibraryStatus.PRESENT,
    version: int = 1,
) -> Observation:
    kernels = tuple(Kernel(op=op, units=(f"impls/sm120_{op}.cuh",)) for op in operations)
    return Observation(
        digest=Digest(digest),
        depth=depth,
        probe_version=version,
        evidence=EvidenceKind.WHEEL,
        deep_gemm=DeepGemm(status=status, version="2.5.0"),
        kernels={"sm120": kernels} if kernels else {},
        gate=Gate(capabilities=("sm90",), families=("sm120",)),
        packages=(Package(name="torch", version="==2.14.0"),),
        provenance=Provenance(version="0.27.0", commit="gabc123"),
    )


def a_build(name: str, digest: str | None = None) -> Build:
    return Build(
        id=name,
        source="pypi:vllm",
        spec=f"pypi:vllm=={name}",
        platform=Platform("linux/amd64"),
        location=None,
        digest=Digest(digest) if digest else None,
        pin=f"vllm=={name}",
    )
