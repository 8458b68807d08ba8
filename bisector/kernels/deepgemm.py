"""Where a build keeps DeepGEMM, under whatever name its library goes this season. Pure.

It has been ``deep_gemm_cpp.cpython-312-*.so`` beside the package ``deep_gemm``, ``deep_gemm/_C.cpython-312-*.so``, the
same under ``vllm/third_party`` for one to five interpreters, and ``_C_extension.abi3.so`` behind a ``_C.py``; so any
shared library directly in a ``deep_gemm`` package is accepted and the known names are only preferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bisector.kernels.templates import Templates, inventory
from bisector.model import DeepGemm, Inventory, LibraryStatus

_WHEEL_DATA = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
_TOP_LEVEL = re.compile(r"(?:.*/(?:site|dist)-packages/)?deep_gemm")
_HEADER = re.compile(r"include/deep_gemm/((?:impls|scheduler)/sm\w+\.cuh)", re.ASCII)
_LIBRARY_BESIDE = re.compile(r"deep_gemm_cpp[^/]*\.so")
_PREFERRED = (
    re.compile(r"_C_extension\.abi3\.so"),
    re.compile(r"_C\.abi3\.so"),
    re.compile(r"_C\.cpython-312-.*\.so"),
    re.compile(r"_C\.cpython-3\d+-.*\.so"),
    _LIBRARY_BESIDE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A DeepGEMM in an artifact.

    Attributes:
        libraries: Its shared libraries as the artifact names them, the one to read first.
        headers: Its JIT headers, relative to ``include/deep_gemm``.
        init: Its ``__init__.py`` as the artifact names it.
    """

    libraries: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    init: str | None = None


def in_site_packages(path: str) -> str:
    """Where a wheel's path is installed: without the prefix of its ``.data`` directory."""
    return _WHEEL_DATA.sub("", path, count=1) if _WHEEL_DATA.match(path) else path


def may_belong(path: str) -> bool:
    """Whether a path is part of a DeepGEMM: a library, a JIT header or the ``__init__.py`` of its package."""
    directory, name = _split(in_site_packages(path))
    if directory is None:
        return False
    return name == "__init__.py" or _is_library(name) or _HEADER.fullmatch(name) is not None


def find(paths: Iterable[str], *, alone: bool = False) -> Place | None:
    """The DeepGEMM that vLLM would import: a top-level one before its own, either only if it has a library.

    Where there is no ``vllm``, any ``deep_gemm`` will do.

    Args:
        paths: Everything that may belong to it.
        alone: Whether a shared library that is all there is may be taken for DeepGEMM's.
    """
    installed = {in_site_packages(path): path for path in sorted(paths)}
    if alone and len(installed) == 1 and all(_is_library(path) for path in installed):
        return Place(libraries=tuple(installed.values()))
    directories = {directory for directory, _ in map(_split, installed) if directory is not None}
    if any(path.startswith("vllm/") for path in installed):
        directories = {name for name in directories if name == "deep_gemm" or name.startswith("vllm/")}
    places = [_place(directory, installed) for directory in sorted(directories, key=_precedence)]
    return next((place for place in places if place.libraries), places[0] if places else None)


def seen(place: Place | None) -> DeepGemm:
    """What the names alone tell."""
    if place is None:
        return DeepGemm(status=LibraryStatus.ABSENT, reason="DeepGEMM is not bundled")
    library = DeepGemm(status=LibraryStatus.PRESENT, files=place.libraries, headers=place.headers)
    if not place.libraries:
        what = "Python files are" if place.init else "headers are"
        reason = f"DeepGEMM's {what} there, its library is not (the extension is optional in vLLM's build)"
        return replace(library, status=LibraryStatus.ABSENT, reason=reason)
    if not place.headers:
        reason = "DeepGEMM's library is there without its kernel headers, so names alone do not tell what it has"
        return replace(library, status=LibraryStatus.UNREADABLE, reason=reason)
    return library


def opened(place: Place, templates: Templates, version: str | None) -> tuple[DeepGemm, Inventory]:
    """What the library tells, joined with the headers."""
    library = replace(seen(place), reason=None, version=version, templates=templates.count)
    kernels = inventory(templates, place.headers or None) if templates.count else {}
    if not kernels:
        reason = (
            f"No JIT template could be read in {place.libraries[0]}"
            if not templates.count
            else f"None of the {templates.count} JIT templates in {place.libraries[0]} names an architecture"
        )
        return replace(library, status=LibraryStatus.UNREADABLE, reason=reason), {}
    note = None if place.headers else "Read from the library alone; headers not checked"
    return replace(library, status=LibraryStatus.PRESENT, reason=note), kernels


def _split(path: str) -> tuple[str | None, str]:
    """The ``deep_gemm`` package a path belongs to and its name there, or ``None`` and the path."""
    *above, name = path.split("/")
    if "deep_gemm" in above:
        end = above.index("deep_gemm") + 1
        if above[end - 2 : end] == ["include", "deep_gemm"]:
            end -= 2
        return "/".join(above[:end]), "/".join([*above[end:], name])
    if _LIBRARY_BESIDE.fullmatch(name):
        return "/".join([*above, "deep_gemm"]), name
    return None, path


def _is_library(name: str) -> bool:
    return "/" not in name and name.endswith(".so")


def _precedence(directory: str) -> tuple[bool, bool, str]:
    return not _TOP_LEVEL.fullmatch(directory), not directory.endswith("vllm/third_party/deep_gemm"), directory


def _place(directory: str, installed: Mapping[str, str]) -> Place:
    names = {_split(path)[1]: original for path, original in installed.items() if _split(path)[0] == directory}
    return Place(
        libraries=tuple(names[name] for name in sorted(filter(_is_library, names), key=_preference)),
        headers=tuple(sorted(match[1] for match in map(_HEADER.fullmatch, names) if match)),
        init=names.get("__init__.py"),
    )


def _preference(library: str) -> tuple[int, str]:
    known = (rank for rank, pattern in enumerate(_PREFERRED) if pattern.fullmatch(library))
    return next(known, len(_PREFERRED)), library
