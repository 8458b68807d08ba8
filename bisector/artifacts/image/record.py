"""What one layer holds of what was asked.

A record is enough to put layers on top of each other (:mod:`~bisector.artifacts.image.overlay`) without reading any of
them again, and depends on nothing but the layer's content and on what was asked: it may be kept by ``diffID``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRecord:
    """What one layer holds of what was asked. Paths are the image's own, relative to its root.

    Attributes:
        listed: Regular files that matter, and their size in bytes.
        contents: The content of those that are wanted.
        hardlinks: Files that matter and repeat another file of the same layer → that file.
        symlinks: Symbolic links that matter, or may stand in place of a directory that does → target as written.
        others: Whatever else is no directory and stands where a directory that matters may have been.
        directories: Directories in which something that matters could lie.
        whiteouts: Paths that this layer removes from those below.
        opaque: Directories whose content in the layers below is hidden.
        complete: False when reading stopped because nothing more could matter.
        read: Compressed bytes read.
        verified: The layer was read to its end, and its diffID was computed and is right.
    """

    listed: Mapping[str, int] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)
    hardlinks: Mapping[str, str] = field(default_factory=dict)
    symlinks: Mapping[str, str] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    whiteouts: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    complete: bool = True
    read: int = 0
    verified: bool = False


def parents(path: str) -> tuple[str, ...]:
    """Every directory above a path, the image's root (an empty name) last."""
    return _and_above(path.rpartition("/")[0]) if path else ()


@lru_cache(maxsize=4096)
def _and_above(directory: str) -> tuple[str, ...]:
    above = [directory]
    while directory:
        directory = directory.rpartition("/")[0]
        above.append(directory)
    return tuple(above)
