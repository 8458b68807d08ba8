"""The contract with scripts."""

from __future__ import annotations


class ExitCode:
    """The contract with scripts (DESIGN §5)."""

    HOLDS = 0
    REGRESSION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130
