"""How much of an artifact is read at most, so that a hostile one costs an error and not the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bisector.errors import Unreadable

MOST_ENTRIES = 500_000
"""Files and directories in one artifact; vLLM's wheels have about 7,000, a whole image about 200,000."""
LARGEST_FILE = 512 << 20
"""Bytes of one file; the largest library of vLLM 0.33 has 308 MB."""
LARGEST_READING = 2 << 30
"""Bytes of all files read at once; all libraries of vLLM 0.33 together have about 0.9 GB."""


def keep_bounds(paths: Iterable[str], sizes: Mapping[str, int], artifact: str) -> None:
    """Refuse to read files that are too large, one by one or together.

    Raises:
        Unreadable: They are.
    """
    total = 0
    for path in paths:
        if sizes[path] > LARGEST_FILE:
            raise Unreadable(f"{path} in {artifact} has {sizes[path]:,} bytes, more than bisector reads of one file")
        total += sizes[path]
    if total > LARGEST_READING:
        raise Unreadable(f"What is to be read of {artifact} has {total:,} bytes, more than bisector reads at once")
