"""Layers put on top of each other as a container engine does, from their records alone. Pure.

From the bottom up, each layer hides what it removes, what it replaces, and what lies below a directory it marks opaque
(only in layers below itself, wherever in the layer the mark stands), and then adds its own. A symlink in place of a
directory is followed, a hardlink is the file it names in its own layer. Format:
https://github.com/opencontainers/image-spec/blob/main/layer.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bisector.artifacts.image.record import LayerRecord, parents
from bisector.artifacts.image.scope import Alias, Place, Scope, packages_place
from bisector.artifacts.image.tar import Kind
from bisector.errors import Unreadable

_MOST_LINKS: Final = 40
"""Symlinks followed for one path; what Linux allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Something that is no directory, visible in the image.

    Attributes:
        layer: The layer that holds it, counted from the top.
        kind: What it is.
        link: Where a symlink leads, as written; which file of its layer a hardlink repeats.
    """

    layer: int
    kind: Kind
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the content of a visible file lies: a layer, counted from the top, and a path in it."""

    layer: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The packages of an image's Python, as far as they matter.

    Attributes:
        root: Their directory; empty when the image has none that matters.
        origins: Path within it → where the file lies.
        wanted: Links lead to places the layers were not searched for: read them again with these, then ask again.
    """

    root: str
    origins: Mapping[str, Origin]
    wanted: tuple[Alias, ...]


def merge(records: Sequence[LayerRecord]) -> dict[str, Node]:
    """What is visible when these layers, the top one first, lie on each other: path → node."""
    visible: dict[str, Node] = {}
    for layer, record in reversed(list(enumerate(records))):
        own = _nodes(layer, record)
        directories = set(record.directories | record.opaque)
        # Whatever lies in a layer, a mark too, lies there in a directory.
        for path in (*own, *directories, *record.whiteouts):
            directories.update(parents(path))
        covering = record.whiteouts | record.opaque | own.keys()
        gone = record.whiteouts | directories | own.keys()
        visible = {
            path: node for path, node in visible.items() if path not in gone and covering.isdisjoint(parents(path))
        }
        visible |= own
    return visible


def environment(records: Sequence[LayerRecord], scope: Scope) -> Environment:
    """The environment that a selection is answered from: of several, the one with most of what it wants.

    Raises:
        Unreadable: A file repeats another one that its layer does not hold; Docker refuses such a layer.
    """
    visible = merge(records)
    wanted = [alias for path in visible for alias in _aliases(path, visible, records, scope)]
    found: dict[str, dict[str, Origin]] = {}
    for path, node in visible.items():
        origin = _origin(path, node, records)
        if origin is None:
            continue
        for place in _places(path, scope, visible):
            found.setdefault(place.root, {})[place.name] = origin
    count = Counter({root: len(files) for root, files in found.items()})
    root = min(found, key=lambda each: (-count[each], each), default="")
    return Environment(
        root=root,
        origins=dict(sorted(found.get(root, {}).items())),
        wanted=tuple(alias for alias in dict.fromkeys(wanted) if alias not in scope.aliases),
    )


def resolve(path: str, visible: Mapping[str, Node]) -> str | None:
    """The path behind every symlink on the way, the last one too; ``None`` when it leads nowhere.

    Directories are not known by name, so a path without a symlink in it is taken as it is.
    """
    todo, done, followed = path.split("/")[::-1], "", 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{part}" if done else part
        node = visible.get(here)
        if node is not None and node.kind is Kind.SYMLINK:
            followed += 1
            if followed > _MOST_LINKS:
                return None
            if node.link.startswith("/"):
                done = ""
            todo.extend(node.link.split("/")[::-1])
        elif node is not None and todo:
            return None
        else:
            done = here
    return done


def _nodes(layer: int, record: LayerRecord) -> dict[str, Node]:
    nodes = {path: Node(layer=layer, kind=Kind.FILE) for path in record.listed}
    nodes |= {path: Node(layer=layer, kind=Kind.OTHER) for path in record.others}
    nodes |= {path: Node(layer=layer, kind=Kind.SYMLINK, link=link) for path, link in record.symlinks.items()}
    for path, link in record.hardlinks.items():
        target = _first(link, record)
        # A second name of a symlink is a symlink.
        through = record.symlinks.get(target)
        nodes[path] = (
            Node(layer=layer, kind=Kind.HARDLINK, link=target)
            if through is None
            else Node(layer=layer, kind=Kind.SYMLINK, link=through)
        )
    return nodes


def _first(path: str, record: LayerRecord) -> str:
    """The file behind a chain of hardlinks of one layer."""
    for _ in range(len(record.hardlinks) + 1):
        if path not in record.hardlinks:
            return path
        path = record.hardlinks[path]
    raise Unreadable(f"In a layer {path!r} is a second name of itself")


def _origin(path: str, node: Node, records: Sequence[LayerRecord]) -> Origin | None:
    record = records[node.layer]
    if node.kind is Kind.FILE:
        return Origin(layer=node.layer, path=path)
    if node.kind is Kind.HARDLINK and node.link in record.listed:
        return Origin(layer=node.layer, path=node.link)
    return None


def _aliases(path: str, visible: Mapping[str, Node], records: Sequence[LayerRecord], scope: Scope) -> list[Alias]:
    """By which further names the selection would have to be asked because of this link."""
    node = visible[path]
    places = scope.places(path)
    if node.kind is Kind.SYMLINK and places:
        target = resolve(path, visible)
        # A directory that leads into itself has nothing that it has not by a shorter name.
        if not target or path == target or path.startswith(f"{target}/"):
            return []
        return [Alias(target, place) for place in places if packages_place(target) != place]
    if node.kind is Kind.HARDLINK and node.link not in records[node.layer].listed:
        wanted = [Alias(node.link, place) for place in places]
        if all(alias in scope.aliases for alias in wanted):
            raise Unreadable(f"In a layer {path!r} repeats {node.link!r}, which that layer does not hold")
        return wanted
    return []


def _places(path: str, scope: Scope, visible: Mapping[str, Node]) -> list[Place]:
    """The names of a visible file: its own, and those through links that are still there."""
    own = packages_place(path)
    return [
        place for place in scope.places(path) if place == own or resolve(f"{place.root}/{place.name}", visible) == path
    ]
