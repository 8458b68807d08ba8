"""A stream as the history remembers it: for searching without any network."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import UnknownBuild
from bisector.model import Build, Platform
from bisector.ports import Catalogue

_PREFIX = "history:"


class LedgerStream:
    """Every build ever met in another stream; what the history did not read of them stays unread.

    Args:
        catalogue: The memory.
        remembered: The other stream: ``dockerhub:vllm/vllm-openai``.
        platform: Whose files.
    """

    def __init__(self, catalogue: Catalogue, *, remembered: str, platform: Platform) -> None:
        self._catalogue = catalogue
        self._remembered = remembered
        self._platform = platform

    @property
    def source(self) -> str:
        """The canonical spelling: ``history:dockerhub:vllm/vllm-openai``."""
        return f"{_PREFIX}{self._remembered}"

    async def builds(self) -> Sequence[Build]:
        """The builds, oldest first.

        Raises:
            UnknownBuild: The history has met none of this stream.
        """
        builds = await self._catalogue.remembered(self._remembered, self._platform)
        if not builds:
            raise UnknownBuild(
                f"The history knows no builds of {self._remembered} for {self._platform}",
                hint="`bisector harvest` fills it; `bisector history builds` lists what it knows.",
            )
        return builds
