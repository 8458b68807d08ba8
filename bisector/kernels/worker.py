"""The process that opens what strangers built: ``python -m bisector.kernels.worker MEMORY CPU``.

LIEF is a large C++ parser, and what it is given is untrusted, so it runs here: with a limit on memory and, for each
library, on processor time; unable to open a file or a socket; with nothing to keep. A library goes in on standard
input, a little JSON comes out on standard output, until standard input ends.

    ready      one byte, once LIEF is loaded
    request    u8 what is asked (an `Ask`) · u64 length · that many bytes of a library
    answer     u8 whether it could be read · u32 length · that many bytes of JSON: what was asked, or a sentence why not
"""

from __future__ import annotations

import math
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from bisector.errors import Unreadable
from bisector.kernels import fatbin
from bisector.kernels.templates import Templates, find_templates
from bisector.model import CudaTarget

if TYPE_CHECKING:
    import lief

    Parse: TypeAlias = Callable[[bytes], lief.ELF.Binary | None]

REQUEST = struct.Struct(">BQ")
ANSWER = struct.Struct(">?I")
READY = b"R"

OUT_OF_MEMORY = 77
"""The exit code when a library needs more memory than is allowed."""

LARGEST_RODATA = 64 << 20
"""Bytes; DeepGEMM's ``.rodata`` has a quarter of a megabyte."""


class Ask(IntEnum):
    """What is asked about a library: its `Templates`, or its `CudaTarget` values."""

    TEMPLATES = 1
    TARGETS = 2


def main() -> None:
    """Answer until standard input ends."""
    memory, cpu_seconds = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    try:
        parse = _load_parser()
        # What is open now is all that ever will be: from here on no file and no socket can be opened.
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        sink.write(READY)
        sink.flush()
        while len(request := source.read(REQUEST.size)) == REQUEST.size:
            ask, length = REQUEST.unpack(request)
            library = source.read(length)
            if len(library) < length:
                break
            _allow_cpu(cpu_seconds)
            sink.write(_answer(Ask(ask), library, parse))
            sink.flush()
            del library
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


def _load_parser() -> Parse:
    import lief  # noqa: PLC0415 - half a second that only this process pays, and only under its limits

    lief.logging.disable()
    lean = lief.ELF.ParserConfig()
    lean.parse_dyn_symbols = lean.parse_symtab_symbols = lean.parse_symbol_versions = False
    lean.parse_relocations = lean.parse_notes = lean.parse_overlay = False
    return lambda library: lief.ELF.parse(library, lean)


def _allow_cpu(seconds: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, most))


def _answer(ask: Ask, library: bytes, parse: Parse) -> bytes:
    value: Templates | tuple[CudaTarget, ...] | str
    try:
        match ask:
            case Ask.TEMPLATES:
                value = _templates(library, parse)
            case Ask.TARGETS:
                value = _targets(library, parse)
    except Unreadable as error:
        value = error.message
    body = msgspec.json.encode(value)
    return ANSWER.pack(not isinstance(value, str), len(body)) + body


def _templates(library: bytes, parse: Parse) -> Templates:
    for section in _sections(library, parse, (".rodata",)):
        if len(section) > LARGEST_RODATA:
            raise Unreadable(f"Its read-only data has more than {LARGEST_RODATA >> 20} MiB.")
        return find_templates(bytes(section))
    raise Unreadable("It has no read-only data (.rodata).")


def _targets(library: bytes, parse: Parse) -> tuple[CudaTarget, ...]:
    found: Counter[str] = Counter()
    for section in _sections(library, parse, fatbin.SECTIONS):
        found += fatbin.find_targets(section)
    return fatbin.in_order(found)


def _sections(library: bytes, parse: Parse, names: tuple[str, ...]) -> Iterator[memoryview]:
    if not library.startswith(b"\x7fELF"):
        raise Unreadable("It is not an ELF file.")
    binary = parse(library)
    if binary is None:
        raise Unreadable("Its ELF header is damaged.")
    header = binary.header
    table = header.section_header_offset + header.numberof_sections * header.section_header_size
    if table > len(library):
        raise Unreadable("It ends before its section table, so it is not complete.")
    if not header.numberof_sections:
        raise Unreadable("It has no section table.")
    for section in binary.sections:
        if section.name in names and section.type.name != "NOBITS":
            if section.offset + section.size > len(library):
                raise Unreadable(f"It ends within {section.name}, so it is not complete.")
            # LIEF's own copy of the content would double the memory.
            yield memoryview(library)[section.offset : section.offset + section.size]


if __name__ == "__main__":
    main()
