"""The device code in ahead-of-time libraries: which targets ``.nv_fatbin`` holds. Pure.

NVIDIA does not document the layout. It is read here as its compiler writes it: a row of containers, aligned to eight
bytes, each a row of entries. The two bits for the suffixes ``a`` and ``f`` were found by compiling for every target and
comparing; ``cuobjdump --list-elf`` prints ``120f`` without its ``f``.

    container   u32 0xBA55ED50 · u16 version · u16 header size (16) · u64 payload size
    entry       u16 kind · u16 · u32 header size (64 or more) · u64 payload size
                at 28: u32 architecture · at 40: u64 flags
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from bisector.errors import Unreadable
from bisector.model import CudaTarget

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Where the containers lie: linked code, and relocatable device code."""

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ12xI8xQ16x")
_MAGIC = 0xBA55ED50
_KINDS = {1: "compute", 2: "sm", 8: "lto"}
_ARCH_SPECIFIC = 0x100000
_FAMILY_SPECIFIC = 0x200000


def find_targets(section: bytes | memoryview) -> Counter[str]:
    """How many code objects there are of each target: ``sm_90a`` machine code, ``compute_80`` PTX, ``lto_90`` IR.

    Raises:
        Unreadable: The section is not a row of whole containers.
    """
    found: Counter[str] = Counter()
    offset = 0
    while offset < len(section):
        if len(section) - offset < _CONTAINER.size:
            break  # what remains is padding
        magic, _, header, size = _CONTAINER.unpack_from(section, offset)
        if magic == 0 and not any(section[offset : offset + 8]):
            offset += 8
            continue
        start = offset + header
        end = start + size
        if magic != _MAGIC or header < _CONTAINER.size or end > len(section):
            raise Unreadable(f"Its device code is damaged at offset {offset}.")
        found.update(_targets(section, start, end))
        offset = end + -end % 8
    return found


def _targets(section: bytes | memoryview, offset: int, end: int) -> Iterator[str]:
    while offset < end:
        if end - offset < _ENTRY.size:
            raise Unreadable(f"Its device code is damaged at offset {offset}.")
        kind, _, header, size, arch, flags = _ENTRY.unpack_from(section, offset)
        following = offset + header + size
        if header < _ENTRY.size or following > end:
            raise Unreadable(f"Its device code is damaged at offset {offset}.")
        if kind in _KINDS:
            suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
            yield f"{_KINDS[kind]}_{arch}{suffix}"
        offset = following


def in_order(found: Counter[str]) -> tuple[CudaTarget, ...]:
    """Machine code first, then PTX, each by architecture."""
    return tuple(CudaTarget(target=target, count=found[target]) for target in sorted(found, key=_position))


def _position(target: str) -> tuple[int, int, str]:
    kind, _, arch = target.partition("_")
    return ("sm", "compute", "lto").index(kind), int(arch.rstrip("af")), arch
