"""The rooms of the night's work: the others, the outbox, and whoever is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bisector import arch
from bisector.boot.profiles import find_profile
from bisector.config.sections import Config
from bisector.history.copying import copied
from bisector.history.lock import locked
from bisector.history.posts import Posts
from bisector.history.queries import Queries
from bisector.http import Http
from bisector.jobs.proved import OpenBench, Prove
from bisector.jobs.standing import Bench
from bisector.model import Platform
from bisector.ports import Clock, Gauge, Outbox, Progress, Receiver, Records
from bisector.reference import gpus
from bisector.wiring.proof import open_proof
from bisector.wiring.receivers import receivers
from bisector.wiring.rooms import Rooms, open_rooms, silent

_SOURCE, _PLATFORM = "dockerhub:vllm/vllm-openai", Platform("linux/amd64")


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRooms:
    """What the night's work is given."""

    rooms: Rooms
    records: Records
    outbox: Outbox
    receivers: tuple[Receiver, ...]
    gauges: tuple[Gauge, ...]
    open_bench: OpenBench


@asynccontextmanager
async def open_night(
    config: Config,
    db: Path,
    clock: Clock,
    *,
    progress: Progress = silent,
    allow_full_download: bool = False,
    run: Callable[[], str | None] = lambda: None,
) -> AsyncIterator[NightRooms]:
    """Everything the night's work needs.

    Raises:
        ConfigError: A receiver is configured wrongly.
    """
    async with open_rooms(
        config=config,
        db=db,
        platform=_PLATFORM,
        default_source=_SOURCE,
        progress=progress,
        allow_full_download=allow_full_download,
        clock=clock,
    ) as rooms:
        told, gauges = receivers(config, rooms.tools.http)

        async def open_bench(bench: Bench) -> Prove:
            proof = await open_proof(rooms, find_profile(bench.profile), host=bench.host, run=run())
            return proof.of

        yield NightRooms(
            rooms=rooms,
            records=Queries(rooms.tools.database, clock),
            outbox=Posts(rooms.tools.database, clock),
            receivers=told,
            gauges=gauges,
            open_bench=open_bench,
        )


def bench_of(profile: str, host: str) -> Bench:
    """Where builds are proved.

    Raises:
        ConfigError: There is no such profile, or it cannot be understood.
    """
    return Bench(host=host, profile=profile, arch=arch.parse(find_profile(profile).arch, gpus()).name)


@asynccontextmanager
async def open_receivers(config: Config) -> AsyncIterator[tuple[Receiver | Gauge, ...]]:
    """Everybody who is told, and nothing else."""
    async with Http(ca_file=config.pypi.ca_file) as http:
        told, gauges = receivers(config, http)
        yield (*told, *gauges)


@contextmanager
def the_history(db: Path, clock: Clock, *, rehearsal: bool) -> Iterator[Path]:
    """The history file for the night's work: locked against a second one, or for a rehearsal a copy of it."""
    if rehearsal:
        with copied(db) as copy:
            yield copy
    else:
        with locked(db, clock, job="nightly"):
            yield db
