"""The real content: what matters of four vLLM releases, read once from the package index by Range and then kept.

Only the directory, DeepGEMM and a few small files are fetched, some 7 MB of the 300 a wheel has. Every other name of
the wheel is kept as an empty file, so that a directory made from this is as long as the real one.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

import httpx
from pypi_simple import PYPI_SIMPLE_ENDPOINT

BEFORE: Final = "0.24.0"  # no sm120 kernels yet, though vLLM's gate already let sm120 through
GOOD: Final = "0.26.0"
LOST: Final = "0.27.0"
BACK: Final = "0.28.0"
VERSIONS: Final = (BEFORE, GOOD, LOST, BACK)
WITH_SM120: Final = frozenset({GOOD, BACK})

_ONE_AT_A_TIME: Final = Lock()
_TAIL: Final = 1 << 20  # the directory is at most 0.65 MB at the end of the file
_CARRIED: Final = re.compile(
    r"""vllm/third_party/deep_gemm/.*
      | vllm/(platforms|utils)/(cuda|deep_gemm|__init__|interface)\.py
      | vllm/[a-z_]+\.py
      | vllm/(cumem_allocator|spinloop)\.abi3\.so""",
    re.VERBOSE,
)
_OWN: Final = re.compile(r"vllm/_version\.py|vllm-[^/]*\.dist-info/.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release's files, by path within site-packages and in the wheel's own order.

    Attributes:
        version: ``0.26.0``.
        files: Path → content of what every build of these sources has alike; empty for what is not carried.
        own: Path → content of what names the version or the commit: ``vllm/_version.py`` and ``.dist-info``.
        archive: ``files`` as a zip archive.
        record: ``files`` as lines of a wheel's RECORD.
    """

    version: str
    files: Mapping[str, bytes]
    own: Mapping[str, bytes]
    archive: bytes
    record: str


def read(version: str, folder: Path) -> Release:
    """One release, from the cache folder or else from the package index.

    Raises:
        httpx.HTTPError: The index does not answer.
    """
    with _ONE_AT_A_TIME:
        return _read(version, folder / "releases")


@cache
def _read(version: str, folder: Path) -> Release:
    alike, own = folder / f"vllm-{version}.zip", folder / f"vllm-{version}.own.zip"
    if not own.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:  # another process may be at it too
            parts = Path(unfinished, alike.name), Path(unfinished, own.name)
            _fetch(version, *parts)
            parts[0].replace(alike)
            parts[1].replace(own)
    files = _contents(alike)
    return Release(
        version=version,
        files=files,
        own=_contents(own),
        archive=alike.read_bytes(),
        record="".join(record_line(path, content) for path, content in files.items()),
    )


def record_line(path: str, content: bytes) -> str:
    """A file's line in RECORD: https://packaging.python.org/en/latest/specifications/recording-installed-packages/."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    quoted = f'"{path}"' if "," in path else path  # tuned kernels' settings have commas in their names
    return f"{quoted},sha256={digest},{len(content)}\n"


def _contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _fetch(version: str, alike: Path, own: Path) -> None:
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        listing = client.get(f"{PYPI_SIMPLE_ENDPOINT}vllm/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
        listing.raise_for_status()
        wheel = next(
            file
            for file in json.loads(listing.content)["files"]
            if file["filename"].startswith(f"vllm-{version}-") and file["filename"].endswith("x86_64.whl")
        )

        def part(start: int, stop: int) -> bytes:
            answer = client.get(wheel["url"], headers={"Range": f"bytes={start}-{stop - 1}"})
            answer.raise_for_status()
            return answer.content

        remote = _RemoteFile(wheel["size"], part)
        with (
            zipfile.ZipFile(remote) as source,
            zipfile.ZipFile(alike, "w", zipfile.ZIP_DEFLATED) as alike_archive,
            zipfile.ZipFile(own, "w", zipfile.ZIP_DEFLATED) as own_archive,
        ):
            # DeepGEMM lies in one run of about 6 MB: one request instead of nine hundred
            run = [entry for entry in source.infolist() if "third_party/deep_gemm/" in entry.filename]
            remote.preload(run[0].header_offset, run[-1].header_offset + run[-1].compress_size + 4096)
            for entry in source.infolist():
                if _OWN.fullmatch(entry.filename):
                    own_archive.writestr(entry.filename, source.read(entry))
                elif _CARRIED.fullmatch(entry.filename):
                    alike_archive.writestr(entry.filename, source.read(entry))
                elif not entry.filename.endswith(".so"):  # an empty library would be a lie
                    alike_archive.writestr(entry.filename, b"")


class _RemoteFile(io.RawIOBase):
    """A seekable view of a file on a web server, which fetches runs and keeps them."""

    def __init__(self, size: int, part: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size = size
        self._part = part
        self._position = 0
        self._runs: list[tuple[int, bytes]] = []
        self.preload(max(0, size - _TAIL), size)

    def preload(self, start: int, stop: int) -> None:
        self._runs.append((start, self._part(start, min(stop, self._size))))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = origin + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        stop = self._size if size < 0 else min(self._size, start + size)
        if start >= stop:
            return b""
        for begin, run in self._runs:
            if begin <= start and stop <= begin + len(run):
                self._position = stop
                return run[start - begin : stop - begin]
        self.preload(start, max(stop, start + (64 << 10)))  # a small file's header and content come together
        return self.read(stop - start)
