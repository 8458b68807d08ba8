"""Boots and their benchmarks in the history: each from its start, so that one whose owner was killed is known too."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bisector.history.builds import meet
from bisector.history.codec import decode_time, encode_time
from bisector.history.database import Database, Values
from bisector.model import Build
from bisector.ports import Clock
from bisector.trials import Boot, BootOutcome

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_RANDOM_LETTERS = 6

_BEGIN = """
INSERT INTO boots (id, build_id, run_id, host, profile, arch, started_at, settings)
SELECT :id, builds.id, (SELECT id FROM runs WHERE id = :run), :host, :profile, :arch, :now, :settings
FROM builds
JOIN streams ON streams.id = builds.stream_id
WHERE streams.source = :source AND builds.name = :name AND builds.platform = :platform
    AND (:digest IS NULL OR builds.digest IS NULL OR builds.digest = :digest)
ORDER BY builds.last_seen_at DESC, builds.id DESC
LIMIT 1
"""

_END = """
UPDATE boots SET
    image = :image, ended_at = :ended_at, outcome = :outcome, context = :context, phases = :phases, facts = :facts,
    diagnosis = :diagnosis
WHERE id = :id
"""

_MEASURED = """
INSERT INTO benchmarks (boot_id, ordinal, warm_up, at, asked, completed, tpot_ms, ttft_ms, throughput, raw)
VALUES (:boot, :ordinal, :warm_up, :at, :asked, :completed, :tpot_ms, :ttft_ms, :throughput, :raw)
ON CONFLICT DO NOTHING
"""

_OPEN = """
SELECT boots.id, runs.host, runs.pid, runs.started_at
FROM boots
LEFT JOIN runs ON runs.id = boots.run_id
WHERE boots.ended_at IS NULL
"""

_ABANDON = f"""
UPDATE boots SET ended_at = :now, outcome = '{BootOutcome.INTERRUPTED}' WHERE id = :id AND ended_at IS NULL
"""  # noqa: S608 - a word of our own


class BootLog:
    """The ``Boots`` in the history file. Every method raises ``HistoryUnavailable`` when that cannot be used.

    Args:
        database: The file.
        clock: Tells the time.
        lives: Whether the process of this number on this machine, which ran at this moment, still runs.
    """

    def __init__(self, database: Database, clock: Clock, lives: Callable[[int, datetime], bool]) -> None:
        self._database = database
        self._clock = clock
        self._lives = lives

    async def begin(
        self, build: Build, *, host: str, profile: str, arch: str, run: str | None, settings: Mapping[str, object]
    ) -> str:
        """The id of a new boot."""
        async with self._database.writing() as connection:
            now = self._clock.now()
            boot = _new_id(now)
            await meet(connection, [build], now=now, listed=False)
            values: Values = {
                "id": boot,
                "run": run,
                "host": host,
                "profile": profile,
                "arch": arch,
                "now": encode_time(now),
                "settings": _json(settings),
                "source": build.source,
                "name": build.id,
                "platform": build.platform,
                "digest": build.digest,
            }
            await connection.execute(_BEGIN, values)
        return boot

    async def end(self, boot: Boot) -> None:
        """Note how it went; a second time changes nothing but what became known."""
        values: Values = {
            "id": boot.id,
            "image": boot.image,
            "ended_at": encode_time(boot.started_at + timedelta(seconds=boot.seconds)),
            "outcome": boot.outcome,
            "context": boot.context if boot.answered else None,
            "phases": _json(boot.phases),
            "facts": _json(boot.facts),
            "diagnosis": _json(boot.causes) if boot.causes else None,
        }
        passes: list[Values] = [
            {
                "boot": boot.id,
                "ordinal": ordinal,
                "warm_up": made.warm_up,
                "at": encode_time(made.at),
                "asked": made.asked,
                "completed": made.completed,
                "tpot_ms": made.tpot_ms,
                "ttft_ms": made.ttft_ms,
                "throughput": made.throughput,
                "raw": _json(made.raw),
            }
            for ordinal, made in enumerate(boot.passes)
        ]
        async with self._database.writing() as connection:
            await connection.execute(_END, values)
            await connection.executemany(_MEASURED, passes)

    async def abandon(self, boots: Collection[str]) -> Sequence[str]:
        """Note as interrupted these boots, and those of this machine whose process is gone; the ids of all of them."""
        here = socket.gethostname()
        gone = []
        for boot, host, pid, started_at in await self._database.fetch(_OPEN, {}):
            dead = host == here and not self._lives(int(str(pid)), decode_time(str(started_at)))
            if dead or boot in boots:
                gone.append(str(boot))
        if gone:
            now = encode_time(self._clock.now())
            async with self._database.writing() as connection:
                await connection.executemany(_ABANDON, [{"id": boot, "now": now} for boot in gone])
        return gone


def _new_id(now: datetime) -> str:
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_RANDOM_LETTERS))
    return f"{now:%Y%m%d-%H%M%S}-{letters}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
