"""One at a time: a lock on a file beside the history, which the system lets go when its holder dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bisector.errors import HistoryUnavailable, Unavailable
from bisector.ports import Clock

_MOST = 1000


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    host: str
    since: str


@contextmanager
def locked(history: Path, clock: Clock, *, job: str) -> Iterator[None]:
    """Be the only one that does this job with this history, until the block ends.

    Raises:
        Unavailable: Another process does it; the message says which.
        HistoryUnavailable: There is no place for the lock, or its drive knows none.
    """
    path = history.with_name(f"{history.name}.{job}-lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise HistoryUnavailable(f"The lock {path} cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unavailable(
                f"Another `bisector {job}` is at work: {_holder(file)}",
                hint="Let it finish; this one would do the same.",
            ) from error
        except OSError as error:
            raise HistoryUnavailable(f"The drive of {path} knows no locks: {error.strerror}") from error
        holder = _Holder(pid=os.getpid(), host=socket.gethostname(), since=f"{clock.now():%Y-%m-%dT%H:%M:%SZ}")
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(holder), 0)
        yield
    finally:
        # The file stays: who removed it could let two in, one by the old file and one by a new one.
        os.close(file)


def _holder(file: int) -> str:
    try:
        holder = msgspec.json.decode(os.pread(file, _MOST, 0), type=_Holder)
    except msgspec.DecodeError:
        return "it has just begun"
    return f"process {holder.pid} on {holder.host}, since {holder.since}"
