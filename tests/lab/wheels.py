"""Wheels of single commits: the release's archive with the commit's own files appended."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from . import releases
from .commits import Commit
from .site_packages import own_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel in two parts, of which many commits share the first."""

    shared: bytes
    own: bytes

    def __len__(self) -> int:
        return len(self.shared) + len(self.own)

    def part(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` up to ``stop``."""
        border = len(self.shared)
        return self.shared[start:stop] + self.own[max(0, start - border) : max(0, stop - border)]


@lru_cache(maxsize=256)
def wheel(commit: Commit, folder: Path) -> Wheel:
    """The commit's x86_64 wheel: a real archive, whose checksums and RECORD hold."""
    release = releases.read(commit.release, folder)
    whole = io.BytesIO(release.archive)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        border = archive.start_dir  # appending begins where the release's directory was
        for path, content in own_files(commit, release).items():
            entry = zipfile.ZipInfo(path, date_time=commit.at.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return Wheel(shared=release.archive[:border], own=whole.getvalue()[border:])


def filename(commit: Commit, machine: str = "x86_64") -> str:
    """``vllm-0.26.1.dev720+gaeeb36b1f-cp38-abi3-manylinux_2_28_x86_64.whl``."""
    return f"vllm-{commit.version}-cp38-abi3-manylinux_2_28_{machine}.whl"
