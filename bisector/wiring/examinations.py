"""What the doctor tries, each with the real room behind it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import anyio
import anyio.to_thread

from bisector.artifacts.engine_images import engine_version
from bisector.errors import ConfigError, Unavailable, Unreadable
from bisector.history.examination import examine
from bisector.jobs.doctor import Examination
from bisector.model import Build, CommitWheel
from bisector.wiring.rooms import Rooms

_LITTLE_SPACE = 1 << 30
_TOLERATED = timedelta(minutes=2)
_PAGE = 64 << 20
_QUERY = ("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")


@dataclass(frozen=True, slots=True)
class Practice:
    """Knows how to try each thing.

    Attributes:
        rooms: The rooms as every job gets them.
        db: The history file.
        source: The stream to try.
    """

    rooms: Rooms
    db: Path
    source: str

    def examinations(self) -> Sequence[Examination]:
        """Everything bisector may need, the vital things first."""
        return (
            Examination(subject="history", attempt=self.history, needed_for="everything", vital=True),
            Examination(subject="disk", attempt=self.disk, needed_for="the history", vital=True),
            Examination(subject="library reader", attempt=self.reader, needed_for="reading kernels", vital=True),
            Examination(subject="clock", attempt=self.clock, needed_for="dates and tokens"),
            Examination(subject="builds", attempt=self.builds, needed_for=f"searching {self.source}"),
            Examination(subject="registry", attempt=self.registry, needed_for="reading images"),
            Examination(subject="commit wheels", attempt=self.wheels, needed_for="cheap looks and --commits"),
            Examination(subject="source history", attempt=self.commits, needed_for="--commits, and nightlies in order"),
            Examination(subject="package index", attempt=self.index, needed_for="pypi: streams"),
            Examination(subject="Docker engine", attempt=self.engine, needed_for="docker: builds, and boots"),
            Examination(subject="GPUs", attempt=gpus, needed_for="boots on this machine"),
        )

    async def history(self) -> str:
        """The file is sound."""
        return await examine(self.rooms.tools.database)

    async def disk(self) -> str:
        """There is room beside it."""
        free = (await anyio.to_thread.run_sync(shutil.disk_usage, self.db.parent)).free
        if free < _LITTLE_SPACE:
            raise Unavailable(
                f"only {free >> 20} MiB free beside {self.db}", hint="Make room, or name another place with --db."
            )
        return f"{free / 1e9:.0f} GB free beside the history"

    async def reader(self) -> str:
        """The process that reads libraries starts and answers."""
        try:
            await self.rooms.tools.parser.templates(b"", name="nothing")
        except Unreadable:
            return "starts, answers, and is kept apart"
        raise Unavailable("it takes nothing for a library")

    async def clock(self) -> str:
        """This machine and the package index agree about the time."""
        tools = self.rooms.tools
        index = await tools.index.url()
        reply = await tools.http.get(f"{index.rstrip('/')}/pip/", limit=_PAGE)
        theirs = reply.headers.get("date")
        if theirs is None:
            return "the package index does not tell its time"
        off = abs(self.rooms.probe.clock.now() - parsedate_to_datetime(theirs).astimezone(UTC))
        if off > _TOLERATED:
            raise Unavailable(f"off by {off}", hint="Set this machine's clock, best by NTP.")
        return f"within {max(1, round(off.total_seconds()))} s of the package index"

    async def builds(self) -> str:
        """The stream can be listed."""
        builds = await self.rooms.resolve.stream(self.source)
        newest = max((build.published_at for build in builds if build.published_at), default=None)
        return f"{len(builds)} in {self.source}" + (f", the newest of {newest:%Y-%m-%d}" if newest else "")

    async def registry(self) -> str:
        """The newest build's files can be opened."""
        newest = await self._newest()
        if newest.location is None:
            raise ConfigError(f"{newest.spec} has no files for {newest.platform}")
        async with self.rooms.probe.artifacts.open(newest.location, digest=newest.digest) as artifact:
            await artifact.digest()
        limits = self.rooms.probe.rate_limits().values()
        left = "".join(f", {limit.remaining} of {limit.limit} pulls left" for limit in limits)
        return f"opens {newest.spec[:60]}{left}"

    async def wheels(self) -> str:
        """There is a wheel of the newest build's commit."""
        newest = await self._newest()
        if newest.commit is None:
            raise ConfigError(f"the builds of {self.source} do not name their commits")
        wheel = CommitWheel(commit=newest.commit, platform=newest.platform)
        async with self.rooms.probe.artifacts.open(wheel, digest=None):
            return f"has that of {newest.commit[:9]}"

    async def commits(self) -> str:
        """The history of the source answers."""
        history = self.rooms.resolve.history
        if history is None:
            raise ConfigError("none is configured")
        since = self.rooms.probe.clock.now() - timedelta(days=2)
        return f"{len(await history.since(since))} commits in the last two days"

    async def index(self) -> str:
        """The package index lists releases."""
        return f"{len(await self.rooms.resolve.stream('pypi:vllm'))} releases of vllm"

    async def engine(self) -> str:
        """The local Docker engine answers."""
        return f"version {await engine_version()}"

    async def _newest(self) -> Build:
        return (await self.rooms.resolve.stream(self.source))[-1]


async def gpus() -> str:
    """The GPUs of this machine, as the driver names them."""
    try:
        done = await anyio.run_process(_QUERY, check=False)
    except OSError as error:
        raise Unavailable(
            "no NVIDIA driver here (nvidia-smi is not installed)", hint="Name a machine that has GPUs with --host."
        ) from error
    if done.returncode:
        raise Unavailable("nvidia-smi fails", hint="Run it yourself to see why.")
    names = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    return "; ".join(names) or "none"
