"""Files on this machine: one shared library, or a directory that holds an installation or an unpacked image."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import anyio.to_thread

from bisector.artifacts.bounds import LARGEST_FILE, MOST_ENTRIES, keep_bounds
from bisector.errors import UnknownBuild, Unreadable
from bisector.model import Digest, EvidenceKind
from bisector.ports import FoundFiles, Selection

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PACKAGES = ("vllm", "deep_gemm")


class LibraryFile:
    """A single shared library; its path is its bare name, for where it would be installed is not known."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def evidence(self) -> EvidenceKind:
        """A file."""
        return EvidenceKind.FILE

    async def digest(self) -> Digest:
        """The SHA-256 of the file."""
        with reading(self._path):
            return Digest(f"sha256:{await anyio.to_thread.run_sync(_sha256, self._path)}")

    async def select(self, selection: Selection) -> FoundFiles:
        """As :class:`bisector.ports.Artifact` says; at most one file is listed."""
        with reading(self._path):
            return await anyio.to_thread.run_sync(self._select, selection)

    def _select(self, selection: Selection) -> FoundFiles:
        name = self._path.name
        listed = {name: self._path.stat().st_size} if selection.lists(name) else {}
        wanted = selection.reads(tuple(listed))
        keep_bounds(wanted, listed, str(self._path))
        digest = Digest(f"sha256:{_sha256(self._path)}")
        return FoundFiles(listed=listed, contents={path: _content(self._path) for path in wanted}, digest=digest)


class Directory:
    """An unpacked wheel, a virtual environment, an unpacked image, site-packages itself or a package in it.

    Symbolic links to directories are not followed, and those to files only when the file lies in the directory too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: Mapping[str, Path] | None = None

    @property
    def evidence(self) -> EvidenceKind:
        """Files."""
        return EvidenceKind.FILE

    async def digest(self) -> Digest:
        """SHA-256 over the line ``bisector directory 1`` and a line ``PATH SIZE SHA256`` for each file, by path.

        The files are those an observation can depend on: everything in a ``deep_gemm`` directory, vLLM's shared
        libraries, ``vllm/_version.py``, ``vllm/platforms/cuda.py`` and the METADATA of every distribution. Any other
        shared library counts by path and size, with ``-`` in place of its digest.
        """
        with reading(self._path):
            return await anyio.to_thread.run_sync(self._digest)

    async def select(self, selection: Selection) -> FoundFiles:
        """As :class:`bisector.ports.Artifact` says."""
        with reading(self._path):
            return await anyio.to_thread.run_sync(self._select, selection)

    def _select(self, selection: Selection) -> FoundFiles:
        files = self._found()
        listed = {path: file.stat().st_size for path, file in files.items() if selection.lists(path)}
        wanted = selection.reads(tuple(listed))
        keep_bounds(wanted, listed, str(self._path))
        return FoundFiles(
            listed=listed, contents={path: _content(files[path]) for path in wanted}, digest=self._digest()
        )

    def _digest(self) -> Digest:
        seen = hashlib.sha256(b"bisector directory 1\n")
        for path, file in self._found().items():
            if _matters(path):
                seen.update(f"{path} {file.stat().st_size} {_sha256(file)}\n".encode())
            elif path.endswith(".so"):
                seen.update(f"{path} {file.stat().st_size} -\n".encode())
        return Digest(f"sha256:{seen.hexdigest()}")

    def _found(self) -> Mapping[str, Path]:
        """Path relative to site-packages → the file, sorted."""
        if self._files is None:
            within = self._path.resolve()
            root, prefix = _root(within)
            found = {
                f"{prefix}{file.relative_to(root).as_posix()}": file
                for file in _files_below(root)
                if _is_inside(file, within)
            }
            self._files = {path: found[path] for path in sorted(found)}
        return self._files


def _root(given: Path) -> tuple[Path, str]:
    """The directory to read and what its paths begin with in site-packages.

    Raises:
        Unreadable: Nothing in or below the directory looks like an installation.
    """
    parts = given.parts
    installed = max((place for place, part in enumerate(parts) if part in _INSTALLED), default=None)
    if installed is not None and installed + 1 < len(parts):
        return given, "/".join(parts[installed + 1 :]) + "/"
    if installed is not None or any((given / package).is_dir() for package in _PACKAGES):
        return given, ""
    if given.name == "vllm" or (given / "third_party" / "deep_gemm").is_dir():
        return given, "vllm/"
    if given.name == "deep_gemm":
        return given, "vllm/third_party/deep_gemm/" if parts[-3:-1] == ("vllm", "third_party") else "deep_gemm/"
    below = sorted(_installed_below(given))
    for package in _PACKAGES:
        for directory in below:
            if (directory / package).is_dir():
                return directory, ""
    if below:
        return below[0], ""
    raise Unreadable(
        f"{given} holds neither vllm, deep_gemm nor site-packages",
        hint="Name an unpacked wheel, a virtual environment, an unpacked image or a site-packages directory.",
    )


def _installed_below(root: Path) -> Iterator[Path]:
    """The site-packages in a directory; places that may not be entered are passed over."""
    for directory, directories, _ in _walk(root, onerror=None):
        if directory.name in _INSTALLED:
            directories.clear()
            yield directory


def _files_below(root: Path) -> Iterator[Path]:
    """Everything in a directory that is none; what may not be read fails, lest it be taken for absent."""

    def fail(error: OSError) -> None:
        raise error

    for directory, _, names in _walk(root, onerror=fail):
        yield from (directory / name for name in names)


def _walk(root: Path, onerror: Callable[[OSError], None] | None) -> Iterator[tuple[Path, list[str], list[str]]]:
    entries = 0
    for directory, directories, names in os.walk(root, onerror=onerror):
        entries += len(directories) + len(names)
        if entries > MOST_ENTRIES:
            raise Unreadable(f"{root} holds more than {MOST_ENTRIES:,} files, which is more than bisector reads")
        yield Path(directory), directories, names


def _is_inside(file: Path, within: Path) -> bool:
    """Whether it is a regular file, or a link to one, in the directory that was named; with a name that can be told."""
    try:
        file.name.encode()
    except UnicodeEncodeError:
        return False
    kind = file.lstat().st_mode
    if stat.S_ISLNK(kind):
        target = Path(os.path.realpath(file))
        return target.is_relative_to(within) and target.is_file()
    return stat.S_ISREG(kind)


def _matters(path: str) -> bool:
    place = PurePosixPath(path)
    return (
        "deep_gemm" in place.parts[:-1]
        or path in {"vllm/_version.py", "vllm/platforms/cuda.py"}
        or (place.suffix == ".so" and (place.parts[0] == "vllm" or place.name.startswith("deep_gemm")))
        or (place.name == "METADATA" and place.parent.suffix == ".dist-info")
    )


def _content(file: Path) -> bytes:
    with file.open("rb") as opened:
        content = opened.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise Unreadable(f"{file} grew while it was read")
    return content


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Tell what the system says of a path as an error of bisector's own."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise UnknownBuild(f"There is no {exc.filename or path}") from exc
    except OSError as exc:
        raise Unreadable(
            f"{exc.filename or path} cannot be read: {exc.strerror}", hint="Check its permissions, or copy it."
        ) from exc
