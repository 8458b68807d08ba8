"""The images of the local Docker engine as builds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bisector.errors import UnknownSource
from bisector.model import Build, EngineImage, Platform
from bisector.ports import LocalImages
from bisector.streams.tags import NAME, believable, oldest_first

_SOURCE = re.compile(
    rf"docker:(?P<repository>(?:(?:[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{{1,5}})?)/)?"
    rf"{NAME}(?:/{NAME})*)?"
)


def parse_source(spelling: str) -> str | None:
    """The repository that ``docker:REPOSITORY`` names; ``None`` for ``docker:``, which is everything there is.

    Raises:
        UnknownSource: That is not how one is spelled.
    """
    found = _SOURCE.fullmatch(spelling)
    if not found:
        raise UnknownSource(
            f"{spelling!r} names no images of the Docker engine",
            hint="Write it as docker: for all there are, or as docker:REPOSITORY.",
        )
    return found["repository"]


class EngineStream:
    """What the engine has, of one repository or of all.

    Args:
        images: What it has.
        repository: The repository all of these are of; ``None`` when they are of any.
        platform: Whose image is meant.
    """

    def __init__(self, images: LocalImages, *, repository: str | None, platform: Platform) -> None:
        self._images = images
        self._repository = repository
        self._platform = platform

    @property
    def source(self) -> str:
        """The canonical spelling: ``docker:vllm/vllm-openai``."""
        return f"docker:{self._repository or ''}"

    async def builds(self) -> Sequence[Build]:
        """Every image by each of its names, by the date it was created; within a repository the id is the tag.

        Raises:
            Unavailable: The engine does not answer.
        """
        return oldest_first(
            Build(
                id=facts.name.removeprefix(f"{self._repository}:") if self._repository else facts.name,
                source=self.source,
                spec=f"docker:{facts.name}",
                platform=self._platform,
                location=EngineImage(name=facts.name),
                digest=facts.digest,
                published_at=believable(facts.created),
                commit=facts.commit,
                pin=facts.pin,
            )
            for facts in await self._images.images()
        )
