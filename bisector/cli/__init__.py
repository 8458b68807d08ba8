"""The command line: parse, run one job, render, exit code."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``bisector`` and leave with its exit code."""
    # Imported here, so that `bisector.cli` can be named without paying for click.
    from bisector.cli.app import INTERRUPTED, run  # noqa: PLC0415

    code = run(sys.argv[1:] if arguments is None else arguments)
    if code == INTERRUPTED and threading.active_count() > 1:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> None:
    """End although a thread waits for somebody who has gone silent; left to itself, Python would wait for it too."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
