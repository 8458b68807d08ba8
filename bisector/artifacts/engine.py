"""An image of the local Docker engine, read without exporting it: only the directories that matter are asked for.

What the engine gives is the image as a container would see it, so there are no layers to put on each other. Its archive
of a directory lists in order, as a layer does, and is left as soon as nothing that follows can matter.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread

from bisector.artifacts.engine_api import Container, Engine, InspectedImage
from bisector.artifacts.image.answer import answer
from bisector.artifacts.image.claims import read_claims
from bisector.artifacts.image.harvest import Harvest
from bisector.artifacts.image.overlay import Environment, environment
from bisector.artifacts.image.record import LayerRecord
from bisector.artifacts.image.scope import Scope, packages_place
from bisector.artifacts.image.tar import Entry, Kind, TarWalk, Visitor
from bisector.errors import Unreadable
from bisector.model import Digest, EvidenceKind
from bisector.ports import FoundFiles, Selection

_PREFIXES: Final = ("opt/venv", "usr/local", "usr")
_PYTHONS: Final = range(8, 20)
_PACKAGES: Final = ("vllm", "deep_gemm")
_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_VERSION: Final = re.compile(rb"^__version__ = (?:version = )?'([A-Za-z0-9.+!_-]{1,100})'", re.MULTILINE)
_PYTHON: Final = re.compile(r"python3\.(\d+)")
_LONGEST_MODULE: Final = 1 << 16
_MOST_BYTES: Final = 1 << 36
"""Bytes of the archives that one selection may take."""


@asynccontextmanager
async def engine_image(name: str) -> AsyncIterator[EngineArtifact]:
    """An image of the engine that ``DOCKER_HOST`` or the current context names.

    Args:
        name: Its name, digest or id.

    Raises:
        UnknownBuild: The engine has no such image.
        Unavailable: The engine does not answer, or not us.
    """
    engine = await anyio.to_thread.run_sync(Engine)
    try:
        image = await anyio.to_thread.run_sync(engine.image, name)
        container = engine.container(image)
        try:
            yield EngineArtifact(container, image, name=name)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(container.remove)
    finally:
        engine.close()


class EngineArtifact:
    """An image that the engine has; see :func:`engine_image`.

    Args:
        container: Its files.
        image: What the engine tells of it.
        name: What people call it, for messages.
    """

    def __init__(self, container: Container, image: InspectedImage, *, name: str) -> None:
        self._container = container
        self._image = image
        self._name = name
        self._places: tuple[str, str] | None = None
        self.bytes_read = 0
        """Bytes of the engine's archives."""

    @property
    def evidence(self) -> EvidenceKind:
        """An image: what is run."""
        return EvidenceKind.IMAGE

    async def digest(self) -> Digest:
        """As :attr:`~bisector.artifacts.engine_api.InspectedImage.digest` says."""
        return self._image.digest

    async def select(self, selection: Selection) -> FoundFiles:
        """As :class:`bisector.ports.Artifact` says.

        The environment is the first on the image's ``PATH`` that has vLLM or DeepGEMM.

        Raises:
            Unreadable: What the engine sends is no archive, or has links without end.
            Unavailable: The engine does not answer.
        """

        async def search(scope: Scope) -> tuple[Environment, Sequence[LayerRecord]]:
            return await anyio.to_thread.run_sync(self._search, selection, scope)

        return await answer(selection, search, digest=self._image.digest, name=self._name)

    def _search(self, selection: Selection, scope: Scope) -> tuple[Environment, Sequence[LayerRecord]]:
        self._container.create()
        self.bytes_read = 0
        named, real = self._environment()
        if not named:
            return Environment(root="", origins={}, wanted=()), ()
        harvest = Harvest(selection, scope, may_stop=not scope.key)
        for top in self._tops(selection, named):
            if not harvest.stopped:
                self._walk(f"{real}/{top}", harvest)
        records = [self._record(harvest, named, real)]
        seen = [f"{real}/{top}" for top in _PACKAGES]
        for path in (*self._metadata(selection, real), *sorted(alias.path for alias in scope.aliases)):
            if path != real and not any(path == above or path.startswith(f"{above}/") for above in seen):
                seen.append(path)
                harvest = Harvest(selection, scope, may_stop=False)
                self._walk(path, harvest)
                records.append(self._record(harvest, named, real))
        return environment(records, scope), records

    def _environment(self) -> tuple[str, str]:
        """The directory of packages by its usual name and without links; two empty names when there is none."""
        if self._places is None:
            self._places = next(self._environments(), ("", ""))
        return self._places

    def _environments(self) -> Iterator[tuple[str, str]]:
        for candidate in _candidates(read_claims(self._image.configuration).environment.get("PATH", "")):
            anyio.from_thread.check_cancelled()
            real = self._container.real(candidate)
            if real is not None and any(self._container.real(f"{real}/{package}") is not None for package in _PACKAGES):
                # Where links alone lead to it, it keeps the name by which Python finds it.
                place = packages_place(real)
                yield (real if place is not None and not place.name else candidate), real

    def _tops(self, selection: Selection, root: str) -> Iterator[str]:
        """What of an environment may matter, in order."""
        if selection.enters("deep_gemm"):
            yield "deep_gemm"
        python, machine = _PYTHON.search(root), _MACHINES.get(self._image.architecture)
        if python and machine:
            beside = f"deep_gemm_cpp.cpython-3{python[1]}-{machine}-linux-gnu.so"
            if selection.lists(beside):
                yield beside
        if selection.enters("vllm"):
            yield "vllm"

    def _metadata(self, selection: Selection, real: str) -> Iterator[str]:
        """The METADATA of vLLM. Directories cannot be listed, but this one is called by the version."""
        if not selection.lists("vllm-0.dist-info/METADATA"):
            return
        module = _SmallFile()
        self._walk(f"{real}/vllm/_version.py", module)
        version = _VERSION.search(module.read)
        if version is not None:
            yield f"{real}/vllm-{version[1].decode()}.dist-info/METADATA"

    def _walk(self, path: str, visitor: Visitor) -> None:
        walk = TarWalk(_Below(posixpath.dirname(path), visitor))
        with closing(self._container.archive(path)) as pieces:
            for piece in pieces:
                anyio.from_thread.check_cancelled()
                self.bytes_read += len(piece)
                if self.bytes_read > _MOST_BYTES:
                    raise Unreadable(f"{self._name} has more than {_MOST_BYTES >> 30} GiB of the files to be looked at")
                walk.feed(piece)
                if walk.ended:
                    break
        walk.finish()

    def _record(self, harvest: Harvest, named: str, real: str) -> LayerRecord:
        record = harvest.record(read=self.bytes_read, verified=False)
        return record if named == real else replace(record, symlinks={**record.symlinks, named: f"/{real}"})


class _Below:
    """Shows a visitor the entries of a directory's archive by their paths in the image."""

    def __init__(self, parent: str, visitor: Visitor) -> None:
        self._parent = parent
        self._visitor = visitor

    @property
    def stopped(self) -> bool:
        return self._visitor.stopped

    def entry(self, entry: Entry) -> bool:
        path = f"{self._parent}/{entry.path}".lstrip("/")
        link = f"{self._parent}/{entry.link}".lstrip("/") if entry.kind is Kind.HARDLINK else entry.link
        return self._visitor.entry(replace(entry, path=path, link=link))

    def content(self, data: bytes) -> None:
        self._visitor.content(data)


class _SmallFile:
    """A visitor of an archive of one file."""

    stopped = False

    def __init__(self) -> None:
        self.read = b""

    def entry(self, entry: Entry) -> bool:
        return entry.kind is Kind.FILE and entry.size <= _LONGEST_MODULE

    def content(self, data: bytes) -> None:
        self.read += data


def _candidates(path: str) -> Iterator[str]:
    """Where Python looks for packages: below every directory of programs on the PATH, then in the usual places."""
    programs = (posixpath.normpath(each) for each in path.split(":") if each.startswith("/"))
    prefixes = [posixpath.dirname(each).strip("/") for each in programs if posixpath.basename(each) == "bin"]
    for prefix in dict.fromkeys((*prefixes, *_PREFIXES)):
        for library in ("lib", "lib64"):
            for python in (*(f"python3.{minor}" for minor in _PYTHONS), "python3"):
                for packages in ("dist-packages", "site-packages"):
                    yield f"{prefix}/{library}/{python}/{packages}".strip("/")
