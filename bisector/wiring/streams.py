"""From the spelling of a source to its stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from bisector.artifacts.engine_images import EngineImages
from bisector.artifacts.image.layout_images import LayoutImages
from bisector.artifacts.image.registries import Registries
from bisector.artifacts.image.tags import RegistryTags
from bisector.config.sections import Config
from bisector.errors import UnknownSource, UsageError
from bisector.http import Http
from bisector.jobs.choose import parse_day
from bisector.jobs.resolve import Streams, Window
from bisector.model import Platform
from bisector.ports import BuildStream, Catalogue, Clock, CommitHistory
from bisector.streams import commits, dockerhub, engine, layout, registry
from bisector.streams.ledger import LedgerStream
from bisector.wiring.index import IndexStream, PackageIndex

DOCKER_HUB = "docker.io"

_BEFORE_THE_DAY = timedelta(days=4)
"""A day without a commit is common, four in a row are not: the newest commit before a date is within them."""
_USUAL_SPAN = timedelta(days=60)
_SHA = re.compile(r"[0-9a-f]{7,40}")


def streams(
    config: Config,
    http: Http,
    registries: Registries,
    history: CommitHistory,
    clock: Clock,
    catalogue: Catalogue,
    *,
    index: PackageIndex,
    default_source: str,
) -> Streams:
    """Makes streams by the first word of their source."""
    witness = bool(config.wheels.base)

    def from_docker_hub(source: str, _: Window, platform: Platform) -> BuildStream:
        named = dockerhub.parse_source(source)
        return dockerhub.DockerHubStream(
            http,
            repository=named.repository,
            family=named.family,
            platform=platform,
            api_base=config.dockerhub.api,
            registry=DOCKER_HUB,
            witness=witness,
        )

    def from_registry(source: str, _: Window, platform: Platform) -> BuildStream:
        named = registry.parse_source(source)
        tags = RegistryTags(registries, registry=named.registry, repository=named.repository, platform=platform)
        return registry.RegistryStream(tags, named=named, platform=platform, witness=witness)

    def from_commits(source: str, window: Window, platform: Platform) -> BuildStream:
        return commits.CommitStream(
            history,
            repository=commits.parse_source(source),
            platform=platform,
            clock=clock,
            span=_span(window, clock),
            every=commits.Every(window.every),
        )

    def from_index(source: str, _: Window, platform: Platform) -> BuildStream:
        return IndexStream(http, index, package=source.removeprefix("pypi:"), platform=platform)

    def from_layout(source: str, _: Window, platform: Platform) -> BuildStream:
        path = layout.parse_source(source)
        return layout.LayoutStream(LayoutImages(Path(path), platform), path=path, platform=platform)

    def from_engine(source: str, _: Window, platform: Platform) -> BuildStream:
        repository = engine.parse_source(source)
        return engine.EngineStream(EngineImages(repository), repository=repository, platform=platform)

    def from_history(source: str, _: Window, platform: Platform) -> BuildStream:
        remembered = source.removeprefix("history:") or default_source
        return LedgerStream(catalogue, remembered=remembered, platform=platform)

    kinds: dict[str, Callable[[str, Window, Platform], BuildStream]] = {
        "dockerhub": from_docker_hub,
        "registry": from_registry,
        "commits": from_commits,
        "pypi": from_index,
        "oci": from_layout,
        "docker": from_engine,
        "history": from_history,
    }

    def make(source: str, window: Window, platform: Platform, /) -> BuildStream:
        kind, _, rest = source.partition(":")
        if kind not in kinds or not (rest or kind in {"history", "docker"}):
            raise UnknownSource(
                f"{source!r} names no stream of builds",
                hint="Write it as dockerhub:REPOSITORY, registry:HOST/REPOSITORY, commits:OWNER/NAME, pypi:PACKAGE, "
                "oci:DIR, docker: or history:.",
            )
        return kinds[kind](source, window, platform)

    return make


def _span(window: Window, clock: Clock) -> commits.Span | None:
    """The part of a branch that the ends of a search need."""
    start, end = (parse_day(text) if text else None for text in (window.start, window.end))
    if window.start and window.end and start is None and end is None:
        return commits.Ends(base=window.start, head=window.end)
    if any(text and day is None and _SHA.fullmatch(text) for text, day in ((window.start, start), (window.end, end))):
        raise UsageError(
            "One end of a range of commits cannot be named alone, or by a date where the other is a commit",
            hint="Give --good and --bad both as commits, or both as dates.",
        )
    since = window.since or (start - _BEFORE_THE_DAY if start else (end or clock.now()) - _USUAL_SPAN)
    return commits.Dates(since=since, until=end + timedelta(days=1) if end else None)
