"""The one place that builds real rooms."""

from bisector.wiring.archive import Archive, open_archive
from bisector.wiring.examinations import Practice
from bisector.wiring.rooms import Rooms, open_rooms

__all__ = ["Archive", "Practice", "Rooms", "open_archive", "open_rooms"]
