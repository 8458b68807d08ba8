"""How to search, and for what."""

from __future__ import annotations

from enum import StrEnum


class Strategy(StrEnum):
    """``sweep`` tests build after build and misses nothing; ``bisect`` tests few and trusts what lies between."""

    SWEEP = "sweep"
    BISECT = "bisect"


class Direction(StrEnum):
    """``loss``: the build that stopped being good. ``fix``: the build that is good again."""

    LOSS = "loss"
    FIX = "fix"
