"""Small wheels, and selections of their files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SMALL_VLLM: Mapping[str, bytes] = {
    "vllm/__init__.py": b"",
    "vllm/_version.py": b"__version__ = '0.26.0'\n",
    "vllm/platforms/cuda.py": b"def support_deep_gemm(): ...\n" * 400,
    "vllm/third_party/deep_gemm/__init__.py": b"__version__ = '2.5.0'\n",
    "vllm/third_party/deep_gemm/_C.cpython-312-x86_64-linux-gnu.so": b"\x7fELF" + bytes(range(256)) * 300,
    "vllm/third_party/deep_gemm/include/deep_gemm/impls/sm120_bf16_gemm.cuh": b"// sm120\n",
    "vllm/_C.abi3.so": b"\x7fELF" + b"code" * 1000,
    "vllm-0.26.0.dist-info/METADATA": b"Name: vllm\nVersion: 0.26.0\n",
}


def wheel(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The bytes of a wheel with these members, in this order: the same bytes at any time of day."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in files.items():
            # A name alone would be dated now, and two wheels of one content differ when a clock's tick falls between.
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return written.getvalue()


def unpack(files: Mapping[str, bytes], below: Path) -> Path:
    """The same files in a directory."""
    for name, content in files.items():
        path = below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return below


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """A selection that lists what a condition says, and reads what a second one says."""

    wants: Callable[[str], bool] = field(default=lambda _: True)
    opens: Callable[[str], bool] = field(default=lambda _: True)
    key: str = "choosing"

    def lists(self, path: str) -> bool:
        return self.wants(path)

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        return [path for path in paths if self.opens(path)]

    def enters(self, directory: str) -> bool:
        del directory
        return True

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        del listed, last
        return False


def only(paths: Iterable[str]) -> Choosing:
    """Lists everything, reads these."""
    wanted = frozenset(paths)
    return Choosing(opens=wanted.__contains__)
