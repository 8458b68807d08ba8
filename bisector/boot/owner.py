"""Who started a container, and whether it still lives. The lease and the clearing up stand on this."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

LABEL: Final = "io.bisector"
_SLACK: Final = 2.0  # seconds by which the kernel's and our idea of a process's start may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, somewhere.

    Attributes:
        machine: The name of its machine.
        pid: Its number there.
        since: When it took what it owns, UTC.
        until: When it is no longer believed, where nobody can see whether it lives.
    """

    machine: str
    pid: int
    since: datetime
    until: datetime

    @property
    def labels(self) -> dict[str, str]:
        """As a container carries it."""
        return {
            f"{LABEL}.machine": self.machine,
            f"{LABEL}.pid": str(self.pid),
            f"{LABEL}.since": self.since.isoformat(),
            f"{LABEL}.until": self.until.isoformat(),
        }

    def is_gone(self, now: datetime) -> bool:
        """Whether it is known to be dead, or believed no longer."""
        if self.machine != socket.gethostname():
            return now >= self.until
        return not lives(self.pid, self.since)


def owner_in(labels: Mapping[str, str]) -> Owner | None:
    """The owner that a container's labels name; ``None`` when they name none that can be understood."""
    try:
        return Owner(
            machine=labels[f"{LABEL}.machine"],
            pid=int(labels[f"{LABEL}.pid"]),
            since=datetime.fromisoformat(labels[f"{LABEL}.since"]),
            until=datetime.fromisoformat(labels[f"{LABEL}.until"]),
        )
    except (KeyError, ValueError):
        return None


def lives(pid: int, since: datetime) -> bool:
    """Whether the process that was ``pid`` on this machine at that moment still runs.

    A process of that number which started later is another one
    (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html, field 22).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        boot = next(
            line for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines() if line.startswith("btime ")
        )
    except OSError:
        return False
    if fields[0] in "ZX":
        return False
    started = int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return started <= since.astimezone(UTC).timestamp() + _SLACK
