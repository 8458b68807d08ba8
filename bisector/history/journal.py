"""Runs and their steps: what was asked, and how far it came."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from datetime import datetime

import aiosqlite
import msgspec

from bisector.errors import UnknownRun
from bisector.history.codec import decode_time, encode_time
from bisector.history.database import Database, Row, Values
from bisector.model import Answer, Asked, Run, RunState, RunStep, Verdict
from bisector.ports import Clock

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_RANDOM_LETTERS = 4

_BEGIN = """
INSERT INTO runs (id, command, arguments, question, source, arch, resumes, host, pid, started_at, state)
VALUES (
    :id, :command, :arguments, :question, :source, :arch, (SELECT id FROM runs WHERE id = :resumes),
    :host, :pid, :now, 'running'
)
"""

_INTERRUPTED = "UPDATE runs SET state = 'interrupted', ended_at = :now WHERE id = :resumes AND state = 'running'"

_STEP = """
INSERT INTO run_steps (run_id, ordinal, build, verdict, reason, expires_at, from_history, at)
VALUES (
    :run, (SELECT coalesce(max(ordinal), 0) + 1 FROM run_steps WHERE run_id = :run),
    :build, :verdict, :reason, :expires_at, :from_history, :now
)
"""

_END = "UPDATE runs SET state = :state, ended_at = :now, outcome = :outcome, result = :result WHERE id = :run"

_RUN = """
SELECT
    id, command, arguments, question, source, arch, resumes, state, started_at, ended_at, host, pid, outcome, result
FROM runs
WHERE id = :run
"""

_STEPS = """
SELECT build, verdict, reason, expires_at, from_history, at FROM run_steps WHERE run_id = :run ORDER BY ordinal
"""


class RunJournal:
    """A ``Journal`` in the history file. Every method raises ``HistoryUnavailable`` when that cannot be used.

    Runs are only added to. Whoever goes on with one begins another that says so: two that go on with the same run, or
    one that was believed dead and is not, do not get into each other's way.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def begin(self, asked: Asked) -> str:
        """The id of a new run. One that it resumes and that has no end was interrupted."""
        async with self._database.writing() as connection:
            now = self._clock.now()
            run = _new_id(now)
            values: Values = {
                "id": run,
                "command": asked.command,
                "arguments": msgspec.json.encode(dict(asked.arguments)).decode(),
                "question": asked.question,
                "source": asked.source,
                "arch": asked.arch,
                "resumes": asked.resumes,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "now": encode_time(now),
            }
            await connection.execute(_INTERRUPTED, values)
            await connection.execute(_BEGIN, values)
        return run

    async def step(self, run: str, build: str, verdict: Verdict, *, from_history: bool) -> None:
        """Note a verdict of a run.

        Raises:
            UnknownRun: There is none of this id.
        """
        async with self._database.writing() as connection:
            await _must_exist(connection, run)
            values: Values = {
                "run": run,
                "build": build,
                "verdict": verdict.answer,
                "reason": verdict.reason,
                "expires_at": encode_time(verdict.expires_at) if verdict.expires_at else None,
                "from_history": from_history,
                "now": encode_time(self._clock.now()),
            }
            await connection.execute(_STEP, values)

    async def end(self, run: str, state: RunState, *, outcome: str | None, result: Mapping[str, object] | None) -> None:
        """Note how a run ended, and its answer.

        Raises:
            UnknownRun: There is none of this id.
        """
        async with self._database.writing() as connection:
            await _must_exist(connection, run)
            values: Values = {
                "run": run,
                "state": state,
                "outcome": outcome,
                "result": None if result is None else msgspec.json.encode(dict(result)).decode(),
                "now": encode_time(self._clock.now()),
            }
            await connection.execute(_END, values)

    async def run(self, run: str) -> Run:
        """A run as far as it came.

        Raises:
            UnknownRun: There is none of this id.
        """
        rows = await self._database.fetch(_RUN, {"run": run})
        if not rows:
            raise _unknown(run)
        return _read_run(rows[0], await self._database.fetch(_STEPS, {"run": run}))


def _new_id(now: datetime) -> str:
    """``20261129-053100-k7qd``: its time, and what tells runs of the same second on several machines apart."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_RANDOM_LETTERS))
    return f"{now:%Y%m%d-%H%M%S}-{letters}"


async def _must_exist(connection: aiosqlite.Connection, run: str) -> None:
    if not list(await connection.execute_fetchall("SELECT 1 FROM runs WHERE id = ?", (run,))):
        raise _unknown(run)


def _unknown(run: str) -> UnknownRun:
    return UnknownRun(f"The history holds no run {run!r}")


def _read_run(row: Row, steps: list[Row]) -> Run:
    texts = [None if value is None else str(value) for value in row]
    run, command, arguments, question, source, arch, resumes = texts[:7]
    state, started_at, ended_at, host, pid, outcome, result = texts[7:]
    return Run(
        id=str(run),
        asked=Asked(
            command=str(command),
            arguments=msgspec.json.decode(str(arguments)),
            question=question,
            source=source,
            arch=arch,
            resumes=resumes,
        ),
        state=RunState(str(state)),
        started_at=decode_time(str(started_at)),
        ended_at=decode_time(ended_at) if ended_at else None,
        host=str(host),
        pid=int(str(pid)),
        outcome=outcome,
        result=msgspec.json.decode(result) if result else None,
        steps=tuple(map(_read_step, steps)),
    )


def _read_step(row: Row) -> RunStep:
    build, answer, reason, expires_at, from_history, at = row
    return RunStep(
        build=str(build),
        verdict=Verdict(
            answer=Answer(str(answer)),
            reason=str(reason),
            expires_at=decode_time(str(expires_at)) if expires_at else None,
        ),
        from_history=bool(from_history),
        at=decode_time(str(at)),
    )
