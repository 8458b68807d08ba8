"""Opens whatever a location names."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from pathlib import Path

import anyio.to_thread

from bisector.artifacts.commit_wheel import CommitWheels
from bisector.artifacts.engine import engine_image
from bisector.artifacts.files import Directory, LibraryFile, reading
from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.layout import open_layout
from bisector.artifacts.image.memory import LayerMemory
from bisector.artifacts.image.registries import Registries
from bisector.artifacts.spans import FileSpans, RemoteSpans
from bisector.artifacts.wheel import Wheel
from bisector.errors import Unreadable
from bisector.http import Http, redacted
from bisector.model import (
    CommitWheel,
    Digest,
    EngineImage,
    LocalImage,
    LocalPath,
    Location,
    RemoteImage,
    RemoteWheel,
)
from bisector.ports import Artifact

_ELF = b"\x7fELF"


class Opener:
    """The artifacts bisector can read.

    Args:
        http: The door to the network.
        wheels: Finds the wheel of a commit.
        registries: Opens images in registries.
        memory: What is known of layers.
        verify: Read every layer of a local image that is needed to its end and check its digests.
        allow_full_download: Whether to fetch a whole wheel from a server that gives no parts.
    """

    def __init__(
        self,
        http: Http,
        *,
        wheels: CommitWheels,
        registries: Registries,
        memory: LayerMemory,
        verify: bool = False,
        allow_full_download: bool = False,
    ) -> None:
        self._http = http
        self._wheels = wheels
        self._registries = registries
        self._memory = memory
        self._verify = verify
        self._allow_full_download = allow_full_download

    @asynccontextmanager
    async def open(self, location: Location, *, digest: Digest | None) -> AsyncIterator[Artifact]:
        """The artifact at a location; nothing is fetched before it is asked for.

        Args:
            location: Where it is.
            digest: What the stream says of a remote wheel; anything else is measured or resolved.

        Raises:
            UnknownBuild: There is no such path, tag or image.
            NoBuildForPlatform: No wheel was built of the commit.
            Unreadable: The path is none of the kinds of files bisector reads, or may not be read.
        """
        match location:
            case RemoteWheel(url=url, size=size):
                async with RemoteSpans(
                    http=self._http, url=url, size=size, digest=digest, allow_full_download=self._allow_full_download
                ) as spans:
                    yield Wheel(spans, name=redacted(url))
            case LocalPath(path=text):
                path = Path(text)
                match await anyio.to_thread.run_sync(_kind, path):
                    case _Kind.WHEEL:
                        with reading(path):
                            file = await anyio.to_thread.run_sync(path.open, "rb")
                        with file:
                            yield Wheel(FileSpans(file, text), name=text)
                    case _Kind.LIBRARY:
                        yield LibraryFile(path)
                    case _Kind.DIRECTORY:
                        yield Directory(path)
            case CommitWheel():
                wheel = await self._wheels.locate(location)
                async with self.open(wheel, digest=None) as artifact:
                    yield artifact
            case RemoteImage():
                yield await self._registries.open(location)
            case LocalImage(path=text, name=name, platform=platform):
                layout, found = await open_layout(Path(text), name)
                yield ImageArtifact(layout, found, platform, name=text, memory=self._memory, verify=self._verify)
            case EngineImage(name=name):
                async with engine_image(name) as artifact:
                    yield artifact


class _Kind(Enum):
    WHEEL = auto()
    LIBRARY = auto()
    DIRECTORY = auto()


def _kind(path: Path) -> _Kind:
    with reading(path):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _Kind.DIRECTORY
        if stat.S_ISREG(mode):
            if path.suffix == ".whl":
                return _Kind.WHEEL
            if path.suffix == ".so":
                return _Kind.LIBRARY
            with path.open("rb") as file:
                if file.read(len(_ELF)) == _ELF:
                    return _Kind.LIBRARY
    raise Unreadable(
        f"{path} is neither a wheel, a shared library nor a directory",
        hint="Name a .whl, a .so, or a directory with an unpacked wheel or an installation.",
    )
