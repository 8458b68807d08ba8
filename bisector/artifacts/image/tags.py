"""The tags of a repository with what their images say of themselves: a ``ports.TagSource``."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.artifacts.image.registries import Registries
from bisector.model import Platform, RemoteImage
from bisector.ports import ImageFacts


class RegistryTags:
    """One repository, for one platform."""

    def __init__(self, registries: Registries, *, registry: str, repository: str, platform: Platform) -> None:
        self._registries = registries
        self._registry = registry
        self._repository = repository
        self._platform = platform

    async def tags(self) -> Sequence[str]:
        """Every tag, in any order."""
        return await self._registries.client(self._registry, self._repository).tags()

    async def image(self, tag: str) -> ImageFacts:
        """The image a tag names now, for one manifest and one configuration."""
        artifact = await self._registries.open(
            RemoteImage(registry=self._registry, repository=self._repository, reference=tag, platform=self._platform)
        )
        digest, claims = await artifact.digest(), await artifact.claims()
        index = artifact.named_digest
        return ImageFacts(
            digest=digest,
            index_digest=index if index != digest else None,
            created=claims.created_at,
            commit=claims.commit,
        )
