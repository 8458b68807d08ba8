"""The releases of a package on a simple index, each with its wheel for one platform (PEP 503, 691, 700)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from typing import TYPE_CHECKING

import anyio.to_thread
from packaging.tags import Tag
from packaging.utils import (
    BuildTag,
    InvalidName,
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from bisector.errors import Unavailable, UnknownBuild, Unreadable, UsageError
from bisector.http import Http, Reply, host_of
from bisector.model import Build, Digest, Mark, Platform, RemoteWheel

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage

_PAGE_LIMIT = 64 << 20
_LONGEST_NAME = 255
_MACHINES: Mapping[str, str] = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_USUAL_PYTHON = "cp312"
"""The interpreter of vLLM's images: what is read is what most people run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One file of a release; ``tags`` is empty for a source distribution."""

    version: Version
    build_tag: BuildTag
    tags: frozenset[Tag]
    listed: DistributionPackage


class PypiStream:
    """The releases of a package, in the order of their versions.

    Args:
        http: The door to the network.
        package: The package, in any spelling: ``vLLM``.
        index_url: The simple index, such as ``https://HOST/simple``; a user and password in it are used and not shown.
        platform: ``linux/amd64`` or ``linux/arm64``.

    Raises:
        UnknownBuild: That is no name for a package.
        UsageError: Wheels are not chosen for that platform.
    """

    def __init__(self, http: Http, *, package: str, index_url: str, platform: Platform) -> None:
        if platform not in _MACHINES:
            raise UsageError(
                f"Wheels cannot be chosen for the platform {platform!r}", hint=f"Use one of: {', '.join(_MACHINES)}."
            )
        try:
            self._package = canonicalize_name(package, validate=True)
        except InvalidName as exc:
            raise UnknownBuild(
                f"{package!r} cannot be the name of a package", hint="Write a source as pypi:PACKAGE."
            ) from exc
        self._http = http
        self._page_url = f"{index_url.rstrip('/')}/{self._package}/"
        self._platform = platform

    @property
    def source(self) -> str:
        """The canonical spelling: ``pypi:vllm``."""
        return f"pypi:{self._package}"

    async def builds(self) -> Sequence[Build]:
        """Every release that has files, lowest version first; those without a wheel for the platform have no location.

        The order is that of PEP 440 and not of time: a late fix of an old branch stays with its branch.

        Raises:
            UnknownBuild: The index has no such package.
            Unreadable: The page cannot be understood.
            Unavailable: The index does not answer, or not with the page.
        """
        from pypi_simple import ACCEPT_ANY  # noqa: PLC0415 - a quarter of a second to import

        reply = await self._http.get(self._page_url, headers={"Accept": ACCEPT_ANY}, limit=_PAGE_LIMIT)
        match reply.status:
            case 200:
                return await anyio.to_thread.run_sync(self._releases, reply)
            case 404 | 410:
                raise UnknownBuild(
                    f"There is no package {self._package!r} on the index {host_of(self._page_url)}",
                    hint="Check the spelling, and that pip is configured with the index that has it.",
                )
            case 401 | 403:
                raise Unavailable(
                    f"The index {host_of(self._page_url)} refuses the page of {self._package!r} ({reply.status})",
                    hint="Put the user and password into the address that pip is configured with.",
                )
            case status:
                raise Unavailable(f"The index {host_of(self._page_url)} answered {status} for {self._package!r}")

    def _releases(self, reply: Reply) -> Sequence[Build]:
        releases: dict[Version, list[_File]] = {}
        # A release without any file cannot be installed by anyone: it is no build.
        for file in self._files(_page(reply, self._package)):
            releases.setdefault(file.version, []).append(file)
        return [self._build(version, releases[version]) for version in sorted(releases)]

    def _files(self, page: ProjectPage) -> Iterator[_File]:
        for listed in page.packages:
            try:
                # A crafted name can stand for the product of three long lists of tags.
                if len(listed.filename) > _LONGEST_NAME:
                    continue
                if listed.filename.endswith(".whl"):
                    name, version, build_tag, tags = parse_wheel_filename(listed.filename)
                else:
                    name, version = parse_sdist_filename(listed.filename)
                    build_tag, tags = (), frozenset()
            except (InvalidWheelFilename, InvalidSdistFilename):
                continue
            if name == self._package:
                yield _File(version=version, build_tag=build_tag, tags=tags, listed=listed)

    def _build(self, version: Version, files: Sequence[_File]) -> Build:
        wheel = max((file for file in files if _fits(file, self._platform)), key=_preference, default=None)
        described = [wheel] if wheel else files
        digest = _digest(wheel.listed) if wheel else None
        marks = []
        if all(file.listed.is_yanked for file in described):
            marks.append(Mark.YANKED)
        if version.is_prerelease:
            marks.append(Mark.PRERELEASE)
        requirement = f"{self._package}=={version}"
        return Build(
            id=str(version),
            source=self.source,
            spec=f"pypi:{requirement}",
            platform=self._platform,
            location=RemoteWheel(url=wheel.listed.url, size=wheel.listed.size) if wheel else None,
            digest=digest,
            published_at=min((when for file in described if (when := _uploaded(file.listed))), default=None),
            pin=f"{requirement} --hash={digest}" if digest else None,
            marks=tuple(marks),
        )


def _fits(file: _File, platform: Platform) -> bool:
    machine = f"_{_MACHINES[platform]}"
    return any(
        tag.platform == "any" or (tag.platform.startswith(("linux", "manylinux")) and tag.platform.endswith(machine))
        for tag in file.tags
    )


def _preference(file: _File) -> tuple[bool, BuildTag, bool, int, str]:
    """What makes one wheel of a release better than another, the strongest first.

    Not withdrawn; the latest rebuild; made for the platform; serving the most installations.
    """
    made_for_it = any(tag.platform != "any" for tag in file.tags)
    if any(tag.abi == "abi3" or tag.interpreter == "py3" for tag in file.tags):
        served = 2
    else:
        served = int(any(tag.interpreter == _USUAL_PYTHON for tag in file.tags))
    return not file.listed.is_yanked, file.build_tag, made_for_it, served, file.listed.filename


def _digest(listed: DistributionPackage) -> Digest | None:
    hexadecimal = listed.digests.get("sha256", "").lower()
    return Digest(f"sha256:{hexadecimal}") if _SHA256.match(hexadecimal) else None


def _uploaded(listed: DistributionPackage) -> datetime | None:
    when = listed.upload_time
    if when is None:
        return None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _page(reply: Reply, package: str) -> ProjectPage:
    # Here and not at the top: together they take a third of a second to import.
    from bs4.exceptions import ParserRejectedMarkup  # noqa: PLC0415
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError  # noqa: PLC0415

    described = Message()
    described["Content-Type"] = reply.headers.get("content-type", "text/html")
    kind = described.get_content_type()
    try:
        if kind == "application/vnd.pypi.simple.v1+json":
            return ProjectPage.from_json_data(json.loads(reply.body), reply.url)
        if kind in {"application/vnd.pypi.simple.v1+html", "text/html"}:
            return ProjectPage.from_html(package, reply.body, reply.url, described.get_content_charset())
    except (ValueError, RecursionError, ParserRejectedMarkup, UnsupportedRepoVersionError) as exc:
        raise Unreadable(
            f"The page of {package!r} on {host_of(reply.url)} is no page of a simple index",
            hint="Check the address that pip is configured with.",
        ) from exc
    raise Unreadable(
        f"The index {host_of(reply.url)} describes {package!r} as {kind}, which is neither its JSON nor its HTML",
        hint="Check the address that pip is configured with.",
    )
