"""``diagnose``: the causes in a log. No network, no history."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.diagnosis import engine
from bisector.diagnosis.signature import Catalogue
from bisector.jobs.handed import pieces
from bisector.results import Diagnosis


def diagnose(source: str, *, catalogue: Catalogue, gpus: Mapping[str, str]) -> Diagnosis:
    """Read a log once and name what went wrong.

    Args:
        source: A file, or ``-`` for standard input.
        catalogue: What to look for.
        gpus: GPU name → architecture.

    Raises:
        UsageError: There is no such file.
        Unreadable: It cannot be read.
    """
    return engine.diagnose(pieces(source), catalogue, gpus)
