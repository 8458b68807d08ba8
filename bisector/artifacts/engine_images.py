"""The images that the local Docker engine has."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import anyio.to_thread

from bisector.artifacts.engine_api import Engine, InspectedImage
from bisector.artifacts.image.claims import read_claims
from bisector.ports import LocalImageFacts

_NAMELESS: Final = "<none>:<none>"


class EngineImages:
    """What the engine has: a ``ports.LocalImages``.

    Args:
        repository: Only images that are called so.
    """

    def __init__(self, repository: str | None = None) -> None:
        self._repository = repository

    async def images(self) -> Sequence[LocalImageFacts]:
        """Every image by each of its names; one that lost its name by its id."""
        return await anyio.to_thread.run_sync(self._images)

    def _images(self) -> list[LocalImageFacts]:
        with closing(Engine()) as engine:
            images = engine.images(self._repository)
        return [_facts(image, name) for image in images for name in self._names(image)]

    def _names(self, image: InspectedImage) -> list[str]:
        names = [name for name in image.repo_tags or () if name != _NAMELESS]
        if self._repository is not None:
            return [name for name in names if name.rpartition(":")[0] == self._repository]
        return names or [image.id]


def _facts(image: InspectedImage, name: str) -> LocalImageFacts:
    claims = read_claims(image.configuration)
    published = (each for each in image.repo_digests or () if each.partition("@")[0] == name.rpartition(":")[0])
    return LocalImageFacts(
        name=name,
        digest=image.digest,
        pin=next(published, image.id),
        created=claims.created_at,
        commit=claims.commit,
    )


async def engine_version() -> str:
    """The version of the local engine.

    Raises:
        Unavailable: It does not answer, or not us.
    """

    def ask() -> str:
        with closing(Engine()) as engine:
            return engine.version()

    return await anyio.to_thread.run_sync(ask)
