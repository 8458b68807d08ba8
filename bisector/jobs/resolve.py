"""From a spelling that stands by itself (``pypi:vllm==0.27.0``, a path) to the build it means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

from bisector.errors import UnknownBuild
from bisector.jobs.choose import choose
from bisector.model import Build, LocalPath, Platform
from bisector.ports import BuildStream, Ledger, Listed, Progress

_RELEASE = re.compile(r"(?:pypi:)?(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;]+)")
_FILE = re.compile(r"(^[./~])|/|\.(whl|so)$")


class Streams(Protocol):
    """Makes the stream a source names."""

    def __call__(self, source: str, platform: Platform) -> BuildStream:
        """The stream.

        Raises:
            UnknownSource: The spelling names none.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """Finds builds by spelling; a stream is listed once however many builds are asked of it.

    Attributes:
        streams: Makes a stream from its source.
        ledger: Is told what each stream lists.
        platform: Whose files are meant.
        default_source: Where a bare id is looked up.
        progress: Is told what is listed.
    """

    streams: Streams
    ledger: Ledger
    platform: Platform
    default_source: str
    progress: Progress
    _listed: dict[str, Sequence[Build]] = field(default_factory=dict)

    async def stream(self, source: str) -> Sequence[Build]:
        """Every build of a source, oldest first, noted in the ledger."""
        stream = self.streams(source, self.platform)
        if stream.source not in self._listed:
            builds = await stream.builds()
            await self.ledger.see(builds)
            self.progress(Listed(source=stream.source, builds=len(builds)))
            self._listed[stream.source] = builds
        return self._listed[stream.source]

    async def build(self, spelling: str) -> Build:
        """The build that a spelling means.

        Raises:
            UnknownBuild: There is none.
        """
        text = spelling.strip()
        if release := _RELEASE.fullmatch(text):
            return choose(await self.stream(f"pypi:{release['package']}"), release["version"])
        if text.startswith("pypi:"):
            raise UnknownBuild(
                f"{text} names a stream, not a build.", hint=f"Name a release too, such as {text}==1.2.3."
            )
        if _FILE.search(text):
            return Build(
                id=PurePath(text).name or text,
                source="file:",
                spec=text,
                platform=self.platform,
                location=LocalPath(path=text),
            )
        return choose(await self.stream(self.default_source), text)
