"""What a machine has, and whether that is what a profile needs. Pure.

``nvidia-smi --query-gpu=index,name,compute_cap,memory.total,memory.used --format=csv,noheader,nounits``: one line a
GPU, memory in MiB (https://docs.nvidia.com/deploy/nvidia-smi/index.html).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bisector import arch as architectures
from bisector.errors import UnknownArchitecture

NVIDIA_SMI: Final = (
    "nvidia-smi",
    "--query-gpu=index,name,compute_cap,memory.total,memory.used",
    "--format=csv,noheader,nounits",
)
_MIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver sees it.

    Attributes:
        index: Its number.
        name: As NVIDIA calls it.
        arch: ``sm120``; ``None`` for one that cannot be told.
        total_gib: Its memory.
        free_gib: The part that nobody uses.
    """

    index: int
    name: str
    arch: str | None
    total_gib: float
    free_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a host has for a boot; ``None`` where it could not be told.

    Attributes:
        gpus: Its GPUs.
        gpu_trouble: Why they could not be listed.
        free_memory_gib: Memory that nobody uses.
        free_disk_gib: Room where the engine keeps images.
        missing: Files and folders that are needed; nothing can be read there.
    """

    gpus: tuple[Gpu, ...] = ()
    gpu_trouble: str | None = None
    free_memory_gib: float | None = None
    free_disk_gib: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a profile asks of a host.

    Attributes:
        gpus: How many GPUs; 0: none.
        arch: Of which architecture.
        gpu_gib: Memory that must be free on each.
        memory_gib: Memory that must be free on the host.
        disk_gib: Room that the engine must have.
    """

    gpus: int = 0
    arch: str | None = None
    gpu_gib: float = 0.0
    memory_gib: float = 0.0
    disk_gib: float = 0.0


def read_gpus(text: str, known: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The GPUs in what ``nvidia-smi`` printed. Lines that do not look like one are left out.

    Args:
        text: What it printed.
        known: GPU name → architecture, for drivers that do not tell the compute capability.
    """
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 5 or not fields[0].isdigit():  # noqa: PLR2004 - the query asks for five
            continue
        index, name, capability, total, used = fields
        size, taken = _number(total), _number(used)
        gpus.append(
            Gpu(
                index=int(index),
                name=name,
                arch=_architecture(capability, name, known),
                total_gib=size / _MIB,
                free_gib=max(0.0, size - taken) / _MIB,
            )
        )
    return tuple(gpus)


def shortcomings(machine: Machine, need: Need) -> tuple[str, ...]:
    """Why this is no machine for the profile, a sentence each; none: it is one."""
    found = list(_gpu_shortcomings(machine, need)) if need.gpus else []
    if machine.free_memory_gib is not None and machine.free_memory_gib < need.memory_gib:
        found.append(f"{machine.free_memory_gib:.1f} GiB of memory are free, {need.memory_gib:g} are needed")
    if machine.free_disk_gib is not None and machine.free_disk_gib < need.disk_gib:
        found.append(f"the engine has {machine.free_disk_gib:.1f} GiB of room, {need.disk_gib:g} are needed")
    found += [f"nothing can be read at {path}" for path in machine.missing]
    return tuple(found)


def _gpu_shortcomings(machine: Machine, need: Need) -> Sequence[str]:
    if machine.gpu_trouble is not None:
        return [f"no GPU can be used: {machine.gpu_trouble}"]
    kinds = ", ".join(sorted({gpu.name for gpu in machine.gpus})) or "none"
    fitting = [gpu for gpu in machine.gpus if need.arch is None or gpu.arch == need.arch]
    if len(fitting) < need.gpus:
        wanted = f"{need.gpus} of {need.arch} are needed" if need.arch else f"{need.gpus} are needed"
        return [f"{len(fitting)} fitting GPUs are there ({kinds}), {wanted}"]
    roomy = [gpu for gpu in fitting if gpu.free_gib >= need.gpu_gib]
    if len(roomy) < need.gpus:
        rooms = ", ".join(f"{gpu.free_gib:.1f}" for gpu in fitting)
        return [f"{need.gpu_gib:g} GiB must be free on each of {need.gpus} GPUs; free are {rooms}"]
    return []


def fitting_devices(machine: Machine, need: Need) -> tuple[int, ...]:
    """The GPUs to use, by number: the first that fit."""
    fitting = [gpu for gpu in machine.gpus if need.arch in (None, gpu.arch) and gpu.free_gib >= need.gpu_gib]
    return tuple(gpu.index for gpu in fitting[: need.gpus])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0  # a device that shares the host's memory says [N/A]


def _architecture(capability: str, name: str, known: Mapping[str, str]) -> str | None:
    for spelling in (capability, name.removeprefix("NVIDIA ")):
        try:
            return architectures.parse(spelling, known).name
        except UnknownArchitecture:
            continue
    return None
