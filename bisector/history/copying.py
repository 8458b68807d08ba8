"""A copy of the history to try something on."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from bisector.errors import HistoryUnavailable


@contextmanager
def copied(history: Path) -> Iterator[Path]:
    """A copy that goes away at the end of the block; of a history that is not there, the place for a new one.

    Raises:
        HistoryUnavailable: It cannot be read, or there is no room for the copy.
    """
    with tempfile.TemporaryDirectory(prefix="bisector-") as folder:
        copy = Path(folder, "history.db")
        if history.exists():
            try:
                # A file in use is copied as of one moment: https://www.sqlite.org/backup.html
                address = f"file:{quote(str(history.resolve()))}?mode=ro"
                with closing(sqlite3.connect(address, uri=True)) as old, closing(sqlite3.connect(copy)) as new:
                    old.backup(new)
            except sqlite3.Error as error:
                raise HistoryUnavailable(f"The history file {history} cannot be copied: {error}") from error
        yield copy
