"""Images on disk: OCI layouts, and archives as ``docker save`` and ``skopeo`` write them.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md. An archive of Docker before 25 has no manifest;
one is made up from its list of layers, whose digests are then those of their decompressed content.
"""

from __future__ import annotations

import hashlib
import posixpath
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import msgspec

from bisector.artifacts.image.manifest import (
    LONGEST_CONFIG,
    LONGEST_MANIFEST,
    OCI_MANIFEST,
    Descriptor,
    decode_config,
)
from bisector.artifacts.image.reference import is_digest, parse_reference
from bisector.errors import UnknownBuild, Unreadable
from bisector.model import Digest

_PIECE: Final = 1 << 18
_MOST_MEMBERS: Final = 100_000
_INDEX: Final = "index.json"
_SAVED: Final = "manifest.json"
_NAMES: Final = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
_T = TypeVar("_T")


class _Index(msgspec.Struct, frozen=True):
    manifests: list[Descriptor]


class _Saved(msgspec.Struct, frozen=True):
    config: str = msgspec.field(name="Config")
    layers: list[str] = msgspec.field(name="Layers")
    names: list[str] | None = msgspec.field(name="RepoTags", default=None)

    @property
    def called(self) -> Sequence[str]:
        """Its names; without one, the digest by which its configuration is called."""
        digest = f"sha256:{posixpath.basename(self.config).removesuffix('.json')}"
        return self.names or [digest if is_digest(digest) else self.config]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A run of bytes in a file."""

    path: Path
    start: int
    size: int


class Layout:
    """The ``BlobSource`` of images in a directory or an archive; see :func:`open_layout`."""

    def __init__(self, name: str, spans: Mapping[str, _Span], made_up: Mapping[Digest, bytes]) -> None:
        self._name = name
        self._spans = spans
        self._made_up = made_up

    async def manifest(self, digest: Digest) -> bytes:
        """A manifest or an index, checked against its digest."""
        if digest in self._made_up:
            return self._made_up[digest]
        span = self._span(digest)
        if span.size > LONGEST_MANIFEST:
            raise Unreadable(f"{self._name} has a manifest of {span.size:,} bytes")
        async with self.blob(digest, span.size) as pieces:
            return b"".join([piece async for piece in pieces])

    @asynccontextmanager
    async def blob(self, digest: Digest, size: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """A blob, piece by piece; checked once it was read to its end."""
        span = self._span(digest)
        if span.size != size:
            raise Unreadable(f"{self._name} has {span.size:,} bytes of {digest} where {size:,} are expected")
        async with aclosing(_pieces(self._name, span, digest)) as pieces:
            yield pieces

    def _span(self, digest: Digest) -> _Span:
        span = self._spans.get(digest)
        if span is None:
            raise UnknownBuild(f"{self._name} has no {digest}")
        return span


async def open_layout(path: Path, name: str | None = None) -> tuple[Layout, Digest]:
    """The images of an OCI layout directory, of an OCI archive or of a ``docker save`` archive.

    Returns:
        Where to read, and the digest of the image of that name, or of the only one.

    Raises:
        UnknownBuild: There is no such file, or no image of this name in it.
        Unreadable: It is none of these.
    """
    return await anyio.to_thread.run_sync(_open, path, name)


async def image_names(path: Path) -> Sequence[str]:
    """What the images in a directory or an archive are called, in its order; one without a name by its digest.

    Raises:
        UnknownBuild: There is no such file.
        Unreadable: It is no directory or archive of images.
    """
    return await anyio.to_thread.run_sync(_listed, path)


async def _pieces(name: str, span: _Span, digest: Digest) -> AsyncGenerator[bytes, None]:
    seen, left = hashlib.sha256(), span.size
    try:
        async with await anyio.open_file(span.path, "rb") as file:
            await file.seek(span.start)
            while left:
                piece = await file.read(min(_PIECE, left))
                if not piece:
                    raise Unreadable(f"{name} is cut off in the middle of {digest}")
                left -= len(piece)
                seen.update(piece)
                yield piece
    except OSError as exc:
        raise Unreadable(f"{name} cannot be read: {exc.strerror}") from exc
    if f"sha256:{seen.hexdigest()}" != digest:
        raise Unreadable(f"{name} has something else under {digest} (wrong digest)")


def _open(path: Path, name: str | None) -> tuple[Layout, Digest]:
    spans = _spans(path)
    if _INDEX in spans:
        return Layout(str(path), _blobs(spans), {}), _chosen(path, spans[_INDEX], name)
    return _saved(path, spans, name)


def _listed(path: Path) -> list[str]:
    spans = _spans(path)
    if _INDEX in spans:
        found = _decode(_bytes(spans[_INDEX]), _Index, f"{path}/{_INDEX}").manifests
        images = [image for image in found if image.platform is None or image.platform.os != "unknown"]
        names = [sorted(_names_of(image) - {image.digest, ""}) or [image.digest] for image in images]
    else:
        names = [sorted(image.called) for image in _decode(_bytes(spans[_SAVED]), list[_Saved], f"{path}/{_SAVED}")]
    return list(dict.fromkeys(name for each in names for name in each))


def _spans(path: Path) -> dict[str, _Span]:
    """Where the parts lie, one of which describes the others."""
    try:
        spans = _directory(path) if path.is_dir() else _archive(path)
    except FileNotFoundError as exc:
        raise UnknownBuild(f"There is no file or directory {path}") from exc
    except (OSError, tarfile.TarError) as exc:
        raise Unreadable(
            f"{path} cannot be read as an image: {exc}", hint="A compressed archive must be decompressed first."
        ) from exc
    if _INDEX not in spans and _SAVED not in spans:
        raise Unreadable(f"{path} is neither an OCI layout nor an archive of docker save")
    return spans


def _directory(path: Path) -> dict[str, _Span]:
    files = [*path.glob("*.json"), *path.glob("blobs/sha256/*")]
    return {
        str(file.relative_to(path)): _Span(path=file, start=0, size=file.stat().st_size)
        for file in files
        if file.is_file()
    }


def _archive(path: Path) -> dict[str, _Span]:
    spans: dict[str, _Span] = {}
    links: dict[str, str] = {}
    with tarfile.open(path, "r:") as archive:
        for count, member in enumerate(archive):
            if count > _MOST_MEMBERS:
                raise Unreadable(f"{path} holds more than {_MOST_MEMBERS:,} files")
            inside = posixpath.normpath(member.name)
            if member.isreg():
                spans[inside] = _Span(path=path, start=member.offset_data, size=member.size)
            elif member.issym():
                # Docker wrote a layer that two images share once, and a link for the second.
                links[inside] = posixpath.normpath(posixpath.join(posixpath.dirname(inside), member.linkname))
            elif member.islnk():
                links[inside] = posixpath.normpath(member.linkname)
    return spans | {link: spans[target] for link, target in links.items() if target in spans}


def _blobs(spans: Mapping[str, _Span]) -> dict[str, _Span]:
    named = {f"sha256:{inside.removeprefix('blobs/sha256/')}": span for inside, span in spans.items()}
    return {digest: span for digest, span in named.items() if is_digest(digest)}


def _chosen(path: Path, span: _Span, name: str | None) -> Digest:
    images = _decode(_bytes(span), _Index, f"{path}/{_INDEX}").manifests
    if name is not None:
        images = [image for image in images if any(_same(name, each) for each in _names_of(image))]
    if len({image.digest for image in images}) != 1 or not is_digest(images[0].digest):
        raise _ambiguous(path, name, len(images))
    return Digest(images[0].digest)


def _names_of(image: Descriptor) -> set[str]:
    return {image.digest, *((image.annotations or {}).get(key, "") for key in _NAMES)}


def _same(one: str, other: str) -> bool:
    """Whether two spellings name one image: ``vllm/vllm-openai`` is ``docker.io/vllm/vllm-openai:latest``."""
    if one == other or not (one and other):
        return one == other
    try:
        return parse_reference(one) == parse_reference(other)
    except UnknownBuild:
        return False


def _saved(path: Path, spans: Mapping[str, _Span], name: str | None) -> tuple[Layout, Digest]:
    """An archive of ``docker save``: the image's configuration has the digests that its manifest would have."""
    images = _decode(_bytes(spans[_SAVED]), list[_Saved], f"{path}/{_SAVED}")
    if name is not None:
        images = [image for image in images if any(_same(name, each) for each in image.called)]
    if len(images) != 1:
        raise _ambiguous(path, name, len(images))
    saved = images[0]
    absent = [part for part in (saved.config, *saved.layers) if posixpath.normpath(part) not in spans]
    if absent:
        raise Unreadable(f"{path} has no {absent[0]}")
    body = _bytes(spans[posixpath.normpath(saved.config)])
    config = Digest(f"sha256:{hashlib.sha256(body).hexdigest()}")
    diff_ids = decode_config(body).rootfs.diff_ids
    if len(diff_ids) != len(saved.layers):
        raise Unreadable(f"{path} has {len(saved.layers)} layers and {len(diff_ids)} diffIDs")
    layers = [spans[posixpath.normpath(layer)] for layer in saved.layers]
    manifest = msgspec.json.encode(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": "", "digest": config, "size": len(body)},
            "layers": [
                {"mediaType": "", "digest": diff_id, "size": layer.size}
                for diff_id, layer in zip(diff_ids, layers, strict=True)
            ],
        }
    )
    digest = Digest(f"sha256:{hashlib.sha256(manifest).hexdigest()}")
    blobs = {config: spans[posixpath.normpath(saved.config)], **dict(zip(diff_ids, layers, strict=True))}
    return Layout(str(path), blobs, {digest: manifest}), digest


def _ambiguous(path: Path, name: str | None, count: int) -> UnknownBuild:
    what = f"{count} images" if name is None else f"{count or 'no'} images called {name}"
    return UnknownBuild(f"{path} has {what}", hint="Name the one that is meant: oci:PATH:NAME.")


def _bytes(span: _Span) -> bytes:
    if span.size > LONGEST_CONFIG:
        raise Unreadable(f"{span.path} has a description of {span.size:,} bytes")
    with span.path.open("rb") as file:
        file.seek(span.start)
        return file.read(span.size)


def _decode(body: bytes, kind: type[_T], name: str) -> _T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise Unreadable(f"{name} cannot be understood: {exc}") from exc
