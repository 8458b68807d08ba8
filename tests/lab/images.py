"""The nightly images: configurations, manifests and manifest lists over the layers of ``dockerfile.py``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from . import releases
from .commits import Commit
from .dockerfile import SITE_PACKAGES, Recipe, Step
from .layers import Compression, Layer, LayerShelf, sha256
from .scenario import Plan
from .site_packages import installed, installed_on_arm

PLATFORMS: Final = ("linux/amd64", "linux/arm64")
_PUSHING: Final = timedelta(minutes=24)  # from the end of the build until the tag is there
_DOCKER: Final = "application/vnd.docker"
_OCI: Final = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as it lies in a registry."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """Its address."""
        return sha256(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A multi-platform image with everything a registry must be given.

    Attributes:
        index: The manifest list.
        manifests: Platform → manifest; an attestation's under ``unknown/unknown``.
        blobs: Configurations and the like.
        layers: Platform → layers, the base first.
        vllm: Digest of the layer with vLLM on linux/amd64.
    """

    index: Manifest
    manifests: Mapping[str, Manifest]
    blobs: Sequence[bytes]
    layers: Mapping[str, Sequence[Layer]]
    vllm: str


class ImageShop:
    """Builds nightlies out of the cache folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shelf = LayerShelf(folder / "layers")

    def build(self, plan: Plan) -> Image:
        """The image of a night."""
        vllm = {platform: self._vllm(plan.wheel, platform, oci=plan.oci) for platform in PLATFORMS}
        manifests: dict[str, Manifest] = {}
        blobs: list[bytes] = []
        layers: dict[str, Sequence[Layer]] = {}
        for platform in PLATFORMS:
            recipe = Recipe(shelf=self._shelf, platform=platform, plan=plan, vllm=vllm[platform])
            steps = recipe.steps()
            blobs.append(_configuration(platform, steps, plan.pushed_at - _PUSHING))
            layers[platform] = [step.layer for step in steps if step.layer]
            manifests[platform] = _manifest(blobs[-1], layers[platform], oci=plan.oci)
        if plan.oci:
            statement = json.dumps({"_type": "https://in-toto.io/Statement/v0.1", "subject": []}).encode()
            blobs += [statement, b"{}"]
            manifests["unknown/unknown"] = _attestation(statement)
        index = _index(manifests, oci=plan.oci)
        return Image(index=index, manifests=manifests, blobs=blobs, layers=layers, vllm=vllm["linux/amd64"].digest)

    def _vllm(self, wheel: Commit, platform: str, *, oci: bool) -> Layer:
        contents = installed if platform == "linux/amd64" else installed_on_arm

        def files() -> dict[str, bytes]:
            release = releases.read(wheel.release, self._folder)
            return {f"{SITE_PACKAGES}/{path}": content for path, content in contents(wheel, release).items()}

        return self._shelf.layer(
            f"vllm {wheel.version} {wheel.release} {platform}",
            wheel.at,
            files,
            compression=Compression.ZSTD if oci else Compression.GZIP,
        )


def image_of(steps: Sequence[Step], at: datetime, *, platform: str = "linux/amd64") -> Image:
    """An image for one platform with these lines, in a list of its own."""
    configuration, layers = _configuration(platform, steps, at), [step.layer for step in steps if step.layer]
    manifests = {platform: _manifest(configuration, layers, oci=False)}
    return Image(
        index=_index(manifests, oci=False),
        manifests=manifests,
        blobs=[configuration],
        layers={platform: layers},
        vllm=next(step.layer.digest for step in steps if step.layer and " dist/*.whl" in step.created_by),
    )


def _configuration(platform: str, steps: Sequence[Step], at: datetime) -> bytes:
    created = at.isoformat().replace("+00:00", "Z")
    system, machine = platform.split("/")
    lines: list[dict[str, Any]] = []
    for step in steps:
        line: dict[str, Any] = {"created": created, "created_by": step.created_by}
        if "#(nop)" not in step.created_by:
            line["comment"] = "buildkit.dockerfile.v0"
        if step.layer is None:
            line["empty_layer"] = True
        lines.append(line)
    return _json(
        {
            "architecture": machine,
            "config": {
                "Env": [f"{name}={value}" for step in steps for name, value in step.env.items()],
                "Entrypoint": ["vllm", "serve"],
                "WorkingDir": "/vllm-workspace",
                "Labels": {name: value for step in steps for name, value in step.labels.items()},
            },
            "created": created,
            "history": lines,
            "os": system,
            "rootfs": {"type": "layers", "diff_ids": [step.layer.diff_id for step in steps if step.layer]},
        }
    )


def _manifest(configuration: bytes, layers: Sequence[Layer], *, oci: bool) -> Manifest:
    media_type = f"{_OCI}.manifest.v1+json" if oci else f"{_DOCKER}.distribution.manifest.v2+json"
    config_type = f"{_OCI}.config.v1+json" if oci else f"{_DOCKER}.container.image.v1+json"
    entries = []
    for layer in layers:
        layer_type = f"{_OCI}.layer.v1.tar+{layer.compression}" if oci else f"{_DOCKER}.image.rootfs.diff.tar.gzip"
        entries.append({"mediaType": layer_type, "size": layer.size, "digest": layer.digest})
    body = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": _descriptor(config_type, configuration),
        "layers": entries,
    }
    return Manifest(media_type=media_type, content=_json(body))


def _attestation(statement: bytes) -> Manifest:
    media_type = f"{_OCI}.manifest.v1+json"
    body = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": _descriptor(f"{_OCI}.config.v1+json", b"{}"),
        "layers": [_descriptor("application/vnd.in-toto+json", statement)],
    }
    return Manifest(media_type=media_type, content=_json(body))


def _index(manifests: Mapping[str, Manifest], *, oci: bool) -> Manifest:
    media_type = f"{_OCI}.index.v1+json" if oci else f"{_DOCKER}.distribution.manifest.list.v2+json"
    entries = []
    for platform, manifest in manifests.items():
        system, machine = platform.split("/")
        entry = _descriptor(manifest.media_type, manifest.content)
        entry["platform"] = {"architecture": machine, "os": system}
        if system == "unknown":
            entry["annotations"] = {
                "vnd.docker.reference.digest": manifests["linux/amd64"].digest,
                "vnd.docker.reference.type": "attestation-manifest",
            }
        entries.append(entry)
    return Manifest(
        media_type=media_type, content=_json({"schemaVersion": 2, "mediaType": media_type, "manifests": entries})
    )


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "size": len(content), "digest": sha256(content)}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
