"""GPU architectures: how people spell them, which code runs on which, and whose DeepGEMM kernels serve which.

An architecture is a compute capability, ``major.minor``, and sometimes a suffix that narrows code to it.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, TypeAlias, cast

from bisector.errors import UnknownArchitecture

Suffix: TypeAlias = Literal["", "a", "f"]
"""``a``: features of exactly this architecture. ``f``: features its family shares. Empty: neither."""


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """A compute capability, with the suffix of the code or the empty one of a device."""

    major: int
    minor: int
    suffix: Suffix = ""

    @property
    def name(self) -> str:
        """``sm120``: as file names and inventories have it, never with a suffix."""
        return f"sm{self.major}{self.minor}"

    @property
    def code(self) -> str:
        """``sm_120a``: as compilers have it."""
        return f"sm_{self.major}{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return self.name + self.suffix


KNOWN: tuple[Arch, ...] = tuple(
    Arch(number // 10, number % 10)
    for number in (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121)
)
"""Every compute capability since Volta that a CUDA compiler has known."""

_FIRST_WITH: Mapping[Suffix, Arch] = {"": KNOWN[0], "a": Arch(9, 0), "f": Arch(10, 0)}

# Jetson Thor was 10.1 until CUDA 13 renamed it to 11.0: the same device, and no relative of the other 10.x.
_OLD_THOR, _THOR = Arch(10, 1), Arch(11, 0)

_INTEGRATED = (Arch(7, 2), Arch(8, 7))


# --- spellings -------------------------------------------------------------------------------------------------------

_ARCHITECTURE = re.compile(
    r"(?:sm|cc|compute(?:[\s_-]*capability)?)?[\s_-]*"
    r"(?:(?P<major>[1-9]\d?)\.(?P<minor>\d)|(?P<digits>[1-9]\d{1,2}))(?P<suffix>[af]?)",
    re.ASCII | re.IGNORECASE,
)

# What may follow a GPU's name without making it another GPU.
_QUALIFIERS = re.compile(
    r"(?:[1-9]\d*g(?:i?b)?|hbm\d?e?|3e|sxm\d?|pcie|nvl\d*|ac|active|passive|sff|nvgpu"
    r"|laptop|mobile|maxq|gpu|founders|edition|generation|workstation|server)*",
    re.ASCII,
)

# What may stand before a GPU's name: its maker, its product line, the machine it sits in.
_PREFIXES = ("nvidia", "tesla", "quadro", "dgx", "hgx")

# Words of a name that people leave out: the first kind with a word after it, the second with a word before it.
_BRANDS = frozenset({"tesla", "geforce", "quadro", "rtx", "gtx", "pro", "jetson", "drive", "agx", "dgx"})
_GENERATIONS = frozenset({"ada", "blackwell"})


def parse(spelling: str, gpus: Mapping[str, str]) -> Arch:
    """The architecture that a person means.

    Args:
        spelling: ``sm120``, ``SM_120a``, ``12.0``, ``compute_120f``, ``RTX PRO 6000``, ``H100 80GB``, ``GB10``…
        gpus: GPU name → architecture: ``{"GeForce RTX 5090": "sm120"}``.

    Raises:
        UnknownArchitecture: There is no such GPU or architecture, or several GPUs of different architectures go by
            that name.
    """
    arch = _read(spelling)
    if arch is not None and replace(arch, suffix="") in KNOWN and replace(arch, suffix="") >= _FIRST_WITH[arch.suffix]:
        return arch
    named = {} if arch is not None else _named(spelling, gpus)
    match list(named):
        case []:
            raise UnknownArchitecture(f"{spelling!r} is no known GPU or architecture{_near(spelling, gpus)}.")
        case [only]:
            return only
        case several:
            gpus_meant = _either([f"{named[each]} ({each})" for each in sorted(several)])
            raise UnknownArchitecture(
                f"{spelling!r} may be {gpus_meant}.", hint="Write the GPU's whole name, or its architecture."
            )


def _read(spelling: str) -> Arch | None:
    """The architecture a number stands for, whether or not there is such a one."""
    found = _ARCHITECTURE.fullmatch(spelling.strip())
    if found is None:
        return None
    digits = found["digits"] or found["major"] + found["minor"]
    return Arch(int(digits[:-1]), int(digits[-1]), cast("Suffix", found["suffix"].lower()))


def _named(spelling: str, gpus: Mapping[str, str]) -> dict[Arch, str]:
    """The architectures of the GPUs that go by this name, each with one of them."""
    rest = _squeeze(spelling)
    while True:
        names = _longest(rest, gpus)
        prefix = next((word for word in _PREFIXES if rest.startswith(word)), None)
        if names or prefix is None:
            return names
        rest = rest.removeprefix(prefix)


def _longest(squeezed: str, gpus: Mapping[str, str]) -> dict[Arch, str]:
    # The longest name wins: an "RTX 4000 SFF" is no Quadro RTX 4000 with a word behind it.
    found: dict[Arch, str] = {}
    longest = 0
    for name, architecture in gpus.items():
        for form in _forms(name):
            if len(form) < longest or not squeezed.startswith(form) or not _QUALIFIERS.fullmatch(squeezed, len(form)):
                continue
            if len(form) > longest:
                longest = len(form)
                found.clear()
            found.setdefault(_architecture(architecture), name)
    return found


def _forms(name: str) -> Iterator[str]:
    """Every way to write a GPU's name with more or fewer of its optional words, squeezed."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    last = len(words) - 1
    choices = [
        (word, "") if (word in _BRANDS and place < last) or (word in _GENERATIONS and place > 0) else (word,)
        for place, word in enumerate(words)
    ]
    return map("".join, itertools.product(*choices))


def _near(spelling: str, gpus: Mapping[str, str]) -> str:
    squeezed = _squeeze(spelling)
    number = _read(spelling)
    forms = {form: name for name in gpus for form in _forms(name)}
    architectures = difflib.get_close_matches(
        number.name if number else squeezed, [arch.name for arch in KNOWN], n=3, cutoff=0.65
    )
    names = dict.fromkeys(forms[form] for form in difflib.get_close_matches(squeezed, forms, n=6, cutoff=0.65))
    near = [*architectures, *list(names)[:3]]
    return f"; near it: {_either(near)}" if near else ""


def _squeeze(spelling: str) -> str:
    return re.sub(r"[^a-z0-9]", "", spelling.lower())


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _architecture(spelling: str) -> Arch:
    arch = _read(spelling)
    if arch is None:
        raise UnknownArchitecture(f"{spelling!r} is not an architecture.")
    return arch


# --- what runs on what -----------------------------------------------------------------------------------------------


class CodeKind(StrEnum):
    """Machine code runs as it is; PTX is compiled by the driver for the device it finds."""

    MACHINE = "machine"
    PTX = "ptx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What device code was compiled for: ``sm_120a`` is machine code, ``compute_90`` PTX."""

    kind: CodeKind
    arch: Arch

    def __str__(self) -> str:
        return self.arch.code if self.kind is CodeKind.MACHINE else self.arch.code.replace("sm", "compute")


def parse_target(spelling: str) -> Target:
    """The target a compiler writes as ``sm_120a`` or ``compute_90``.

    Libraries carry code for architectures older and newer than bisector knows, so any number is one.

    Raises:
        UnknownArchitecture: It is not written as compilers write it.
    """
    prefix, _, number = spelling.partition("_")
    kind = {"sm": CodeKind.MACHINE, "compute": CodeKind.PTX}.get(prefix)
    arch = _read(number) if re.fullmatch(r"\d{2,3}[af]?", number, re.ASCII) else None
    if kind is None or arch is None:
        raise UnknownArchitecture(f"{spelling!r} is not a CUDA target.", hint="Write it as sm_120a or compute_90.")
    return Target(kind=kind, arch=arch)


def runs_on(target: Target, device: Arch) -> bool:
    """Whether a device can run code of this target. The suffix of ``device`` does not matter.

    Machine code runs on its own major with an equal or higher minor, PTX on everything as new or newer; with ``f``
    both run only within the family, with ``a`` only on the very architecture. Integrated GPUs (Jetson) share no
    machine code with the others of their major.

    Families: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
    Machine code, PTX and the exception for Jetson ("Tegra"):
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility
    """
    code, device = replace(target.arch, suffix=""), replace(device, suffix="")
    if code == device or (code, device) == (_OLD_THOR, _THOR):
        return True
    if target.arch.suffix == "a":
        return False
    if target.arch.suffix == "" and target.kind is CodeKind.PTX:
        return code < device
    alone = {_OLD_THOR, *_INTEGRATED}
    return code.major == device.major and code.minor < device.minor and alone.isdisjoint({code, device})


# --- DeepGEMM --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Which kernels a device gets.

    Attributes:
        by: The architecture whose kernels they are.
        note: What else must hold, in one sentence, when the device is not that architecture itself.
    """

    by: Arch
    note: str | None = None


_DEEP_GEMM = {9: Arch(9, 0), 10: Arch(10, 0), 12: Arch(12, 0)}

DEEP_GEMM = tuple(_DEEP_GEMM.values())
"""The architectures DeepGEMM has ever had kernels for, oldest first."""

_DEEP_GEMM_NOTES = {
    _OLD_THOR: "sm101 is sent to DeepGEMM's sm100 kernels, but attention then asks for sm101 headers, which it lacks",
    Arch(10, 7): "sm107 is sent to DeepGEMM's sm100 kernels, which are reported not to load there (vLLM PR 58022)",
}


def deepgemm_arch(device: Arch) -> Served | None:
    """Whose DeepGEMM kernels serve a device; ``None`` for a device that DeepGEMM does not know.

    DeepGEMM chooses by the major number alone and compiles for the family when the compiler can (``get_arch`` in
    https://github.com/deepseek-ai/DeepGEMM/blob/nv_dev/csrc/jit/device_runtime.hpp).
    """
    device = replace(device, suffix="")
    by = _DEEP_GEMM.get(device.major)
    if by is None:
        return None
    if by == device:
        return Served(by=by)
    usual = f"{device} is served by DeepGEMM's {by} kernels (needs a CUDA 12.9 or newer compiler)"
    return Served(by=by, note=_DEEP_GEMM_NOTES.get(device, usual))


def gate_admits(device: Arch, *, capabilities: Iterable[str], families: Iterable[str]) -> bool:
    """Whether vLLM sends a device to DeepGEMM.

    Args:
        device: The device; its suffix does not matter.
        capabilities: Architectures that must be met exactly (vLLM's ``is_device_capability``).
        families: Architectures whose major number is enough (``is_device_capability_family``).

    Raises:
        UnknownArchitecture: One of them is not written as an architecture.
    """
    exact = {_architecture(each) for each in capabilities}
    majors = {_architecture(each).major for each in families}
    return replace(device, suffix="") in exact or device.major in majors
