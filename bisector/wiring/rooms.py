"""Everything a job may need, built from the configuration."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bisector.artifacts.commit_wheel import CommitWheels
from bisector.artifacts.image.credentials import DockerCredentials
from bisector.artifacts.image.record import LayerRecord
from bisector.artifacts.image.reference import parse_reference
from bisector.artifacts.image.registries import Registries
from bisector.artifacts.opener import Opener
from bisector.boot.owner import lives
from bisector.config.sections import Config
from bisector.errors import ConfigError
from bisector.history.boots import BootLog
from bisector.history.database import Database
from bisector.history.journal import RunJournal
from bisector.history.layers import Layers
from bisector.history.store import History
from bisector.http import Http
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve
from bisector.kernels.parser import LibraryParser
from bisector.kernels.reader import Reader
from bisector.model import Build, Location, Platform, RemoteImage
from bisector.ports import Backlog, Boots, Clock, CommitHistory, Event, Journal, Progress
from bisector.streams.clone import Clone
from bisector.streams.github import GitHub
from bisector.wiring.clock import SystemClock
from bisector.wiring.index import PackageIndex
from bisector.wiring.streams import DOCKER_HUB, streams

_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


def silent(_: Event, /) -> None:
    """A ``Progress`` that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What stands behind the doors, for the doctor to try."""

    http: Http
    parser: LibraryParser
    database: Database
    index: PackageIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """What jobs are given, and what is let go of at their end."""

    resolve: Resolve
    probe: Probe
    journal: Journal
    backlog: Backlog
    tools: Tools
    boots: Boots
    closing: AsyncExitStack


@asynccontextmanager
async def open_rooms(
    *,
    config: Config,
    db: Path,
    platform: Platform,
    default_source: str,
    progress: Progress = silent,
    refresh: bool = False,
    verify: bool = False,
    clone: Path | None = None,
    allow_full_download: bool = False,
    clock: Clock | None = None,
) -> AsyncIterator[Rooms]:
    """Everything a job may need; closed in the reverse order, however the job ends."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(Http(ca_file=config.pypi.ca_file))
        index = PackageIndex(config, http)
        parser = await stack.enter_async_context(LibraryParser())
        ledger = await stack.enter_async_context(History.open(db, clock))
        layers = Layers(ledger.database, clock, LayerRecord)
        history = _commit_history(config, http, clone)
        registries = Registries(
            http, credentials=DockerCredentials(), bases=_bases(config), memory=layers, verify=verify
        )
        opener = Opener(
            http,
            wheels=CommitWheels(http, base=config.wheels.base),
            registries=registries,
            memory=layers,
            verify=verify,
            allow_full_download=allow_full_download,
        )
        yield Rooms(
            closing=stack,
            journal=RunJournal(ledger.database, clock),
            backlog=ledger,
            tools=Tools(http=http, parser=parser, database=ledger.database, index=index),
            boots=BootLog(ledger.database, clock, lives),
            resolve=Resolve(
                streams=streams(
                    config, http, registries, history, clock, ledger, index=index, default_source=default_source
                ),
                image=_image,
                elsewhere=_elsewhere(config),
                history=history,
                catalogue=ledger,
                platform=platform,
                default_source=default_source,
                progress=progress,
            ),
            probe=Probe(
                artifacts=opener,
                reader=Reader(parser),
                ledger=ledger,
                meter=http.meter,
                clock=clock,
                progress=progress,
                rate_limits=registries.rate_limits,
                commits=f"commits:{config.github.repository}",
                refresh=refresh,
            ),
        )


def _commit_history(config: Config, http: Http, clone: Path | None) -> CommitHistory:
    if clone is not None:
        return Clone(clone)
    token = os.environ.get("GITHUB_TOKEN") or None
    if config.github.token_file:
        try:
            token = Path(config.github.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The token in {config.github.token_file} cannot be read: {error}") from error
    return GitHub(http, repository=config.github.repository, api_base=config.github.api, token=token)


def _bases(config: Config) -> dict[str, str]:
    hub = {DOCKER_HUB: config.dockerhub.registry} if config.dockerhub.registry else {}
    return config.registries.mirrors | hub


def _image(text: str, platform: Platform) -> RemoteImage:
    reference = parse_reference(text)
    return RemoteImage(
        registry=reference.host,
        repository=reference.repository,
        reference=reference.digest or reference.tag or "latest",
        platform=platform,
    )


def _elsewhere(config: Config) -> Callable[[Build], tuple[Location, ...]]:
    """Other places that may have an image of the same commit, for builds that are images of a commit."""

    def places(build: Build) -> tuple[Location, ...]:
        if build.commit is None or not isinstance(build.location, RemoteImage):
            return ()
        machine = _MACHINES.get(build.platform, build.platform)
        return tuple(
            _image(spelling.format(commit=build.commit, machine=machine), build.platform)
            for spelling in config.registries.elsewhere
        )

    return places
