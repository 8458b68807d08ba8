"""Builds: one item of a stream each, where its files are, and the commits they come from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType, TypeAlias

Digest = NewType("Digest", str)
"""A content address, ``sha256:<64 hex>``: equal digests mean equal content."""


Platform = NewType("Platform", str)
"""``os/architecture`` as container tools spell it: ``linux/amd64``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWheel:
    """A wheel on a web server.

    Attributes:
        url: Where it lies.
        size: Its length in bytes, when the index says.
    """

    url: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPath:
    """A wheel, a shared library or an unpacked directory on this machine."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWheel:
    """The wheel that was built of one commit, in an index of per-commit wheels.

    Attributes:
        commit: All 40 digits.
        platform: Whose wheel.
        variant: The CUDA variant's folder, such as ``cu129``; ``None`` is the default build.
    """

    commit: str
    platform: Platform
    variant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteImage:
    """A container image in a registry.

    Attributes:
        registry: The host as users write it: ``docker.io``, ``ghcr.io``, ``127.0.0.1:5000``.
        repository: ``vllm/vllm-openai``.
        reference: A tag, or a digest ``sha256:…``.
        platform: Which image of a list of images.
    """

    registry: str
    repository: str
    reference: str
    platform: Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """A container image on this machine's disk.

    Attributes:
        path: An OCI layout directory, or an archive that ``docker save`` or ``skopeo`` wrote.
        name: Which of several images in it; ``None`` where there is only one.
        platform: Which image of a list of images.
    """

    path: str
    name: str | None
    platform: Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineImage:
    """An image in the local Docker engine, by its name or id."""

    name: str


Location: TypeAlias = RemoteWheel | LocalPath | CommitWheel | RemoteImage | LocalImage | EngineImage


class Mark(StrEnum):
    """Something a reader should know about a build before adopting it."""

    YANKED = "yanked"
    PRERELEASE = "pre-release"
    FLOATING = "floating"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One item of a stream.

    Attributes:
        id: The name within its stream: ``0.27.0``.
        source: The stream's canonical spelling: ``pypi:vllm``.
        spec: A spelling that names this build anywhere: ``pypi:vllm==0.27.0``.
        platform: The platform whose files are meant.
        location: Where the files are, or ``None`` when the stream has none for this platform.
        witness: A cheaper artifact of the same commit, for a first look; the location stays the authority.
        elsewhere: Other places that may have the same commit's files when the location has them no more.
        digest: The content address of the artifact, when the stream knows it before reading.
        published_at: When it appeared, UTC.
        commit: The source commit, when the stream knows it before reading.
        pin: The line to paste in order to use exactly this build.
        marks: What a reader should know before adopting it.
    """

    id: str
    source: str
    spec: str
    platform: Platform
    location: Location | None
    witness: CommitWheel | None = None
    elsewhere: tuple[Location, ...] = ()
    digest: Digest | None = None
    published_at: datetime | None = None
    commit: str | None = None
    pin: str | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One step of a branch.

    Attributes:
        sha: All 40 digits.
        parent: The first parent, the step before on the branch; ``None`` for the very first.
        committed_at: When it came onto the branch, UTC, as far as its committer's date tells.
        title: The first line of its message, in one printable line.
        pull_request: The number at the end of the title: ``… (#50000)``.
    """

    sha: str
    parent: str | None
    committed_at: datetime
    title: str
    pull_request: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyPin:
    """Which state of a dependency the source builds with.

    Attributes:
        repository: Where it is cloned from: ``https://github.com/deepseek-ai/DeepGEMM.git``.
        revision: The commit, tag or branch that is checked out.
    """

    repository: str
    revision: str
