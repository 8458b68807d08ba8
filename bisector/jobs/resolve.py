"""From a spelling that stands by itself (``pypi:vllm==0.27.0``, an image, a path) to the build it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Protocol

from bisector.errors import UnknownBuild
from bisector.jobs.choose import choose
from bisector.model import (
    Build,
    CommitWheel,
    EngineImage,
    LocalImage,
    LocalPath,
    Location,
    Mark,
    Platform,
    RemoteImage,
)
from bisector.ports import BuildStream, Catalogue, CommitHistory, Listed, Progress

_RELEASE = re.compile(r"(?:pypi:)?(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;]+)")
_COMMIT = re.compile(r"commits:(?P<repository>[^@\s]+)@(?P<commit>[0-9a-f]{40})")
_FILE = re.compile(r"[./~].*|.*\.(?:whl|so)")
_IMAGE = re.compile(r"[^\s/]+/[^\s]+[:@][^\s/]+")
_NO_LISTING = ("commits:", "history:")
"""A part of an endless stream, and the memory itself: what is not in them is not gone."""
_TAG_COMMIT = re.compile(r"(?:^|-)([0-9a-f]{40})(?:$|-)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which part of a stream is meant, where the whole is too long to list.

    Attributes:
        start: The older end as spelled, if one was named.
        end: The newer end as spelled, if one was named.
        since: Nothing before this moment, UTC.
        every: How dense a stream of commits is: each ``commit``, or the last of each ``day``.
    """

    start: str | None = None
    end: str | None = None
    since: datetime | None = None
    every: str = "commit"


EVERYTHING = Window()


class Streams(Protocol):
    """Makes the stream a source names."""

    def __call__(self, source: str, window: Window, platform: Platform, /) -> BuildStream:
        """The stream.

        Raises:
            UnknownSource: The spelling names none.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """Finds builds by spelling; a stream is listed once however many builds are asked of it.

    Attributes:
        streams: Makes a stream from its source.
        image: Reads the spelling of an image in a registry, for a platform.
        elsewhere: Other places that may have a build's files.
        history: The history of the source, where there is one.
        catalogue: Is told what each stream lists, and remembers what it no longer does.
        platform: Whose files are meant.
        default_source: Where a bare id is looked up.
        progress: Is told what is listed.
    """

    streams: Streams
    image: Callable[[str, Platform], RemoteImage]
    elsewhere: Callable[[Build], tuple[Location, ...]]
    history: CommitHistory | None
    catalogue: Catalogue
    platform: Platform
    default_source: str
    progress: Progress
    _listed: dict[tuple[str, Window], Sequence[Build]] = field(default_factory=dict, repr=False)

    def on(self, platform: Platform) -> Resolve:
        """The same, for another platform."""
        return self if platform == self.platform else replace(self, platform=platform, _listed={})

    async def stream(self, source: str, window: Window = EVERYTHING) -> Sequence[Build]:
        """Every build of a source, oldest first; those it no longer lists keep their place, marked as gone.

        Raises:
            UnknownBuild: The stream does not exist, and never did.
        """
        stream = self.streams(source, window, self.platform)
        key = (stream.source, window)
        if key not in self._listed:
            builds = await self._list(stream)
            self._listed[key] = [replace(build, elsewhere=self.elsewhere(build)) for build in builds]
        return self._listed[key]

    async def _list(self, stream: BuildStream) -> Sequence[Build]:
        try:
            listed = await stream.builds()
        except UnknownBuild:
            # A family whose last tag was purged is no less a stream to those who remember it.
            if remembered := await self.catalogue.remembered(stream.source, self.platform):
                return remembered
            raise
        self.progress(Listed(source=stream.source, builds=len(listed)))
        if stream.source.startswith(_NO_LISTING):
            return listed
        await self.catalogue.see(listed)
        remembered = await self.catalogue.remembered(stream.source, self.platform)
        return with_gone(listed, [build for build in remembered if Mark.GONE in build.marks])

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
                f"{text} names a stream, not a build", hint=f"Name a release too, such as {text}==1.2.3."
            )
        if commit := _COMMIT.fullmatch(text):
            wheel = CommitWheel(commit=commit["commit"], platform=self.platform)
            source = f"commits:{commit['repository']}"
            return self._alone(text, wheel, name=commit["commit"], source=source, commit=commit["commit"])
        if text.startswith("oci:"):
            path, _, name = text.removeprefix("oci:").partition(":")
            location = LocalImage(path=path, name=name or None, platform=self.platform)
            return self._alone(text, location, name=name or PurePath(path).name, source=f"oci:{path}")
        if text.startswith("docker:"):
            name = text.removeprefix("docker:")
            return self._alone(text, EngineImage(name=name), name=name, source="docker:")
        if _FILE.fullmatch(text):
            return self._alone(text, LocalPath(path=text), name=PurePath(text).name or text, source="file:")
        if _IMAGE.fullmatch(text):
            return self._image(text)
        return choose(await self.stream(self.default_source), text)

    def _image(self, text: str) -> Build:
        image = self.image(text, self.platform)
        commit = _TAG_COMMIT.search(image.reference)
        source = f"registry:{image.registry}/{image.repository}"
        build = self._alone(text, image, name=image.reference, source=source, commit=commit[1] if commit else None)
        return replace(build, elsewhere=self.elsewhere(build))

    def _alone(self, text: str, location: Location, *, name: str, source: str, commit: str | None = None) -> Build:
        return Build(
            id=name, source=source, spec=text, platform=self.platform, location=location, commit=commit, pin=None
        )


def with_gone(listed: Sequence[Build], gone: Sequence[Build]) -> Sequence[Build]:
    """A stream in its own order, with each build that is gone before the first one that was published later."""
    names = {build.id for build in listed}
    waiting = sorted((build for build in gone if build.id not in names), key=_published, reverse=True)
    line: list[Build] = []
    for build in listed:
        while waiting and build.published_at and _published(waiting[-1]) < build.published_at:
            line.append(waiting.pop())
        line.append(build)
    return [*line, *reversed(waiting)]


def _published(build: Build) -> datetime:
    return build.published_at or datetime.min.replace(tzinfo=UTC)
