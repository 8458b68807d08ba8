"""Device code as NVIDIA's compiler packs it, written byte by byte."""

from __future__ import annotations

import struct

PTX, SASS, LTO = 1, 2, 8
ARCH_SPECIFIC, FAMILY_SPECIFIC, ZSTD = 0x100000, 0x200000, 0x8000


def code(kind: int, arch: int, flags: int = 0, *, header: int = 64, payload: bytes = b"\x7fELF....") -> bytes:
    front = struct.pack("<HHIQ12xI8xQ16x", kind, 0x0101, header, len(payload), arch, 0x11 | flags)
    return front.ljust(header, b"\0") + payload


def container(*entries: bytes) -> bytes:
    payload = b"".join(entries)
    whole = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload
    return whole + bytes(-len(whole) % 8)
