"""The images that a layout or an archive on disk holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.layout import image_names, open_layout
from bisector.errors import NoBuildForPlatform
from bisector.model import Platform
from bisector.ports import LocalImageFacts


class LayoutImages:
    """What is on disk: a ``ports.LocalImages``.

    Args:
        path: An OCI layout directory, or an archive that ``docker save`` or ``skopeo`` wrote.
        platform: Whose images are meant.
    """

    def __init__(self, path: Path, platform: Platform) -> None:
        self._path = path
        self._platform = platform

    async def images(self) -> Sequence[LocalImageFacts]:
        """Every image by each of its names; one without a name by its digest."""
        return [await self._facts(name) for name in await image_names(self._path)]

    async def _facts(self, name: str) -> LocalImageFacts:
        layout, digest = await open_layout(self._path, name)
        artifact = ImageArtifact(layout, digest, self._platform, name=name)
        try:
            own, claims = await artifact.digest(), await artifact.claims()
        except NoBuildForPlatform:
            return LocalImageFacts(name=name)
        return LocalImageFacts(name=name, digest=own, pin=digest, created=claims.created_at, commit=claims.commit)
