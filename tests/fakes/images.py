"""Layers, images and a source of them in memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bisector.errors import UnknownBuild
from bisector.model import Digest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = "usr/local/lib/python3.12/dist-packages"
Compression = Literal["gzip", "zstd", "tar"]
INSTALL = "RUN /bin/sh -c uv pip install --system dist/*.whl --verbose # buildkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    path: str
    kind: bytes = tarfile.REGTYPE
    content: bytes = b""
    link: str = ""


def file(path: str, content: bytes = b"") -> Item:
    return Item(path=path, content=content)


def directory(path: str) -> Item:
    return Item(path=path, kind=tarfile.DIRTYPE)


def symlink(path: str, to: str) -> Item:
    return Item(path=path, kind=tarfile.SYMTYPE, link=to)


def hardlink(path: str, to: str) -> Item:
    return Item(path=path, kind=tarfile.LNKTYPE, link=to)


def whiteout(path: str) -> Item:
    parent, _, name = path.rpartition("/")
    return Item(path=f"{parent}/.wh.{name}" if parent else f".wh.{name}")


def opaque(path: str) -> Item:
    return Item(path=f"{path}/.wh..wh..opq")


def pack(items: Iterable[Item], *, style: int = tarfile.PAX_FORMAT) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=style) as archive:
        for item in items:
            info = tarfile.TarInfo(item.path)
            info.type, info.size, info.linkname = item.kind, len(item.content), item.link
            archive.addfile(info, io.BytesIO(item.content))
    return written.getvalue()


def compress(raw: bytes, how: Compression) -> bytes:
    match how:
        case "gzip":
            return gzip.compress(raw, 6, mtime=0)
        case "zstd":
            return zstd.compress(raw)
        case "tar":
            return raw


def digest(content: bytes) -> Digest:
    return Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Everything a registry would hold of it; layers are the lowest first."""

    manifest: bytes
    config: bytes
    layers: tuple[bytes, ...]
    blobs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> Digest:
        return digest(self.manifest)


def image(
    layers: Sequence[bytes],
    *,
    how: Compression = "gzip",
    style: Literal["docker", "oci"] = "oci",
    created_by: Sequence[str] | None = None,
    **extra: object,
) -> Image:
    """An image of these tar archives; steps of the history that left no layer are not given."""
    history = [{"created_by": step} for step in created_by or [f"step {n}" for n in range(len(layers))]]
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "2026-07-31T04:00:00Z",
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
            "history": history,
            **extra,
        }
    ).encode()
    stored = tuple(compress(layer, how) for layer in layers)
    kind, manifest_type = _TYPES[style]
    suffix = {"gzip": ".tar.gzip" if style == "docker" else ".tar+gzip", "zstd": ".tar+zstd", "tar": ".tar"}[how]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": manifest_type,
            "config": {"mediaType": kind["config"], "digest": digest(config), "size": len(config)},
            "layers": [
                {"mediaType": kind["layer"] + suffix, "digest": digest(blob), "size": len(blob)} for blob in stored
            ],
        }
    ).encode()
    blobs: dict[str, bytes] = {digest(blob): blob for blob in (*stored, config, manifest)}
    return Image(manifest=manifest, config=config, layers=stored, blobs=blobs)


_TYPES = {
    "docker": (
        {
            "config": "application/vnd.docker.container.image.v1+json",
            "layer": "application/vnd.docker.image.rootfs.diff",
        },
        "application/vnd.docker.distribution.manifest.v2+json",
    ),
    "oci": (
        {"config": "application/vnd.oci.image.config.v1+json", "layer": "application/vnd.oci.image.layer.v1"},
        "application/vnd.oci.image.manifest.v1+json",
    ),
}


class MemorySource:
    """Content by digest, in small pieces; counts what it gave out."""

    def __init__(self, blobs: Mapping[str, bytes], *, piece: int = 4096) -> None:
        self._blobs = blobs
        self._piece = piece
        self.given: dict[str, int] = {}

    async def manifest(self, digest: Digest) -> bytes:
        if digest not in self._blobs:
            raise UnknownBuild(f"There is no {digest}")
        return self._blobs[digest]

    @asynccontextmanager
    async def blob(self, digest: Digest, size: int) -> AsyncIterator[AsyncIterator[bytes]]:
        content = self._blobs[digest]
        assert len(content) == size
        yield self._pieces(digest, content)

    async def _pieces(self, digest: str, content: bytes) -> AsyncIterator[bytes]:
        for at in range(0, len(content), self._piece):
            piece = content[at : at + self._piece]
            self.given[digest] = self.given.get(digest, 0) + len(piece)
            yield piece


def write_layout(made: Image, below: Path, name: str) -> Path:
    """An OCI layout directory with this image in it."""
    (below / "blobs" / "sha256").mkdir(parents=True)
    for content in made.blobs.values():
        (below / "blobs" / "sha256" / hashlib.sha256(content).hexdigest()).write_bytes(content)
    descriptor = {
        "mediaType": json.loads(made.manifest)["mediaType"],
        "digest": made.digest,
        "size": len(made.manifest),
        "annotations": {"org.opencontainers.image.ref.name": name},
    }
    (below / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [descriptor]}))
    (below / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return below


def docker_archive(layers: Sequence[bytes], name: str, **config: Any) -> bytes:
    """An image of these tar archives as ``docker save`` wrote it before Docker 25, for ``docker load``."""
    made = image(layers, how="tar", **config)
    names = [f"{at}/layer.tar" for at in range(len(layers))]
    parts = [{"Config": "config.json", "RepoTags": [name], "Layers": names}]
    return pack(
        [
            *(file(path, layer) for path, layer in zip(names, layers, strict=True)),
            file("config.json", made.config),
            file("manifest.json", json.dumps(parts).encode()),
        ]
    )
