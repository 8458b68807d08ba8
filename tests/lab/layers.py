"""Image layers: tar archives in the order a container engine writes them, compressed, kept by what went into them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from backports import zstd
from isal import igzip

_RECIPE = "3"  # changes when the same key would give another layer


class Compression(StrEnum):
    """How a layer is compressed."""

    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A compressed layer on disk.

    Attributes:
        digest: Of the compressed bytes.
        diff_id: Of the tar archive.
        size: Compressed, in bytes.
        compression: How.
        path: Where the compressed bytes lie.
    """

    digest: str
    diff_id: str
    size: int
    compression: Compression
    path: Path


class LayerShelf:
    """Makes layers, each once for ever."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def layer(
        self,
        key: str,
        at: datetime,
        files: Callable[[], Mapping[str, bytes]],
        *,
        compression: Compression = Compression.GZIP,
    ) -> Layer:
        """The layer with these files, all changed ``at`` that moment; ``key`` names what they are made from."""
        name = hashlib.sha256(f"{_RECIPE} {key} {at} {compression}".encode()).hexdigest()[:32]
        card, blob = self._folder / f"{name}.json", self._folder / f"{name}.blob"
        if not card.exists():
            archive = tar(files(), at)
            compressed = _compress(archive, compression)
            kept = {"digest": sha256(compressed), "diff_id": sha256(archive), "size": len(compressed)}
            for path, content in (blob, compressed), (card, json.dumps(kept).encode()):
                # another thread or process may be at it too
                with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as part:
                    part.write(content)
                Path(part.name).replace(path)
        return Layer(**json.loads(card.read_text()), compression=compression, path=blob)


def tar(files: Mapping[str, bytes], at: datetime) -> bytes:
    """The files and their folders in lexical order component by component, as engines walk a directory."""
    folders = {"/".join(parts[:length]) for parts in map(_parts, files) for length in range(1, len(parts))}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*folders, *files}, key=_parts):
            entry = tarfile.TarInfo(path)
            entry.mtime = int(at.timestamp())
            if path in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(files[path]), 0o644
                archive.addfile(entry, io.BytesIO(files[path]))
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    """The content's address: ``sha256:<hex>``."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _parts(path: str) -> list[str]:
    return path.split("/")


def _compress(archive: bytes, compression: Compression) -> bytes:
    if compression is Compression.ZSTD:
        return zstd.compress(archive, level=3)
    return bytes(igzip.compress(archive, compresslevel=3, mtime=0))
