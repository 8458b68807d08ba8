"""A family of per-commit tags in a repository of Docker Hub, such as vLLM's nightlies.

By https://docs.docker.com/reference/api/hub/latest/#tag/repositories, and by what its answers look like beyond that:
dates may be null, a digest may be missing, and the order of tags means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from bisector.errors import Unavailable, UnknownBuild, UnknownSource, Unreadable
from bisector.http import Http, host_of
from bisector.model import Build, Digest, Platform, RemoteImage
from bisector.streams.paging import continues
from bisector.streams.tags import NAME, TAG, believable, commit_wheel, oldest_first, read_digest

_SOURCE = re.compile(r"dockerhub:(?P<repository>[^?]*)(?:\?(?P<options>.*))?")
_REPOSITORY = re.compile(rf"{NAME}/{NAME}")
_PAGE_LIMIT = 16 << 20
_MOST_PAGES = 100
_DEFAULT_FAMILY = "nightly"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """What ``dockerhub:NAMESPACE/NAME?family=FAMILY`` names.

    Attributes:
        repository: ``vllm/vllm-openai``.
        family: The tags ``FAMILY-<40 hex>``.

    Raises:
        UnknownSource: These cannot be a repository and the beginning of a tag.
    """

    repository: str
    family: str = _DEFAULT_FAMILY

    def __post_init__(self) -> None:
        if not _REPOSITORY.fullmatch(self.repository) or not TAG.fullmatch(self.family):
            raise _unknown(f"dockerhub:{self.repository}?family={self.family}")

    def __str__(self) -> str:
        options = "" if self.family == _DEFAULT_FAMILY else f"?{urlencode({'family': self.family})}"
        return f"dockerhub:{self.repository}{options}"


def parse_source(spelling: str) -> HubSource:
    """The repository and family of a source.

    Raises:
        UnknownSource: That is not how one is spelled.
    """
    found = _SOURCE.fullmatch(spelling)
    options = dict(parse_qsl(found["options"] or "", keep_blank_values=True)) if found else {}
    family = options.pop("family", _DEFAULT_FAMILY)
    if not found or options:
        raise _unknown(spelling)
    return HubSource(repository=found["repository"], family=family)


def _unknown(spelling: str) -> UnknownSource:
    return UnknownSource(
        f"{spelling!r} names no tags of a repository of Docker Hub",
        hint="Write it as dockerhub:vllm/vllm-openai or dockerhub:vllm/vllm-openai?family=cu129-nightly.",
    )


class _Image(msgspec.Struct):
    architecture: str | None = None
    os: str | None = None
    digest: str | None = None


class _Tag(msgspec.Struct):
    name: str
    digest: str | None = None
    images: list[_Image] | None = None
    tag_last_pushed: str | None = None
    last_updated: str | None = None


class _Page(msgspec.Struct):
    results: list[_Tag]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A family as it stands.

    Attributes:
        builds: As :meth:`DockerHubStream.builds` gives them.
        floating: Tags of the family without a commit, such as ``nightly-x86_64`` → the id of the build each shows now.
    """

    builds: Sequence[Build]
    floating: Mapping[str, str]


class DockerHubStream:
    """The per-commit tags of one family, each the build of its commit for one platform.

    Args:
        http: The door to the network.
        repository: ``vllm/vllm-openai``.
        family: What comes before the commit in a tag: ``nightly`` in ``nightly-<40 hex>``.
        platform: Whose image is meant.
        api_base: Where the tags API answers, such as ``https://HOST``.
        registry: Where the images are pulled from.
        witness: Whether an index has a wheel of each commit, built along with the image.

    Raises:
        UnknownSource: These cannot be a repository and the beginning of a tag.
    """

    def __init__(
        self,
        http: Http,
        *,
        repository: str = "vllm/vllm-openai",
        family: str = _DEFAULT_FAMILY,
        platform: Platform,
        api_base: str,
        registry: str = "docker.io",
        witness: bool,
    ) -> None:
        self._named = HubSource(repository=repository, family=family)
        self._http = http
        self._platform = platform
        self._registry = registry
        self._witness = witness
        self._per_commit = re.compile(rf"{re.escape(family)}-([0-9a-f]{{40}})")
        namespace, _, name = repository.partition("/")
        self._url = f"{api_base.rstrip('/')}/v2/namespaces/{quote(namespace)}/repositories/{quote(name)}/tags"

    @property
    def source(self) -> str:
        """The canonical spelling: ``dockerhub:vllm/vllm-openai``."""
        return str(self._named)

    async def builds(self) -> Sequence[Build]:
        """Every tag of the family that carries a commit, the one pushed last at the end.

        The push of the tag is the only date there is; a later push of the same tag moves it. Whoever knows the
        commits can order better. A tag without a date comes before all others. A family that nobody builds any more
        is told by its last date.

        Raises:
            UnknownBuild: There is no such repository, or no such family in it.
            Unreadable: The answer cannot be understood.
            Unavailable: Docker Hub does not answer, or not with tags.
        """
        return (await self.listing()).builds

    async def listing(self) -> Listing:
        """The builds, and which of them the floating tags show; raises as :meth:`builds` does."""
        tags = await self._tags()
        builds = oldest_first(
            self._build(tag, found[1]) for tag in tags.values() if (found := self._per_commit.fullmatch(tag.name))
        )
        if not builds:
            raise UnknownBuild(
                f"{self._named.repository} on {host_of(self._url)} has no tags {self._named.family}-<commit>",
                hint="Choose a family with ?family=, such as nightly or cu129-nightly.",
            )
        by_digest: dict[Digest, str] = {}
        for build in builds:
            by_digest |= dict.fromkeys(self._digests(tags[build.id]), build.id)
        floating = {
            tag.name: by_digest[digest]
            for tag in tags.values()
            if self._is_floating(tag.name)
            for digest in self._digests(tag)
            if digest in by_digest
        }
        return Listing(builds=builds, floating=MappingProxyType(dict(sorted(floating.items()))))

    async def _tags(self) -> Mapping[str, _Tag]:
        # Undocumented and only a hint: what is not of the family is left out below whether it is heeded or not.
        query = urlencode({"page_size": 100, "name": self._named.family})
        url = f"{self._url}?{query}"
        tags: dict[str, _Tag] = {}
        for _ in range(_MOST_PAGES):
            page = await self._page(url)
            # A tag pushed while pages are turned can come twice.
            tags |= {tag.name: tag for tag in page.results if TAG.fullmatch(tag.name)}
            if not page.next:
                return tags
            url = continues(url, page.next)
        raise Unreadable(f"{host_of(self._url)} lists the tags of {self._named.repository} without end")

    async def _page(self, url: str) -> _Page:
        reply = await self._http.get(url, headers={"Accept": "application/json"}, limit=_PAGE_LIMIT)
        match reply.status:
            case 200:
                pass
            case 404 | 410:
                raise UnknownBuild(
                    f"There is no repository {self._named.repository!r} on {host_of(self._url)}",
                    hint="Check the spelling; repositories that are not public cannot be listed.",
                )
            case status:
                raise Unavailable(f"{host_of(self._url)} answered {status} for the tags of {self._named.repository}")
        try:
            return msgspec.json.decode(reply.body, type=_Page)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise Unreadable(
                f"{host_of(self._url)} lists the tags of {self._named.repository} in a form that is not Docker Hub's",
                hint="Check the address of the tags API in the configuration.",
            ) from exc

    def _build(self, tag: _Tag, commit: str) -> Build:
        image = self._image(tag)
        digest = read_digest(image.digest) if image else None
        pinned = read_digest(tag.digest) or digest
        location = RemoteImage(
            registry=self._registry,
            repository=self._named.repository,
            reference=digest or tag.name,
            platform=self._platform,
        )
        return Build(
            id=tag.name,
            source=self.source,
            spec=f"{self._named.repository}:{tag.name}",
            platform=self._platform,
            # A tag that names its images and not this platform's has none; one that names none may have it.
            location=location if image or not tag.images else None,
            witness=commit_wheel(commit, tag.name, self._platform) if self._witness else None,
            digest=digest,
            published_at=_moment(tag.tag_last_pushed) or _moment(tag.last_updated),
            commit=commit,
            pin=f"{self._named.repository}@{pinned}" if pinned else None,
        )

    def _image(self, tag: _Tag) -> _Image | None:
        return next((it for it in tag.images or () if f"{it.os}/{it.architecture}" == self._platform), None)

    def _digests(self, tag: _Tag) -> Sequence[Digest]:
        image = self._image(tag)
        known = (read_digest(tag.digest), read_digest(image.digest) if image else None)
        return [digest for digest in known if digest]

    def _is_floating(self, name: str) -> bool:
        family = self._named.family
        return name == family or (name.startswith(f"{family}-") and not self._per_commit.fullmatch(name))


def _moment(text: str | None) -> datetime | None:
    try:
        return believable(msgspec.convert(text, datetime)) if text else None
    except msgspec.ValidationError:
        return None
