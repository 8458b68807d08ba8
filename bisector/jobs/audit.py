"""``audit``: the workarounds in a launch command. No network, no history."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisector.diagnosis.audit import Workaround
from bisector.diagnosis.audit import audit as judge
from bisector.diagnosis.launch import Launch
from bisector.jobs.handed import text
from bisector.results import Audit


def audit(source: str, *, read: Callable[[str], Launch], workarounds: Sequence[Workaround]) -> Audit:
    """Read a launch command and name what in it is only a workaround.

    Args:
        source: A file, or ``-`` for standard input.
        read: Takes the text of a command apart.
        workarounds: Those that are known.

    Raises:
        UsageError: There is no such file.
        Unreadable: It cannot be read.
    """
    return judge(read(text(source)), workarounds)
