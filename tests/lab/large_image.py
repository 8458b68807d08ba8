"""One image as large as measuring takes: about 3 GB compressed, in seven layers, of what real wheels hold.

The layers lie as upstream's Dockerfile puts them: what changes rarely below, FlashInfer still below vLLM, and above it
a small ``RUN`` and a ``COPY``. vLLM's layer is its whole wheel, installed.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from .dockerfile import SITE_PACKAGES, Step
from .images import Image, image_of
from .layers import Compression, Layer

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

VLLM: Final = "0.33.0"
COMMIT: Final = "8f1b2c0d" * 5
_BUILT: Final = datetime(2026, 11, 20, 4, tzinfo=UTC)
_RECIPE: Final = "1"  # changes when the same line would give another layer
_SHELL: Final = "RUN |2 CUDA_VERSION=13.0.2 PYTHON_VERSION=3.12 /bin/sh -c"
_PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of the Dockerfile: its command, where its files go, and the wheels they are from, or none for a note."""

    created_by: str
    below: str
    wheels: tuple[str, ...] = ()


_LINES: Final = (
    _Line(created_by="/bin/sh -c #(nop) ADD file:5e1b9a8e in / ", below="usr/share", wheels=("cmake==4.4.5",)),
    _Line(
        created_by=f"{_SHELL} uv pip install --system -r /tmp/requirements/cuda-libraries.txt # buildkit",
        below=SITE_PACKAGES,
        wheels=("nvidia-cublas==13.10.0.20", "nvidia-nccl-cu13==2.32.3"),
    ),
    _Line(
        created_by=f"{_SHELL} uv pip install --system -r /tmp/requirements/cuda.txt # buildkit",
        below=SITE_PACKAGES,
        wheels=("torch==2.14.1", "triton==3.9.0", "nvidia-cudnn-cu13==9.28.1.4"),
    ),
    _Line(
        created_by=f"{_SHELL} uv pip install --system flashinfer-cubin # buildkit",
        below=SITE_PACKAGES,
        wheels=("flashinfer-cubin==0.6.13",),
    ),
    _Line(
        created_by=f"{_SHELL} uv pip install --system dist/*.whl --verbose # buildkit",
        below=SITE_PACKAGES,
        wheels=(f"vllm=={VLLM}",),
    ),
    _Line(
        created_by=f"{_SHELL} uv pip install --system ep_kernels/dist/*.whl --verbose --no-deps # buildkit",
        below=f"{SITE_PACKAGES}/deep_ep",
    ),
    _Line(created_by="COPY examples examples # buildkit", below="vllm-workspace/examples"),
)


def large_image(folder: Path) -> Image:
    """The image, from the cache folder; the first time 2.8 GB of wheels are fetched and packed, which takes minutes.

    Raises:
        subprocess.CalledProcessError: The package index does not have, or does not give, one of the wheels.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as threads:  # compressing lets other threads run
        layers = list(threads.map(lambda line: _layer(line, folder), _LINES))
    steps = [Step(created_by=line.created_by, layer=layer) for line, layer in zip(_LINES, layers, strict=True)]
    label = {"org.opencontainers.image.revision": COMMIT}
    return image_of([*steps, Step(created_by="LABEL revision", labels=label)], _BUILT)


def _layer(line: _Line, folder: Path) -> Layer:
    name = hashlib.sha256(f"{_RECIPE} {line}".encode()).hexdigest()[:32]
    card, blob = folder / f"{name}.json", folder / f"{name}.blob"
    if not card.exists():
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            wheels = [_fetched(wheel, Path(unfinished)) for wheel in line.wheels]
            with Path(unfinished, "blob").open("w+b") as file:
                packing = _Packing(file)
                _write(packing, line.below, wheels)
                kept = packing.finish()
            Path(unfinished, "blob").replace(blob)
            Path(unfinished, "card").write_text(json.dumps(kept))
            Path(unfinished, "card").replace(card)
    return Layer(**json.loads(card.read_text()), compression=Compression.GZIP, path=blob)


def _fetched(wheel: str, into: Path) -> Path:
    target = into / wheel.partition("==")[0]
    platforms = [option for platform in _PLATFORMS for option in ("--platform", platform)]
    abis = [option for abi in ("cp312", "abi3", "none") for option in ("--abi", abi)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
    subprocess.run(
        [*command, "--python-version=3.12", *abis, f"--dest={target}", wheel], check=True, stdout=subprocess.DEVNULL
    )
    return next(target.glob("*.whl"))


def _write(packing: _Packing, below: str, wheels: Sequence[Path]) -> None:
    """A layer's archive in lexical order component by component, as engines walk a directory."""
    with ExitStack() as stack, tarfile.open(fileobj=packing, mode="w|", bufsize=_PIECE) as archive:
        found: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        for wheel in wheels:
            opened = stack.enter_context(zipfile.ZipFile(wheel))
            found |= {
                f"{below}/{member.filename}": (opened, member) for member in opened.infolist() if not member.is_dir()
            }
        note = f"{below}/README.md"
        for path in _in_order({*found, note}):
            entry = tarfile.TarInfo(path)
            entry.mtime = int(_BUILT.timestamp())
            if path in found:
                opened, member = found[path]
                entry.size, entry.mode = member.file_size, 0o644
                with opened.open(member) as content:
                    archive.addfile(entry, content)
            elif path == note:
                archive.addfile(entry)
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)


def _in_order(files: set[str]) -> Iterator[str]:
    parts = [path.split("/") for path in files]
    folders = {"/".join(path[:length]) for path in parts for length in range(1, len(path))}
    return iter(sorted({*files, *folders}, key=lambda path: path.split("/")))


class _Packing(io.RawIOBase):
    """A file to write an archive to: compressed as Docker compresses, and measured on both sides."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._compress = zlib.compressobj(6, wbits=31)
        self._raw, self._compressed, self._size = hashlib.sha256(), hashlib.sha256(), 0

    def write(self, data: Buffer, /) -> int:
        self._raw.update(data)
        self._put(self._compress.compress(data))
        return memoryview(data).nbytes

    def finish(self) -> Mapping[str, str | int]:
        """Digest, diffID and size of the layer."""
        self._put(self._compress.flush())
        return {
            "digest": f"sha256:{self._compressed.hexdigest()}",
            "diff_id": f"sha256:{self._raw.hexdigest()}",
            "size": self._size,
        }

    def _put(self, data: bytes) -> None:
        self._compressed.update(data)
        self._size += self._file.write(data)
