"""Opens libraries in a process of its own, so that a hostile file costs one observation and not the service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar, cast

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from bisector.errors import Unavailable, Unreadable
from bisector.kernels import worker
from bisector.kernels.templates import Templates
from bisector.kernels.worker import ANSWER, READY, REQUEST, Ask
from bisector.model import CudaTarget

_T = TypeVar("_T")

_CHUNK = 1 << 20
_LONGEST_ANSWER = 4 << 20
_SECONDS_TO_START = 60.0
_SECONDS_TO_EXIT = 5.0
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one library may cost.

    The largest in vLLM has 308 MB and takes about a second and 1 GB.

    Attributes:
        seconds: Wall time, from the moment it is handed over.
        cpu_seconds: Processor time.
        memory: Bytes of address space of the process that reads it.
    """

    seconds: float = 30.0
    cpu_seconds: int = 20
    memory: int = 2 << 30


class LibraryParser:
    """Reads shared libraries, one at a time, in a process that is started when it is needed and again when it died.

    Use it as an asynchronous context manager: no process outlives it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._turn = anyio.Lock()
        self._worker: _Worker | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def warm(self) -> None:
        """Let the process start, half a second's work, while whoever will ask it does something else."""
        if self._worker is None and not self._turn.locked():
            async with self._turn:
                self._worker = await _spawn(self._limits)

    async def templates(self, library: bytes, *, name: str) -> Templates:
        """DeepGEMM's JIT templates in a shared library; messages call it ``name``.

        Raises:
            Unreadable: It is not a whole ELF file, or reading it costs more than the limits allow.
            Unavailable: The process does not start, or something else on this machine ended it.
        """
        return await self._ask(Ask.TEMPLATES, library, name, Templates)

    async def targets(self, library: bytes, *, name: str) -> tuple[CudaTarget, ...]:
        """The device code in a shared library, none if it holds only host code; raises what `templates` raises."""
        return await self._ask(Ask.TARGETS, library, name, tuple[CudaTarget, ...])

    async def _ask(self, ask: Ask, library: bytes, name: str, kind: type[_T]) -> _T:
        async with self._turn:
            running = await self._ready()
            answered = False
            try:
                with anyio.fail_after(self._limits.seconds):
                    readable, body = await running.exchange(ask, library)
                answered = True
            except TimeoutError:
                raise Unreadable(f"{name} cannot be read: it took more than {self._limits.seconds:g} s.") from None
            except (anyio.BrokenResourceError, anyio.IncompleteRead) as error:
                raise self._explained(await self._end(patience=_SECONDS_TO_EXIT), name) from error
            finally:
                # After a time-out, a crash or a cancellation nobody knows what the process would answer next.
                if not answered:
                    await self._end()
        if not readable:
            raise Unreadable(f"{name} cannot be read. {msgspec.json.decode(body, type=str)}")
        return msgspec.json.decode(body, type=kind)

    async def _ready(self) -> _Worker:
        if self._worker is not None and self._worker.process.returncode is not None:
            await self._end()
        if self._worker is None:
            self._worker = await _spawn(self._limits)
        try:
            await self._worker.greeting()
        except BaseException:
            await self._end()
            raise
        return self._worker

    async def _end(self, *, patience: float = 0) -> int | None:
        ended, self._worker = self._worker, None
        return await ended.end(patience=patience) if ended else None

    def _explained(self, code: int | None, name: str) -> Unreadable | Unavailable:
        if code == -signal.SIGKILL:
            return Unavailable(
                f"The process that reads libraries was killed while it read {name}.",
                hint="The machine may be short of memory; try again when it has more.",
            )
        if code == worker.OUT_OF_MEMORY:
            why = f"it needs more than {self._limits.memory >> 20} MiB of memory"
        elif code == -signal.SIGXCPU:
            why = f"it needs more than {self._limits.cpu_seconds} s of processor time"
        else:
            why = f"it crashes the ELF parser (exit status {code})"
        return Unreadable(f"{name} cannot be read: {why}.")


@dataclass(slots=True, kw_only=True)
class _Worker:
    process: Process
    requests: ByteSendStream
    answers: BufferedByteReceiveStream
    limits: Limits
    greeted: bool = False

    async def greeting(self) -> None:
        """Wait until it can be asked, once."""
        if self.greeted:
            return
        try:
            with anyio.fail_after(_SECONDS_TO_START):
                self.greeted = await self.answers.receive_exactly(len(READY)) == READY
        except (TimeoutError, anyio.IncompleteRead) as error:
            raise self._does_not_start() from error
        if not self.greeted:
            raise self._does_not_start()

    def _does_not_start(self) -> Unavailable:
        command = f"{sys.executable} -m {worker.__name__} {self.limits.memory} {self.limits.cpu_seconds}"
        return Unavailable("The process that reads libraries does not start", hint=f"`{command}` shows why.")

    async def exchange(self, ask: Ask, library: bytes) -> tuple[bool, bytes]:
        await self.requests.send(REQUEST.pack(ask, len(library)))
        for start in range(0, len(library), _CHUNK):
            await self.requests.send(library[start : start + _CHUNK])
        readable, length = ANSWER.unpack(await self.answers.receive_exactly(ANSWER.size))
        if length > _LONGEST_ANSWER:
            raise anyio.IncompleteRead
        return readable, await self.answers.receive_exactly(length)

    async def end(self, *, patience: float = 0) -> int | None:
        """Be sure that the process is gone, after that many seconds to go by itself; its exit code."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(patience):
                await self.process.wait()
            if self.process.returncode is None:
                with suppress(ProcessLookupError):
                    self.process.kill()
            await self.process.aclose()
        return self.process.returncode


async def _spawn(limits: Limits) -> _Worker:
    process = await anyio.open_process(
        # -P: a file named lief.py in the working directory is not to be imported.
        [sys.executable, "-P", "-m", worker.__name__, str(limits.memory), str(limits.cpu_seconds)],
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        # Ctrl-C is for the parent, which ends this process itself.
        start_new_session=True,
    )
    return _Worker(
        process=process,
        requests=cast("ByteSendStream", process.stdin),
        answers=BufferedByteReceiveStream(cast("ByteReceiveStream", process.stdout)),
        limits=limits,
    )
