"""The tags of a repository in any registry, dated by the configuration of their images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from bisector.errors import NoBuildForPlatform, UnknownBuild, UnknownSource, Unreadable, UsageError
from bisector.model import Build, Platform, RemoteImage
from bisector.ports import ImageFacts, TagSource
from bisector.streams.tag_pattern import TagParts, TagPattern
from bisector.streams.tags import NAME, believable, commit_wheel, oldest_first

_SOURCE = re.compile(
    r"registry:(?P<registry>[A-Za-z0-9.-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?)"
    rf"/(?P<repository>{NAME}(?:/{NAME})*)(?:\?(?P<options>.*))?"
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MOST_READ = 200
_UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySource:
    """What ``registry:HOST/REPOSITORY?tags=PATTERN`` names.

    Attributes:
        registry: ``ghcr.io``, ``127.0.0.1:5000``.
        repository: ``nvidia/jax``.
        tags: As :class:`TagPattern` understands it.
    """

    registry: str
    repository: str
    tags: str = "*"

    def __str__(self) -> str:
        options = "" if self.tags == "*" else f"?tags={quote(self.tags, safe='{}*')}"
        return f"registry:{self.registry}/{self.repository}{options}"


def parse_source(spelling: str) -> RegistrySource:
    """The repository and the pattern of a source.

    Raises:
        UnknownSource: That is not how one is spelled.
    """
    found = _SOURCE.fullmatch(spelling)
    options = dict(parse_qsl(found["options"] or "", keep_blank_values=True)) if found else {}
    tags = TagPattern(options.pop("tags", "*")).text
    if not found or options:
        raise UnknownSource(
            f"{spelling!r} names no repository of a registry",
            hint="Write it as registry:HOST/REPOSITORY or registry:HOST/REPOSITORY?tags=nightly-{commit}.",
        )
    return RegistrySource(registry=found["registry"], repository=found["repository"], tags=tags)


class RegistryStream:
    """The tags of a repository that fit a pattern.

    Args:
        tags: The repository.
        named: How it is spelled.
        platform: Whose image is meant.
        witness: Whether an index has a wheel of each commit, built along with the image.
        most_read: How many images are asked for their date; each costs a manifest and a configuration.
    """

    def __init__(
        self,
        tags: TagSource,
        *,
        named: RegistrySource,
        platform: Platform,
        witness: bool = False,
        most_read: int = _MOST_READ,
    ) -> None:
        self._tags = tags
        self._named = named
        self._pattern = TagPattern(named.tags)
        self._platform = platform
        self._witness = witness
        self._most_read = most_read

    @property
    def source(self) -> str:
        """The canonical spelling: ``registry:ghcr.io/nvidia/jax?tags=jax-{date}``."""
        return str(self._named)

    async def builds(self) -> Sequence[Build]:
        """Every tag that fits, by the date its image was created, then by tag.

        An image that cannot be read keeps its place in the registry: it is a build with a location and without a
        digest, dated by its tag if the tag tells. Builds without any date come before all others. Where tags tell
        their dates, only the newest images are read, and the older ones stay as the tags describe them.

        Raises:
            UnknownBuild: There is no such repository.
            UsageError: More tags fit than are read, and the tags do not tell which are the newest.
            Unavailable: The registry does not answer.
        """
        fitting = {tag: parts for tag in await self._tags.tags() if (parts := self._pattern.read(tag))}
        unread = self._too_old(fitting)
        builds = []
        for tag, parts in fitting.items():
            try:
                facts = None if tag in unread else await self._tags.image(tag)
            except UnknownBuild:
                continue  # deleted since the tags were listed
            except NoBuildForPlatform:
                builds.append(self._build(tag, parts, None, here=False))
            except Unreadable:
                builds.append(self._build(tag, parts, None))
            else:
                builds.append(self._build(tag, parts, facts))
        return oldest_first(builds)

    def _too_old(self, fitting: Mapping[str, TagParts]) -> frozenset[str]:
        excess = len(fitting) - self._most_read
        if excess <= 0:
            return frozenset()
        if not self._pattern.dated:
            raise UsageError(
                f"{self._named.registry}/{self._named.repository} has {len(fitting):,} such tags, and bisector reads "
                f"the dates of {self._most_read} at most",
                hint="Name fewer with ?tags=, such as ?tags=nightly-{date}-{commit}.",
            )
        return frozenset(sorted(fitting, key=lambda tag: (fitting[tag].date or _UNDATED, tag))[:excess])

    def _build(self, tag: str, parts: TagParts, facts: ImageFacts | None, *, here: bool = True) -> Build:
        name = f"{self._named.registry}/{self._named.repository}"
        digest = facts.digest if facts else None
        pinned = (facts.index_digest or facts.digest) if facts else None
        commit = _commit(parts, facts)
        location = RemoteImage(
            registry=self._named.registry,
            repository=self._named.repository,
            reference=digest or tag,
            platform=self._platform,
        )
        return Build(
            id=tag,
            source=self.source,
            spec=f"{name}:{tag}",
            platform=self._platform,
            location=location if here else None,
            witness=commit_wheel(commit, tag, self._platform) if self._witness else None,
            digest=digest,
            published_at=(believable(facts.created) if facts else None) or parts.date,
            commit=commit,
            pin=f"{name}@{pinned}" if pinned else None,
        )


def _commit(parts: TagParts, facts: ImageFacts | None) -> str | None:
    """The tag's commit, written out by the label where both mean the same; the label's where the tag has none."""
    labelled = facts.commit if facts and facts.commit and _COMMIT.fullmatch(facts.commit) else None
    if parts.commit is None or (labelled and labelled.startswith(parts.commit)):
        return labelled
    return parts.commit
