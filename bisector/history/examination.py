"""How the history file is, for those who have to trust it."""

from __future__ import annotations

from bisector.errors import HistoryUnavailable
from bisector.history.database import Database

_SHOWN = 3


async def examine(database: Database) -> str:
    """That the file is sound, in a phrase.

    Raises:
        HistoryUnavailable: It is damaged, or cannot be read.
    """
    problems = [repr(row[0]) for row in await database.fetch("PRAGMA quick_check", {}) if row[0] != "ok"]
    problems += [f"{row[0]!r} names what is not there" for row in await database.fetch("PRAGMA foreign_key_check", {})]
    if problems:
        raise HistoryUnavailable(
            f"{database.path} is damaged: {'; '.join(problems[:_SHOWN])}",
            hint="`bisector history export` saves what can be read; start a new file with --db and import it there.",
        )
    version = int((await database.fetch("PRAGMA user_version", {}))[0][0] or 0)
    access = "" if database.writable else ", read only"
    return f"sound, schema {version}{access}: {database.path}"
