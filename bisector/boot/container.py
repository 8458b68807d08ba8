"""A server's container: its log, its state, and requests made from inside it.

Requests go over HTTP from within the container, so that an engine elsewhere, whose loopback is not ours, is no
different from the one here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import docker.errors
from anyio import CapacityLimiter, to_thread
from docker.models.containers import Container
from docker.utils.socket import frames_iter

from bisector.boot.host import translated
from bisector.boot.ports import PORT, Ran, Reply, ServerState

R = TypeVar("R")

_frames: Any = frames_iter  # untyped
_LONGEST_LOG: Final = 64 * 1024 * 1024
_LONGEST_OUTPUT: Final = 8 * 1024 * 1024
_PIECE: Final = 100_000  # bytes of one argument; Linux takes 128 KiB each and two megabytes together
_ASK: Final = """
import sys, urllib.error, urllib.request
url, seconds, *body = sys.argv[1:]
data = "".join(body).encode() or None
request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request, timeout=float(seconds)) as answer:
        status, content = answer.status, answer.read(8 << 20)
except urllib.error.HTTPError as error:
    status, content = error.code, error.read(8 << 20)
except (OSError, ValueError) as error:
    status, content = 0, str(error).encode()
sys.stdout.buffer.write(str(status).encode() + b"\\n" + content)
"""


class DockerServer:
    """A ``Server`` in a container."""

    def __init__(self, container: Container, *, engine: str, limiter: CapacityLimiter) -> None:
        self._container = container
        self._engine = engine
        self._limiter = limiter

    async def log(self) -> AsyncIterator[bytes]:
        """Its output while it grows, cut anywhere; ends with the container."""
        stream: Any = await self._call(partial(self._container.logs, stream=True, follow=True))
        try:
            while piece := await self._call(partial(next, stream, b"")):
                yield piece
        finally:
            await shielded(partial(_close, stream), self._limiter)

    async def whole_log(self) -> bytes:
        """Its output so far, whole; of one that is endless, the first 64 MiB."""
        return await self._call(self._read_log)

    def _read_log(self) -> bytes:
        pieces, size = [], 0
        stream: Any = self._container.logs(stream=True, follow=False)
        try:
            for piece in stream:
                pieces.append(piece)
                size += len(piece)
                if size >= _LONGEST_LOG:
                    break
        finally:
            _close(stream)
        return b"".join(pieces)

    async def state(self) -> ServerState:
        """How it stands now."""
        return await self._call(self._look)

    def _look(self) -> ServerState:
        try:
            self._container.reload()
        except docker.errors.NotFound:
            return ServerState(running=False)  # somebody else has removed it
        state = self._container.attrs["State"]
        running = state["Status"] in {"created", "running", "restarting", "paused"}
        return ServerState(
            running=running,
            exit_code=None if running else int(state["ExitCode"]),
            oom_killed=bool(state["OOMKilled"]),
        )

    async def ask(self, path: str, body: bytes | None, *, timeout: float) -> Reply:  # noqa: ASYNC109 - passed on
        """Ask the server itself: GET, or POST where there is a body of JSON."""
        text = (body or b"").decode()
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        url = f"http://127.0.0.1:{PORT}{path}"
        ran = await self.run(["python3", "-I", "-S", "-c", _ASK, url, str(timeout), *pieces])
        status, _, content = ran.output.partition(b"\n")
        if ran.exit_code != 0 or not status.isdigit():
            return Reply(status=0, body=ran.output)
        return Reply(status=int(status), body=content)

    async def run(self, command: Sequence[str]) -> Ran:
        """Run a command in the container, to its end."""
        return await self._call(partial(self._run, list(command)))

    def _run(self, command: list[str]) -> Ran:
        client = self._container.client
        assert client is not None  # noqa: S101 - a container that was created has one
        api: Any = client.api
        try:
            made = api.exec_create(self._container.id, command)["Id"]
            stream: Any = api.exec_start(made, socket=True)
        except docker.errors.APIError as error:
            if error.status_code in {404, 409}:  # it has ended, or is gone
                return Ran(exit_code=-1, output=str(error.explanation).encode())
            raise
        printed = {1: bytearray(), 2: bytearray()}
        # The SDK's own `exec_run` leaves its connection to the garbage collector, and reads without end.
        with closing(getattr(stream, "_sock", stream)), closing(stream):
            for channel, piece in _frames(stream, tty=False):
                printed.setdefault(channel, bytearray()).extend(piece)
                if sum(map(len, printed.values())) > _LONGEST_OUTPUT:
                    return Ran(exit_code=-1, output=b"it printed more than is read")
        code = api.exec_inspect(made)["ExitCode"]
        text = printed[1] if code == 0 else printed[1] + printed[2]
        return Ran(exit_code=-1 if code is None else code, output=bytes(text))

    async def _call(self, function: Callable[[], R]) -> R:
        with translated(self._engine):
            return await to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiter)


def _close(stream: Any) -> None:
    """Close a stream of the SDK, which leaves the connection of one that ended by itself to the garbage collector."""
    reader = getattr(stream._response.raw._fp, "fp", None)  # noqa: SLF001 - it has no other name
    with suppress(docker.errors.DockerException, OSError):  # over SSH it cannot be cut off, and ends by itself
        stream.close()
    if reader is not None:
        with suppress(OSError, AttributeError), closing(reader.raw._sock):  # noqa: SLF001 - likewise
            reader.close()


async def shielded(function: Callable[[], R], limiter: CapacityLimiter) -> R:
    """Run something that must be done to its end, also while everything is being cancelled."""
    with anyio.CancelScope(shield=True):
        result = await to_thread.run_sync(function, limiter=limiter)
    return result  # noqa: RET504 - by its type, a scope might swallow what is raised in it
