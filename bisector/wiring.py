"""The one place that builds real rooms."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bisector.artifacts.opener import Opener
from bisector.config import Config
from bisector.errors import UnknownSource
from bisector.history.store import History
from bisector.http import Http
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import Resolve
from bisector.kernels.parser import LibraryParser
from bisector.kernels.reader import Reader
from bisector.model import Platform
from bisector.ports import BuildStream, Event, Progress
from bisector.streams.pip_index import pip_index
from bisector.streams.pypi import PypiStream


class SystemClock:
    """This machine's time."""

    def now(self) -> datetime:
        """The present, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


def silent(_event: Event) -> None:
    """A ``Progress`` that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """What jobs are given."""

    resolve: Resolve
    probe: Probe


@asynccontextmanager
async def open_rooms(
    *,
    config: Config,
    db: Path,
    platform: Platform,
    default_source: str = "pypi:vllm",
    progress: Progress = silent,
    refresh: bool = False,
    allow_full_download: bool = False,
) -> AsyncIterator[Rooms]:
    """Everything a job may need; closed in the reverse order, however the job ends."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        index = config.pypi.index
        ca_file = config.pypi.ca_file
        if index is None:
            configured = await pip_index()
            index, ca_file = configured.url, ca_file or configured.ca_file
        http = await stack.enter_async_context(Http(ca_file=ca_file))
        parser = await stack.enter_async_context(LibraryParser())
        ledger = await stack.enter_async_context(History.open(db, clock))

        def stream(source: str, platform: Platform) -> BuildStream:
            kind, _, name = source.partition(":")
            if kind == "pypi" and name:
                return PypiStream(http, package=name, index_url=index, platform=platform)
            raise UnknownSource(f"{source!r} names no stream of builds")

        yield Rooms(
            resolve=Resolve(
                streams=stream, ledger=ledger, platform=platform, default_source=default_source, progress=progress
            ),
            probe=Probe(
                artifacts=Opener(http, allow_full_download=allow_full_download),
                reader=Reader(parser),
                ledger=ledger,
                meter=http.meter,
                clock=clock,
                progress=progress,
                refresh=refresh,
            ),
        )
