"""What DeepGEMM's library says it can compile: the JIT templates among its read-only strings. Pure.

DeepGEMM carries no device code. Its host library formats CUDA source from templates and compiles it at run time
against headers the package ships (https://github.com/deepseek-ai/DeepGEMM, ``csrc/jit_kernels/impls``). A template is
one C string such as::

    #include <deep_gemm/impls/sm120_bf16_gemm.cuh>
    using namespace deep_gemm;
    static void __instantiate_kernel() { auto ptr = reinterpret_cast<void*>(&sm120_bf16_gemm_impl<{}, {}>); };

Only ``.rodata`` may be given here: the debugging sections of an unstripped library repeat names of files and classes
that are no kernels. Short names in ``.rodata`` are no evidence either, because GCC stores some of them in pieces;
templates are long and stay whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from bisector.errors import Unreadable
from bisector.model import ANY_ARCH, Inventory, Kernel

MARK = b"__instantiate_kernel"
"""What every JIT template defines."""

MOST_STRINGS = 4096
"""Forty are usual; a file with a hundred times as many was made to exhaust its reader."""

OPEN_ARCH = "sm{}"
"""How a template spells the architecture that the library finds at run time."""

_ARCH = r"sm(?:\d{1,4}|\{\}|xx)"
_STRING = re.compile(rb"[^\0]{12,}")
_INCLUDE = re.compile(rf"#include <deep_gemm/((?:impls|scheduler)/{_ARCH}_\w{{1,100}}\.cuh)>".encode())
_ENTRY = re.compile(rf"&\s*((?:[a-zA-Z_]\w{{0,60}}::){{0,4}}{_ARCH}_\w{{1,100}})".encode())
_NAME = re.compile(rf"(?:.*(?:/|::))?({_ARCH})_(\w+?)(?:_impl)?(?:\.cuh)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A string that names kernels: the headers it includes and the functions it instantiates."""

    includes: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """A library's JIT templates.

    Attributes:
        count: How many strings are whole templates.
        naming: The distinct strings that name kernels; one that formats a part of another template is among them.
    """

    count: int
    naming: tuple[Template, ...]


def arch_and_op(name: str) -> tuple[str, str]:
    """The architecture and the operation in the name of a header or a function.

    ``impls/sm120_bmk_bnk_mn.cuh`` is ``("sm120", "bmk_bnk_mn")``, ``sched::sm90_x_impl`` is ``("sm90", "x")``.

    Raises:
        ValueError: It names no architecture.
    """
    if match := _NAME.fullmatch(name):
        return match[1], match[2]
    raise ValueError(name)


def find_templates(rodata: bytes) -> Templates:
    """The templates in the bytes of a library's ``.rodata``.

    Raises:
        Unreadable: There are implausibly many.
    """
    count = 0
    naming: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for match in _STRING.finditer(rodata):
        string = match.group()
        count += MARK in string
        names = _distinct(_INCLUDE, string), _distinct(_ENTRY, string)
        if any(names):
            naming.add(names)
        if len(naming) > MOST_STRINGS:
            raise Unreadable(f"More than {MOST_STRINGS} strings name kernels.")
    templates = (Template(includes=includes, entries=entries) for includes, entries in sorted(naming))
    return Templates(count=count, naming=tuple(templates))


def _distinct(pattern: re.Pattern[bytes], string: bytes) -> tuple[str, ...]:
    return tuple(sorted({name.decode("ascii", "replace") for name in pattern.findall(string)}))


@dataclass(slots=True)
class _Evidence:
    units: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)


def inventory(templates: Templates, headers: Collection[str] | None) -> Inventory:
    """The kernels that the templates and the shipped headers together make.

    Every entry makes a kernel, with those headers its template includes that the package ships as its units. A unit
    that no entry stands on makes a kernel of its own name. What is spelled ``sm{}`` exists for an architecture only if
    that architecture's header is shipped.

    Args:
        templates: What the library says.
        headers: The shipped headers (``impls/sm120_bf16_gemm.cuh``), or ``None`` when they are not known. Then every
            include is taken for shipped, except those spelled ``sm{}``.
    """
    kernels: defaultdict[tuple[str, str], _Evidence] = defaultdict(_Evidence)
    standing: set[str] = set()
    lone: set[str] = set()
    for template in templates.naming:
        units = list(_units(template, headers))
        for entry in _entries(template, headers):
            arch, _ = named = arch_and_op(entry)
            kernels[named].entries.add(entry)
            kernels[named].units.update(unit for unit in units if arch_and_op(unit)[0] == arch)
            standing |= kernels[named].units
        lone.update(units)
    for unit in lone - standing:
        kernels[arch_and_op(unit)].units.add(unit)
    archs = sorted({arch for arch, _ in kernels}, key=lambda arch: (arch == ANY_ARCH, len(arch), arch))
    return {
        arch: tuple(
            Kernel(op=op, units=tuple(sorted(evidence.units)), entries=tuple(sorted(evidence.entries)))
            for (of, op), evidence in sorted(kernels.items())
            if of == arch
        )
        for arch in archs
    }


def _units(template: Template, headers: Collection[str] | None) -> Iterator[str]:
    for include in template.includes:
        if OPEN_ARCH in include:
            yield from _expanded(include, headers)
        elif headers is None or include in headers:
            yield include


def _entries(template: Template, headers: Collection[str] | None) -> Iterator[str]:
    for entry in template.entries:
        if OPEN_ARCH not in entry:
            yield entry
            continue
        # The string that formats an entry may stand apart from the one that includes its header.
        includes = [include for include in template.includes if OPEN_ARCH in include]
        for include in includes or [f"impls/{OPEN_ARCH}_{arch_and_op(entry)[1]}.cuh"]:
            for unit in _expanded(include, headers):
                yield entry.replace(OPEN_ARCH, arch_and_op(unit)[0])


def _expanded(include: str, headers: Collection[str] | None) -> Iterator[str]:
    pattern = re.compile(re.escape(include).replace(re.escape(OPEN_ARCH), r"sm[0-9]+"))
    yield from filter(pattern.fullmatch, headers or ())
