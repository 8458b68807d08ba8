"""The images of an OCI layout, or of an archive on disk, as builds."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import UnknownSource
from bisector.model import Build, LocalImage, Platform
from bisector.ports import LocalImages
from bisector.streams.tags import believable, oldest_first

_KIND = "oci:"


def parse_source(spelling: str) -> str:
    """The path that ``oci:PATH`` names.

    Raises:
        UnknownSource: That is not how one is spelled.
    """
    path = spelling.removeprefix(_KIND)
    if not path or path == spelling:
        raise UnknownSource(f"{spelling!r} names no images on disk", hint="Write it as oci:DIRECTORY or oci:ARCHIVE.")
    return path


class LayoutStream:
    """What a layout or an archive holds.

    Args:
        images: What it holds.
        path: Where it is, as it was spelled.
        platform: Whose image is meant.
    """

    def __init__(self, images: LocalImages, *, path: str, platform: Platform) -> None:
        self._images = images
        self._path = path
        self._platform = platform

    @property
    def source(self) -> str:
        """The canonical spelling: ``oci:PATH``."""
        return f"{_KIND}{self._path}"

    async def builds(self) -> Sequence[Build]:
        """Every image by each of its names, by the date it was created; without one for the platform, no location.

        Raises:
            UnknownBuild: There is nothing at the path.
            Unreadable: It is no layout and no archive.
        """
        return oldest_first(
            Build(
                id=facts.name,
                source=self.source,
                spec=f"{self.source}:{facts.name}",
                platform=self._platform,
                location=LocalImage(path=self._path, name=facts.name, platform=self._platform)
                if facts.digest
                else None,
                digest=facts.digest,
                published_at=believable(facts.created),
                commit=facts.commit,
                pin=facts.pin,
            )
            for facts in await self._images.images()
        )
