"""Sets of kernels, their differences, and the questions answered by them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bisector.model import ANY_ARCH, Answer, Depth, Kernel, KernelSummary, LibraryStatus, Observation, Verdict
from bisector.results import PackageChange

_HEADER = re.compile(r"impls/(?P<arch>sm[^_]*)_")
"""How the name of a kernel's header begins: ``impls/sm120_bf16_gemm.cuh``."""


def operations(observation: Observation, arch: str) -> tuple[str, ...]:
    """The operations of one architecture, sorted."""
    return tuple(sorted(kernel.op for kernel in observation.kernels.get(arch, ())))


def lost(before: Observation, after: Observation, arch: str) -> tuple[str, ...]:
    """The operations that ``before`` has for an architecture and ``after`` has no more, sorted.

    Headers and functions are renamed from one release to the next, so a kernel is lost only when its entry and its
    units are both gone. A unit that stays says nothing when only kernels stand on it that already stood beside the
    lost one. An operation that now serves every architecture, or some of them by name, is not lost either.

    What could not be read is not lost: the answer is empty if ``after`` was unreadable or read by names alone.
    """
    if not _is_known(after):
        return ()
    held, holds = before.kernels.get(arch, ()), after.kernels.get(arch, ())
    serving = after.kernels if arch == ANY_ARCH else (arch, ANY_ARCH)
    still = {kernel.op for of in serving for kernel in after.kernels.get(of, ())}
    known = {kernel.op for kernel in held}
    renamed = {unit for kernel in holds if kernel.op not in known for unit in kernel.units}
    gone = (kernel.op for kernel in held if kernel.op not in still and renamed.isdisjoint(kernel.units))
    return tuple(sorted(gone))


def gained(before: Observation, after: Observation, arch: str) -> tuple[str, ...]:
    """The operations that only ``after`` has for an architecture: what would be lost on the way back."""
    return lost(after, before, arch)


def package_changes(before: Observation, after: Observation) -> tuple[PackageChange, ...]:
    """The packages whose versions differ, sorted by name."""
    old = {package.name: package.version for package in before.packages}
    new = {package.name: package.version for package in after.packages}
    return tuple(
        PackageChange(name=name, before=old.get(name), after=new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def carries(observation: Observation, arch: str, require: Sequence[str] = ()) -> Verdict:
    """Whether a build has kernels for an architecture; with ``require``, whether it has each of these operations.

    An operation may be spelled as the inventory does (``bf16_gemm``), or by the name of its header or its function.

    Raises:
        ValueError: Operations are required of an observation that was made by names alone.
    """
    if require and observation.depth is Depth.NAMES:
        raise ValueError("names alone do not tell which operations there are")
    summary = summarize(observation)
    verdict = has_kernels(summary, arch)
    if verdict.answer is not Answer.GOOD:
        return verdict
    names = _names([*observation.kernels.get(arch, ()), *observation.kernels.get(ANY_ARCH, ())])
    missing = [op for op in require if _plain(op) not in names]
    if missing:
        return Verdict(answer=Answer.BAD, reason=f"the {arch} kernels lack {', '.join(missing)}")
    return verdict


def summarize(observation: Observation) -> KernelSummary:
    """The part of an observation that tells which architectures a build has kernels for."""
    if observation.depth is Depth.KERNELS:
        operations = {arch: len(kernels) for arch, kernels in observation.kernels.items()}
    else:
        headers = map(_HEADER.match, observation.deep_gemm.headers)
        operations = dict(Counter(header["arch"] for header in headers if header))
    return KernelSummary(
        status=observation.deep_gemm.status,
        depth=observation.depth,
        reason=observation.deep_gemm.reason,
        operations=operations,
        commit=observation.provenance.commit,
    )


def has_kernels(summary: KernelSummary, arch: str) -> Verdict:
    """Whether a build has any kernels for an architecture."""
    match summary.status:
        case LibraryStatus.UNREADABLE:
            return Verdict(answer=Answer.UNTESTABLE, reason=summary.reason or "DeepGEMM could not be read")
        case LibraryStatus.ABSENT:
            return Verdict(answer=Answer.BAD, reason=summary.reason or "not bundled")
        case LibraryStatus.PRESENT:
            count = summary.operations.get(arch, 0)
            what = f"{arch} kernel header" if summary.depth is Depth.NAMES else f"{arch} kernel"
            if not count:
                return Verdict(answer=Answer.BAD, reason=f"bundled, no {what}s")
            return Verdict(answer=Answer.GOOD, reason=f"{count} {what}{'s' if count > 1 else ''}")


def _is_known(observation: Observation) -> bool:
    match observation.deep_gemm.status:
        case LibraryStatus.ABSENT:
            return True
        case LibraryStatus.UNREADABLE:
            return False
        case LibraryStatus.PRESENT:
            return observation.depth is Depth.KERNELS


def _names(kernels: Iterable[Kernel]) -> set[str]:
    """Every plain name by which a kernel may be asked for."""
    return {_plain(name) for kernel in kernels for name in (kernel.op, *kernel.units, *kernel.entries)}


def _plain(name: str) -> str:
    """``bf16_gemm`` of ``impls/sm120_bf16_gemm.cuh``, of ``sm120_bf16_gemm_impl`` and of itself."""
    stem = name.rpartition("/")[2].rpartition("::")[2].removesuffix(".cuh").removesuffix("_impl")
    arch, _, rest = stem.partition("_")
    return rest if rest and arch.startswith("sm") and (arch[2:].isdigit() or arch == ANY_ARCH) else stem
