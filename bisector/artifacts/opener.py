"""Opens whatever a location names."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from pathlib import Path

import anyio.to_thread

from bisector.artifacts.files import Directory, LibraryFile, reading
from bisector.artifacts.spans import FileSpans, RemoteSpans
from bisector.artifacts.wheel import Wheel
from bisector.errors import Unreadable
from bisector.http import Http, redacted
from bisector.model import CommitWheel, Digest, LocalPath, Location, RemoteImage, RemoteWheel
from bisector.ports import Artifact

_ELF = b"\x7fELF"


class Opener:
    """The artifacts bisector can read.

    Args:
        http: The door to the network.
        allow_full_download: Whether to fetch a whole wheel from a server that gives no parts.
    """

    def __init__(self, http: Http, *, allow_full_download: bool = False) -> None:
        self._http = http
        self._allow_full_download = allow_full_download

    @asynccontextmanager
    async def open(self, location: Location, *, digest: Digest | None) -> AsyncIterator[Artifact]:
        """The artifact at a location; nothing is fetched before it is asked for.

        Args:
            location: Where it is.
            digest: What the stream says of a remote artifact; a local one is measured.

        Raises:
            UnknownBuild: There is no such path.
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
            case CommitWheel() | RemoteImage():
                raise Unreadable(f"{location} is no file, and not read as one")


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
