"""A clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SteppingClock:
    """Tells a time one minute later than the last one it told; ``monotonic`` counts the same minutes in seconds."""

    def __init__(self, start: datetime = datetime(2026, 11, 29, 5, 30, tzinfo=UTC)) -> None:
        self._start = start
        self._minutes = 0

    def now(self) -> datetime:
        self._minutes += 1
        return self._start + timedelta(minutes=self._minutes)

    def monotonic(self) -> float:
        return self._minutes * 60.0
