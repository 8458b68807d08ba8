"""What a registry says of an image: manifests, indexes and configurations, Docker's and OCI's.

Formats: https://github.com/opencontainers/image-spec (``manifest.md``, ``image-index.md``, ``config.md``) and
https://distribution.github.io/distribution/spec/manifest-v2-2/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from bisector.artifacts.image.reference import is_digest
from bisector.errors import NoBuildForPlatform, Unreadable
from bisector.model import Digest, Platform

DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPES: Final = (DOCKER_MANIFEST, DOCKER_LIST, OCI_MANIFEST, OCI_INDEX)

LONGEST_MANIFEST: Final = 4 << 20
"""Bytes; registries themselves take no longer ones."""
LONGEST_CONFIG: Final = 8 << 20
_MOST_LAYERS: Final = 1000
_NOT_A_LAYER: Final = ("foreign", "nondistributable")
_T = TypeVar("_T")


class PlatformField(msgspec.Struct, frozen=True):
    """A ``platform`` of an index."""

    os: str = "linux"
    architecture: str = "amd64"
    variant: str = ""

    def fits(self, wanted: Platform) -> bool:
        """Whether a manifest of this platform is one for the platform wanted; its variant counts only if named."""
        os, architecture, variant = (*wanted.split("/"), "", "")[:3]
        return (self.os, self.architecture) == (os, architecture) and variant in ("", self.variant)

    def __str__(self) -> str:
        """As container tools write it."""
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A pointer to content: type, digest, size in bytes."""

    digest: str
    size: int
    media_type: str = ""
    platform: PlatformField | None = None
    annotations: dict[str, str] | None = None


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    """A manifest or an index, by whichever of these fields it has."""

    schema_version: int = 2
    media_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None


class _RootFs(msgspec.Struct, frozen=True):
    diff_ids: list[str] = []


class Step(msgspec.Struct, frozen=True):
    """One entry of an image's history, the oldest first: the command, and whether it left no layer."""

    created_by: str = ""
    empty_layer: bool = False


class _Runtime(msgspec.Struct, frozen=True):
    env: list[str] | None = msgspec.field(name="Env", default=None)
    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)


class ImageConfig(msgspec.Struct, frozen=True):
    """What an image says about itself, as far as it is used."""

    rootfs: _RootFs = _RootFs()
    history: list[Step] | None = None
    config: _Runtime | None = None
    created: str | None = None
    os: str = "linux"
    architecture: str = "amd64"
    variant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer as it is stored, and the digest of what it decompresses to."""

    digest: Digest
    size: int
    diff_id: Digest
    created_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageManifest:
    """One image for one platform."""

    digest: Digest
    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageIndex:
    """Images of one name for several platforms."""

    digest: Digest
    manifests: tuple[Descriptor, ...]


def decode_manifest(body: bytes) -> ImageManifest | ImageIndex:
    """Read a manifest or an index, Docker's or OCI's; the fields decide, since media types are often left out.

    Raises:
        Unreadable: It is neither, or of the first kind of 2015, whose layers cannot be aligned with anything.
    """
    digest = Digest(f"sha256:{hashlib.sha256(body).hexdigest()}")
    document = _decode(body, _Document, f"The manifest {digest}")
    if document.manifests is not None:
        return ImageIndex(digest=digest, manifests=tuple(document.manifests))
    if document.config is None or document.layers is None:
        raise Unreadable(f"The manifest {digest} describes no container image (schema {document.schema_version})")
    if len(document.layers) > _MOST_LAYERS:
        raise Unreadable(f"The manifest {digest} has {len(document.layers):,} layers")
    for part in (document.config, *document.layers):
        if not is_digest(part.digest) or part.size < 0:
            raise Unreadable(f"The manifest {digest} names a part by no digest and size that can be used")
        if any(word in part.media_type for word in _NOT_A_LAYER):
            raise Unreadable(f"The manifest {digest} has a layer that is kept outside of its registry")
    return ImageManifest(digest=digest, config=document.config, layers=tuple(document.layers))


def decode_config(body: bytes) -> ImageConfig:
    """Read an image's configuration.

    Raises:
        Unreadable: It is none.
    """
    return _decode(body, ImageConfig, "The image's configuration")


def choose_platform(index: ImageIndex, wanted: Platform, *, image: str) -> Descriptor:
    """The first image of an index for a platform; attestations are no images, one without a platform is linux/amd64.

    Raises:
        NoBuildForPlatform: There is none; the message lists those there are.
    """
    images = [
        (descriptor.platform or PlatformField(), descriptor)
        for descriptor in index.manifests
        if descriptor.platform is None or descriptor.platform.os != "unknown"
    ]
    for platform, descriptor in images:
        if platform.fits(wanted):
            if not is_digest(descriptor.digest):
                raise Unreadable(f"The index {index.digest} names an image by no digest that can be used")
            return descriptor
    offered = ", ".join(dict.fromkeys(str(platform) for platform, _ in images)) or "no platform at all"
    raise NoBuildForPlatform(f"{image} has no image for {wanted}, only for {offered}")


def align(manifest: ImageManifest, config: ImageConfig) -> tuple[Layer, ...]:
    """The layers, the lowest first, each with its diffID and, when the history has as many steps, its command.

    Raises:
        Unreadable: Manifest and configuration have different numbers of layers.
    """
    diff_ids: Sequence[str] = config.rootfs.diff_ids
    if len(diff_ids) != len(manifest.layers) or not all(map(is_digest, diff_ids)):
        raise Unreadable(f"The image {manifest.digest} has {len(manifest.layers)} layers and {len(diff_ids)} diffIDs")
    steps: list[str | None] = [step.created_by for step in config.history or () if not step.empty_layer]
    if len(steps) != len(diff_ids):
        steps = [None] * len(diff_ids)
    return tuple(
        Layer(digest=Digest(part.digest), size=part.size, diff_id=Digest(diff_id), created_by=step)
        for part, diff_id, step in zip(manifest.layers, diff_ids, steps, strict=True)
    )


def _decode(body: bytes, kind: type[_T], name: str) -> _T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise Unreadable(f"{name} cannot be understood: {exc}") from exc
