"""From the records of layers to the answer of a selection, in as many rounds as links demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from bisector.artifacts.image.overlay import Environment
from bisector.artifacts.image.record import LayerRecord
from bisector.artifacts.image.scope import Scope
from bisector.errors import Unreadable
from bisector.model import Digest
from bisector.ports import FoundFiles, Selection

_MOST_ROUNDS: Final = 5
"""How often links may send the reader back."""


class Search(Protocol):
    """Reads what a selection needs to be answered within a scope."""

    async def __call__(self, scope: Scope) -> tuple[Environment, Sequence[LayerRecord]]:
        """The environment, and the records its origins point into."""


async def answer(selection: Selection, search: Search, *, digest: Digest, name: str) -> FoundFiles:
    """What a selection asks for; where a link leads out of the scope, the search is repeated in a wider one.

    Args:
        selection: What is wanted.
        search: Reads it.
        digest: Whose content it is.
        name: What people call that, for messages.

    Raises:
        Unreadable: Its links lead on and on.
    """
    scope = Scope()
    for _ in range(_MOST_ROUNDS):
        found, records = await search(scope)
        if found.wanted:
            scope = scope.extended(found.wanted, frozenset())
            continue
        listed = {
            path: records[origin.layer].listed[origin.path]
            for path, origin in found.origins.items()
            if selection.lists(path)
        }
        origins = {path: found.origins[path] for path in selection.reads(tuple(listed))}
        missing = {origin.path for origin in origins.values() if origin.path not in records[origin.layer].contents}
        if missing:
            scope = scope.extended((), frozenset(missing))
            continue
        contents = {path: records[origin.layer].contents[origin.path] for path, origin in origins.items()}
        return FoundFiles(listed=listed, contents=contents, digest=digest)
    raise Unreadable(f"{name} has links that lead to links without end")
