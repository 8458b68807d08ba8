"""A question kept in the journal while it is answered, so that it can be gone on with and retold."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from bisector.model import Asked, RunState
from bisector.ports import Event, Journal, Probed, Progress, RunBegan


class Recording:
    """A run being recorded. A ``Progress`` itself: every verdict it is told of becomes a step.

    Attributes:
        run: Its id, once it began.
        outcome: The answer in a word, to be set before it ends.
        result: The answer as JSON has it, likewise.
    """

    def __init__(self) -> None:
        self.run: str | None = None
        self.outcome: str | None = None
        self.result: Mapping[str, object] | None = None
        self._verdicts: MemoryObjectSendStream[Probed] | None = None

    def __call__(self, event: Event, /) -> None:
        """Take note of a verdict; it is written while the job goes on."""
        if isinstance(event, Probed) and self._verdicts:
            self._verdicts.send_nowait(event)

    @asynccontextmanager
    async def of(self, asked: Asked, journal: Journal, progress: Progress) -> AsyncIterator[None]:
        """Record a question from its beginning to its end, however it ends."""
        self.run = await journal.begin(asked)
        progress(RunBegan(run=self.run))
        state = RunState.FAILED
        self._verdicts, waiting = anyio.create_memory_object_stream[Probed](math.inf)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_write_steps, journal, self.run, waiting)
                with self._verdicts:
                    try:
                        yield
                        state = RunState.FINISHED
                    except anyio.get_cancelled_exc_class():
                        state = RunState.INTERRUPTED
                        raise
        finally:
            with anyio.CancelScope(shield=True):
                await journal.end(self.run, state, outcome=self.outcome, result=self.result)


async def _write_steps(journal: Journal, run: str, verdicts: MemoryObjectReceiveStream[Probed]) -> None:
    # What was found out is worth writing down even when nobody waits for the answer any more.
    with anyio.CancelScope(shield=True):
        async with verdicts:
            async for probed in verdicts:
                await journal.step(run, probed.build.id, probed.verdict, from_history=probed.from_history)
