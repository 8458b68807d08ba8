"""What people write for an image, and which repository of which registry it names."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from bisector.errors import UnknownBuild
from bisector.model import Digest

DOCKER_HUB: Final = "docker.io"
_DOCKER_HUB_NAMES: Final = frozenset(
    {"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}
)
_DOCKER_HUB_SERVER: Final = "registry-1.docker.io"

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_PART}(?:/{_PART})*\Z")
_HOST: Final = re.compile(r"(?:(?!-)[A-Za-z0-9.-]+(?<!-)|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?\Z")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReference:
    """An image in a registry.

    Attributes:
        host: The registry, with its port if it has one; Docker Hub is ``docker.io``.
        repository: ``vllm/vllm-openai``.
        tag: The name that may move; ``latest`` when neither tag nor digest was given.
        digest: The content, which may not; it goes before the tag.
    """

    host: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    def __str__(self) -> str:
        """As Docker writes it."""
        name = self.repository if self.host == DOCKER_HUB else f"{self.host}/{self.repository}"
        return f"{name}@{self.digest}" if self.digest else f"{name}:{self.tag}"


def parse_reference(text: str) -> ImageReference:
    """Understand ``vllm/vllm-openai:nightly``, ``HOST:PORT/repo@sha256:…`` and whatever else Docker takes.

    Raises:
        UnknownBuild: It names no image.
    """
    name, _, digest = text.removeprefix("docker://").partition("@")
    head, colon, last = name.rpartition(":")
    tagged = bool(colon) and "/" not in last
    name, tag = (head, last) if tagged else (name, None if digest else "latest")
    first, slash, rest = name.partition("/")
    # Only a dot, a port or this one name tell a host from the first part of a repository at Docker Hub.
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host, repository = (first, rest) if named else (DOCKER_HUB, name)
    if host in _DOCKER_HUB_NAMES:
        host, repository = DOCKER_HUB, repository if "/" in repository else f"library/{repository}"
    fits = _HOST.match(host) and _REPOSITORY.match(repository) and (tag is None or _TAG.match(tag))
    if not fits or ("@" in text and not _DIGEST.match(digest)):
        raise _misspelt(text)
    return ImageReference(host=host, repository=repository, tag=tag, digest=Digest(digest) if digest else None)


def is_digest(text: str) -> bool:
    """Whether this is a content address of the only kind that is used."""
    return _DIGEST.match(text) is not None


def registry_base(host: str) -> str:
    """The address of a registry's API: ``https://HOST``; only this machine is spoken to in the clear."""
    server = _DOCKER_HUB_SERVER if host == DOCKER_HUB else host
    return f"{'http' if is_loopback(server) else 'https'}://{server}"


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is this machine by its very name."""
    name = re.sub(r":[0-9]+\Z", "", host) if host.count(":") == 1 or host.startswith("[") else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _misspelt(text: str) -> UnknownBuild:
    return UnknownBuild(
        f"{text!r} names no image", hint="Write it as REPOSITORY:TAG, HOST/REPOSITORY:TAG or REPOSITORY@sha256:DIGEST."
    )
