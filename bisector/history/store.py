"""The ledger in SQLite: what was seen is kept here before anything is concluded from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import msgspec

from bisector.history.builds import REMEMBERED, arrange, meet, rebuilt
from bisector.history.codec import decode, encode_time
from bisector.history.database import Database, Row, Values, open_database
from bisector.history.observations import DEEP_ENOUGH, DEEPEST_OF_BUILDS, store
from bisector.history.summaries import SUMMARIES, summaries
from bisector.history.unread import UNREAD, give_up
from bisector.model import Build, Depth, Digest, KernelSummary, Observation, Platform, Verdict
from bisector.ports import Clock


class History:
    """A ``Ledger``, ``Catalogue`` and ``Backlog`` in one file that several processes and people read and write at once.

    Every method raises ``HistoryUnavailable`` when the file cannot be read or written; a call that raised, or was
    cancelled before it wrote, has changed nothing. An observation whose document this bisector cannot understand is
    as if it were not there, and is replaced when the same is recorded again.

    Attributes:
        database: The open file, for the other rooms' memories that are kept in it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, clock: Clock) -> AsyncIterator[Self]:
        """The history in this file, made with its directories if it is not there, upgraded if it is old.

        A file that may only be read is opened for reading; see ``writable``.

        Raises:
            HistoryUnavailable: It cannot be opened, is not a history, is of a newer version, or must be upgraded and
                can only be read. Nothing was changed.
        """
        async with open_database(path) as database:
            yield cls(database, clock)

    @property
    def writable(self) -> bool:
        """Whether ``record`` and ``see`` can work at all."""
        return self.database.writable

    async def observation(self, digest: Digest, depth: Depth, *, version: int) -> Observation | None:
        """The observation of this content at this depth or deeper, by this version of the probe or a later one.

        Each depth counts its own versions. A deeper observation answers when its version is not below the one asked
        for, so a reader that raises the version of the cheap look raises that of the deep one with it. Of several the
        newest version answers.
        """
        rows = await self.database.fetch(DEEP_ENOUGH, {"digest": digest, "depth": depth, "version": version})
        return next((found for (document,) in rows if (found := decode(str(document)))), None)

    async def record(self, observation: Observation, build: Build | None) -> None:
        """Store it, and the build it was made of; a second time changes no observation.

        A build whose stream does not tell its digest is known from now on by the observation's.
        """
        async with self.database.writing() as connection:
            now = self._clock.now()
            await store(connection, observation, now=now)
            if build is not None:
                await meet(connection, [build], now=now, listed=False, seen_in=observation.digest)

    async def see(self, builds: Sequence[Build]) -> None:
        """Note that their streams listed these builds now.

        Give the whole of a listing for a platform: a build that an earlier one had and this one lacks counts as gone.
        """
        async with self.database.writing() as connection:
            await meet(connection, builds, now=self._clock.now(), listed=True)

    async def known(self, builds: Sequence[Build]) -> Mapping[str, Observation]:
        """The deepest observation of each of these builds that has one, by build id; of several the newest version.

        A build without a digest is looked up by the one last recorded for its name and platform.
        """
        return _first_of_each(await self.database.fetch(DEEPEST_OF_BUILDS, {"wanted": _wanted(builds)}))

    async def summaries(self, builds: Sequence[Build]) -> Mapping[str, KernelSummary]:
        """What ``known`` gives, in short, from columns: also where this bisector cannot understand the document."""
        return summaries(await self.database.fetch(SUMMARIES, {"wanted": _wanted(builds)}))

    async def arrange(self, builds: Sequence[Build]) -> None:
        """Note the order of these builds of one stream and platform, where something knows it better than dates do.

        A tag pushed again is younger than the commit it was built of.
        """
        async with self.database.writing() as connection:
            await arrange(connection, builds)

    async def remembered(self, source: str, platform: Platform) -> Sequence[Build]:
        """Every build ever met in a stream, in the order they were given or else of publication.

        One that the last listing did not have is marked as gone, and its image located by digest, which outlives the
        tag. Of a name that was given to several contents there is the latest.
        """
        rows = await self.database.fetch(REMEMBERED, {"source": source, "platform": platform})
        return [rebuilt(row) for row in rows]

    async def give_up(self, build: Build, verdict: Verdict) -> None:
        """Note why a build cannot be looked at, and until when to believe it; a later observation outweighs it."""
        async with self.database.writing() as connection:
            now = self._clock.now()
            await meet(connection, [build], now=now, listed=False)
            await give_up(connection, build, verdict, now=now)

    async def unread(self, builds: Sequence[Build], depth: Depth, *, version: int) -> Sequence[Build]:
        """Those without an observation that answers at this depth, and not given up, in the order they were given."""
        values: Values = {
            "wanted": _wanted(builds),
            "depth": depth,
            "version": version,
            "now": encode_time(self._clock.now()),
        }
        return [builds[int(str(place))] for (place,) in await self.database.fetch(UNREAD, values)]


def _wanted(builds: Sequence[Build]) -> str:
    return msgspec.json.encode(
        [
            {"id": build.id, "source": build.source, "platform": build.platform, "digest": build.digest}
            for build in builds
        ]
    ).decode()


def _first_of_each(rows: Sequence[Row]) -> Mapping[str, Observation]:
    found: dict[str, Observation] = {}
    for build, document in rows:
        name = str(build)
        if name not in found and (observation := decode(str(document))):
            found[name] = observation
    return found
