"""bisector in a process that kills itself, as ``kill -9`` would: ``python -m tests.nightly.mortal WHEN N ARGUMENTS…``.

It dies when the clock is asked for the Nth time, which every write to the history does and every sending; 0: never.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import datetime

from bisector.cli.app import run


class MortalClock:
    """Tells one moment, and dies at being asked too often."""

    def __init__(self, moment: datetime, left: int) -> None:
        self._moment = moment
        self._left = left
        self.asked = 0

    def now(self) -> datetime:
        self.asked += 1
        if self.asked == self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._moment

    def monotonic(self) -> float:
        return time.monotonic()


if __name__ == "__main__":
    clock = MortalClock(datetime.fromisoformat(sys.argv[1]), int(sys.argv[2]))
    code = run(sys.argv[3:], clock=clock)
    sys.stderr.write(f"asked {clock.asked}\n")
    sys.exit(code)
