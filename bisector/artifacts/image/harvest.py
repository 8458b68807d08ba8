"""What is kept of a layer while its entries pass by, what is refused, and when enough has been seen.

Layers that Docker refuses are refused here too, as far as the refusal concerns files that matter: a path held twice,
a path both held and removed, something below what is no directory. Guessing what was meant would be worse.
"""

from __future__ import annotations

import io
from typing import Final

from bisector.artifacts.image.record import LayerRecord, parents
from bisector.artifacts.image.scope import Place, Scope, may_lead_to_packages
from bisector.artifacts.image.tar import Entry, Kind
from bisector.errors import Unreadable
from bisector.ports import END_OF_LAYER, Selection

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_MOST_KEPT: Final = 1_000_000
"""Paths of one layer that may matter."""
_MOST_CONTENT: Final = 1 << 30
"""Bytes of content kept of one layer."""


class Harvest:
    """The visitor of one layer's archive.

    Args:
        selection: What is wanted.
        scope: Where.
        may_stop: Whether the rest may be left out once the selection is satisfied.
    """

    def __init__(self, selection: Selection, scope: Scope, *, may_stop: bool) -> None:
        self.stopped = False
        self._selection = selection
        self._scope = scope
        self._may_stop = may_stop
        self._last_key = ""
        self._directory: str | None = None
        self._names: dict[str, None] = {}
        self._listed: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}
        self._content = io.BytesIO()
        self._path = ""
        self._content_bytes = 0
        self._hardlinks: dict[str, str] = {}
        self._symlinks: dict[str, str] = {}
        self._others: set[str] = set()
        self._taken: set[str] = set()
        self._directories: set[str] = set()
        self._whiteouts: set[str] = set()
        self._opaque: set[str] = set()

    def entry(self, entry: Entry) -> bool:
        """Take note; whether the content is wanted."""
        parent, _, last = entry.path.rpartition("/")
        if last.startswith(_WHITEOUT):
            self._remove(parent, last)
            return False
        places = self._scope.places(entry.path)
        if self._may_stop and self._passed_enough(entry.path, places):
            self.stopped = True
            return False
        if entry.kind is Kind.DIRECTORY:
            if self._enters(places):
                self._directories.add(entry.path)
            return False
        return self._keep(entry, places)

    def content(self, data: bytes) -> None:
        """The next piece of what was wanted."""
        self._content.write(data)
        if self._content.tell() == self._listed[self._path]:
            # Unlike bytes of a bytearray, this is no second copy of what may be a large library.
            self._contents[self._path] = self._content.getvalue()
            self._content = io.BytesIO()

    def record(self, *, read: int, verified: bool) -> LayerRecord:
        """Everything kept.

        Raises:
            Unreadable: The layer contradicts itself.
        """
        for path in self._taken | self._directories:
            above = parents(path)
            if path in self._whiteouts or not self._whiteouts.isdisjoint(above):
                raise Unreadable(f"A layer both holds and removes {path!r}; no engine takes such a layer")
            if not self._taken.isdisjoint(above) or (path in self._taken and path in self._directories):
                raise Unreadable(f"A layer holds {path!r} at or below something that is no directory")
        return LayerRecord(
            listed=self._listed,
            contents=self._contents,
            hardlinks=self._hardlinks,
            symlinks=self._symlinks,
            others=frozenset(self._others),
            directories=frozenset(self._directories),
            whiteouts=frozenset(self._whiteouts),
            opaque=frozenset(self._opaque),
            complete=not self.stopped,
            read=read,
            verified=verified,
        )

    def _keep(self, entry: Entry, places: tuple[Place, ...]) -> bool:
        path = entry.path
        asked = path in self._scope.contents
        names = [place.name for place in places if asked or self._selection.lists(place.name)]
        read = asked or any(self._selection.reads((name,)) for name in names)
        wanted = asked or bool(names)
        in_the_way = self._enters(places) if places else may_lead_to_packages(path) or self._scope.leads_to(path)
        if not wanted and not in_the_way:
            return False
        self._take(path)
        if entry.kind is Kind.SYMLINK:
            self._symlinks[path] = entry.link
        elif entry.kind is Kind.HARDLINK and wanted:
            self._hardlinks[path] = entry.link
        elif entry.kind is Kind.FILE and wanted:
            self._listed[path] = entry.size
            self._names.update(dict.fromkeys(names))
            return read and self._open(path, entry.size)
        else:
            self._others.add(path)
        return False

    def _open(self, path: str, size: int) -> bool:
        self._content_bytes += size
        if self._content_bytes > _MOST_CONTENT:
            raise Unreadable(f"A layer has more than {_MOST_CONTENT >> 30} GiB of the files to be read")
        self._path = path
        if not size:
            self._contents[path] = b""
        return True

    def _remove(self, parent: str, last: str) -> None:
        if last == _OPAQUE:
            self._opaque.add(parent)
            self._refuse_excess()
            return
        if last.startswith(_WHITEOUT * 2):
            return  # what aufs kept for itself
        hidden = last.removeprefix(_WHITEOUT)
        if hidden in ("", ".", ".."):
            raise Unreadable("A layer removes a file without a name; no engine takes such a layer")
        path = f"{parent}/{hidden}" if parent else hidden
        places = self._scope.places(path)
        # Outside of an environment whole trees may be removed, so everything may matter.
        if not places or self._enters(places) or any(self._wants(place.name) for place in places):
            self._whiteouts.add(path)
            self._refuse_excess()

    def _enters(self, places: tuple[Place, ...]) -> bool:
        return any(not place.name or self._selection.enters(place.name) for place in places)

    def _wants(self, name: str) -> bool:
        return self._selection.lists(name) or bool(self._selection.reads((name,)))

    def _take(self, path: str) -> None:
        if path in self._taken:
            raise Unreadable(f"A layer holds {path!r} twice; no engine takes such a layer")
        self._taken.add(path)
        self._refuse_excess()

    def _refuse_excess(self) -> None:
        if len(self._taken) + len(self._whiteouts) + len(self._opaque) > _MOST_KEPT:
            raise Unreadable(f"A layer holds more than {_MOST_KEPT:,} of the files to be listed")

    def _passed_enough(self, path: str, places: tuple[Place, ...]) -> bool:
        """Whether the selection has all it can get; asked once a directory, and only while paths come in order."""
        key = path.replace("/", "\0")
        if key < self._last_key:
            # No specification promises an order. Docker, BuildKit and umoci keep one; without it all must be read.
            self._may_stop = False
            return False
        self._last_key = key
        directory = path.rpartition("/")[0] if places else ""
        if directory == self._directory or not self._names:
            return False
        self._directory = directory
        return self._selection.satisfied(self._names.keys(), places[0].name if places else END_OF_LAYER)
