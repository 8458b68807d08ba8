"""What is wanted of an artifact: much by name, little by content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bisector.kernels import deepgemm
from bisector.model import Depth

VERSIONS: Mapping[Depth, int] = {Depth.NAMES: 1, Depth.KERNELS: 1}
"""Raised whenever the same artifact would be described differently; what is remembered is then read again."""

VERSION_MODULE = re.compile(r"(?:.*/)?vllm/_version\.py")
METADATA = re.compile(r"(?:.*/)?vllm-[^/]+\.dist-info/METADATA")
GATE = re.compile(r"(?:.*/)?vllm/platforms/cuda\.py")
OLDER_GATE = re.compile(r"(?:.*/)?vllm/utils/deep_gemm\.py")
LIBRARY = re.compile(r"(?:.*/)?vllm/.*\.so")

_SOURCES = (VERSION_MODULE, METADATA, GATE)
_LISTED = (*_SOURCES, OLDER_GATE, LIBRARY)
_ENDINGS = (".so", "/_version.py", "/METADATA", "/cuda.py")
"""Of whatever is listed outside of DeepGEMM."""
_TOP = re.compile(r"vllm|deep_gemm|vllm-[^/]+\.dist-info")
_NO_DIRECTORY = (".py", ".pyi", ".pyc", ".json", ".so", ".h", ".cuh", ".txt")
_BUNDLED = "vllm/third_party/deep_gemm"


def first(pattern: re.Pattern[str], paths: Iterable[str]) -> str | None:
    """The matching path nearest the root."""
    matching = [path for path in paths if pattern.fullmatch(deepgemm.in_site_packages(path))]
    return min(matching, key=lambda path: (path.count("/"), path), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A look at the names alone.

    Attributes:
        alone: Whether a shared library may be all there is, whatever it is called.
    """

    alone: bool = False

    @property
    def key(self) -> str:
        """The depth, and the version of what is wanted at it."""
        return f"names {VERSIONS[Depth.NAMES]}"

    def lists(self, path: str) -> bool:
        """DeepGEMM, the sources that tell of the build, and every library of vLLM."""
        # Nearly every path of an image ends here, so this line decides what walking one costs.
        if "deep_gemm" not in path and not path.endswith(_ENDINGS):
            return False
        if deepgemm.may_belong(path) or (self.alone and "/" not in path and path.endswith(".so")):
            return True
        installed = deepgemm.in_site_packages(path)
        return any(pattern.fullmatch(installed) for pattern in _LISTED)

    def reads(self, paths: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 - the name is the protocol's
        """Nothing."""
        return ()

    def enters(self, directory: str) -> bool:
        """vLLM, DeepGEMM and vLLM's metadata; what is called like one of their thousands of files is none."""
        return not directory.endswith(_NO_DIRECTORY) and _TOP.fullmatch(directory.partition("/")[0]) is not None

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        """Once a whole DeepGEMM has passed, in any place where vLLM would look for it.

        No image of vLLM has had a second one in a layer below, which vLLM would have preferred.
        """
        if _in_order(last) < _in_order(_BUNDLED) or last.startswith(f"{_BUNDLED}/"):
            return False
        place = deepgemm.find(listed)
        return place is not None and bool(place.libraries and place.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels(Names):
    """One copy of DeepGEMM's library, and the few sources that tell of the build.

    Attributes:
        older_gate: Whether to read at once what is needed only of old builds; worth it where a second look is dear.
    """

    older_gate: bool = False

    @property
    def key(self) -> str:
        """The depth, and the version of what is wanted at it."""
        return f"kernels {VERSIONS[Depth.KERNELS]}{' and older gate' if self.older_gate else ''}"

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        """At most six files. Given a single path, it if it is of a kind that is read."""
        place = deepgemm.find(paths, alone=self.alone) or deepgemm.Place()
        sources = (*_SOURCES, OLDER_GATE) if self.older_gate else _SOURCES
        wanted = [*place.libraries[:1], place.init, *(first(pattern, paths) for pattern in sources)]
        return [path for path in wanted if path is not None]

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        """Once the version and the gate have passed too.

        METADATA is taken where it comes for nothing. In a layer it is the very last file, and waiting for it would
        cost twice as much as all the rest.
        """
        waited_for = (VERSION_MODULE, GATE)
        # This order, because the place that was reached costs nothing to compare, and this is asked at every directory.
        return Names.satisfied(self, listed, last) and all(first(pattern, listed) for pattern in waited_for)


@dataclass(frozen=True, slots=True)
class Files:
    """These files, whole."""

    paths: tuple[str, ...]

    @property
    def key(self) -> str:
        """One for each set of paths."""
        return f"files {hashlib.sha256('/'.join(self.paths).encode()).hexdigest()[:32]}"

    def lists(self, path: str) -> bool:
        """Whether it is one of them."""
        return path in self.paths

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        """All that are there."""
        return [path for path in paths if path in self.paths]

    def enters(self, directory: str) -> bool:
        """Where they lie."""
        return any(path.startswith(f"{directory}/") for path in self.paths)

    def satisfied(self, listed: Collection[str], last: str) -> bool:  # noqa: ARG002 - the name is the protocol's
        """Once all have passed."""
        return all(path in listed for path in self.paths)


def _in_order(path: str) -> str:
    """A key by which paths sort as they come in a layer, component by component."""
    return path.replace("/", "\0")
