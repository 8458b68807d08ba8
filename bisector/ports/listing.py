"""Where builds are listed, and where the source's own history is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bisector.model import (
    Build,
    Commit,
    DependencyPin,
    Digest,
)


class BuildStream(Protocol):
    """An ordered series of builds of one thing."""

    @property
    def source(self) -> str:
        """The canonical spelling: ``pypi:vllm``."""

    async def builds(self) -> Sequence[Build]:
        """Every build the stream knows, oldest first.

        Raises:
            UnknownBuild: The thing itself does not exist.
            Unavailable: The place that lists it does not answer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What a tag's manifest and configuration say of the image for one platform.

    Attributes:
        digest: The manifest's.
        index_digest: That of the list of images it was chosen from, if there is one.
        created: When it says it was built.
        commit: The source commit in its labels.
    """

    digest: Digest
    index_digest: Digest | None = None
    created: datetime | None = None
    commit: str | None = None


class TagSource(Protocol):
    """One repository of a registry, for one platform."""

    async def tags(self) -> Sequence[str]:
        """Every tag, in any order.

        Raises:
            UnknownBuild: There is no such repository.
        """

    async def image(self, tag: str) -> ImageFacts:
        """The image a tag names now.

        Raises:
            UnknownBuild: The tag is gone.
            NoBuildForPlatform: It has no image for the platform.
            Unreadable: Its manifest or configuration cannot be understood.
            Unavailable: The registry does not answer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImageFacts:
    """An image that lies on this machine, as the place it lies in knows it.

    Attributes:
        name: What it is called there, or its digest where it has no name.
        digest: The content address of its image for the platform; ``None`` when it has none for it.
        pin: A spelling that goes on naming this content when the name has moved.
        created: When it says it was built.
        commit: The source commit in its labels.
    """

    name: str
    digest: Digest | None = None
    pin: str | None = None
    created: datetime | None = None
    commit: str | None = None


class LocalImages(Protocol):
    """A place on this machine that holds images: the local engine, a layout or archive on disk."""

    async def images(self) -> Sequence[LocalImageFacts]:
        """Every image, in any order; one with several names as often as it has names.

        Raises:
            UnknownBuild: There is no such place.
            Unreadable: It cannot be understood.
            Unavailable: The engine does not answer.
        """


class CommitHistory(Protocol):
    """One branch of a repository, wherever its history is read; commits are given in full or abbreviated to 7 digits.

    Any of these may raise ``Unavailable`` where the history does not answer, and ``UsageError`` for a range that is
    too long.
    """

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        """The commits of the branch after ``base`` up to ``head``, oldest first; none when they are the same.

        Raises:
            UnknownBuild: There is no such commit.
            ReversedRange: ``base`` comes after ``head``.
            UsageError: No branch leads from one to the other.
        """

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        """The commits of the branch from one moment up to another or the present, oldest first."""

    async def commit(self, sha: str) -> Commit:
        """One commit, of whatever branch.

        Raises:
            UnknownBuild: There is none.
        """

    async def pin(self, sha: str) -> DependencyPin | None:
        """The DeepGEMM the commit builds with; ``None`` when its build files name none.

        Raises:
            UnknownBuild: There is no such commit.
        """
