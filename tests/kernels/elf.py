"""Small shared libraries, written byte by byte: ELF headers, sections, and the strings DeepGEMM keeps in them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

# https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_SHARED, _X86_64 = 3, 62
_PROGBITS, _STRTAB = 1, 3


def elf(sections: Mapping[str, bytes]) -> bytes:
    """A 64-bit shared library for x86-64 with these sections; its section table comes last, as linkers put it."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    body, table = bytearray(_HEADER.size), [b"\0" * _SECTION.size]
    for name, content in (*sections.items(), (".shstrtab", names)):
        body += bytes(-len(body) % 16)
        kind = _STRTAB if name == ".shstrtab" else _PROGBITS
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        table.append(_SECTION.pack(at, kind, 0, len(body), len(body), len(content), 0, 0, 16, 0))
        body += content
    body += bytes(-len(body) % 16)
    header = (_IDENT, _SHARED, _X86_64, 1, 0, 0, len(body), 0, 64, 0, 0, _SECTION.size, len(table), len(table) - 1)
    body[: _HEADER.size] = _HEADER.pack(*header)
    return bytes(body) + b"".join(table)


def template(include: str, entry: str | None) -> bytes:
    """A JIT template that includes a header and instantiates a function; ``None``: another string formats that part."""
    body = f"    auto ptr = reinterpret_cast<void*>(&{entry}<\n        {{}}, {{}}>);" if entry else "{}"
    text = f"""
#include <deep_gemm/{include}.cuh>

using namespace deep_gemm;

static void __instantiate_kernel() {{
{body}
}};
"""
    return text.encode() + b"\0"


def instantiation(entry: str) -> bytes:
    """The part of a template that names the function, in a string of its own."""
    return f"\n    auto ptr = reinterpret_cast<void*>(&{entry}<\n        {{}}, {{}}>);".encode() + b"\0"


def deep_gemm(*strings: bytes, decoys: bytes = b"") -> bytes:
    """A library with these read-only strings, and others in its debugging information."""
    rodata = b"short\0Unsupported architecture\0" + b"".join(strings)
    return elf({".text": b"\x90" * 64, ".rodata": rodata, ".debug_str": decoys})


OPERATIONS = ("bf16_gemm", "fp8_fp4_gemm_1d1d")


def for_archs(*archs: str) -> bytes:
    """A library with two operations for each of these architectures."""
    return deep_gemm(*(template(f"impls/{arch}_{op}", f"{arch}_{op}_impl") for arch in archs for op in OPERATIONS))


def headers_for(*archs: str) -> list[str]:
    """The headers that go with them."""
    return [f"impls/{arch}_{op}.cuh" for arch in archs for op in OPERATIONS]
