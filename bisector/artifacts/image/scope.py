"""Which paths of an image a layer's reader looks at, and by which name the selection knows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

_PACKAGES: Final = re.compile(r"(?:^|.*?/)(?:site|dist)-packages(?=/|\Z)")
_DEEPEST_PREFIX: Final = 5
_NEVER_ABOVE_PACKAGES: Final = frozenset(
    {"bin", "sbin", "etc", "share", "include", "src", "proc", "sys", "dev", "log", "doc", "dpkg", "gcc", "targets"}
)
_PYTHON_DIRECTORY: Final = re.compile(r"\.?[^.]*\Z|python\d(\.\d+)?\Z")


class Place(NamedTuple):
    """A path as a selection sees it.

    Attributes:
        root: The Python environment's directory of packages: ``usr/local/lib/python3.12/dist-packages``.
        name: The path within it: ``vllm/_version.py``.
    """

    root: str
    name: str


class Alias(NamedTuple):
    """A second name for everything at and below a path: what a link elsewhere leads to."""

    path: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What of an image belongs to Python environments.

    Attributes:
        aliases: Places outside of them, or at other names, that links lead to.
        contents: Paths whose content is wanted although the selection alone would not have kept it.
    """

    aliases: tuple[Alias, ...] = ()
    contents: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """Equal for equal scopes, empty for the widest."""
        parts = [f"{alias.path}={alias.place.root}:{alias.place.name}" for alias in self.aliases]
        return "|".join((*parts, *sorted(self.contents)))

    def places(self, path: str) -> tuple[Place, ...]:
        """Every name by which a selection may know this path; none when it belongs to no environment."""
        own = packages_place(path)
        if not self.aliases:
            return () if own is None else (own,)
        found = {} if own is None else {own: None}
        for real, place in self.aliases:
            if path == real:
                found[place] = None
            elif path.startswith(f"{real}/"):
                rest = path[len(real) + 1 :]
                found[Place(place.root, f"{place.name}/{rest}" if place.name else rest)] = None
        return tuple(found)

    def leads_to(self, path: str) -> bool:
        """Whether an alias lies below this path, so that a link there would lead elsewhere."""
        return any(alias.path.startswith(f"{path}/") for alias in self.aliases)

    def extended(self, aliases: tuple[Alias, ...], contents: frozenset[str]) -> Scope:
        """This scope and more."""
        return Scope(aliases=tuple(dict.fromkeys((*self.aliases, *aliases))), contents=self.contents | contents)


def packages_place(path: str) -> Place | None:
    """The environment a path lies in by its own name: what follows the first ``site-packages`` or ``dist-packages``."""
    if "-packages" not in path:
        return None
    found = _PACKAGES.match(path)
    return None if found is None else Place(found[0], path[found.end() + 1 :])


def may_lead_to_packages(path: str) -> bool:
    """Whether a directory of this name, outside of every environment, may have one below it.

    Not every path an image may have: one deeper than five names, below ``bin``, ``share`` and their like, or with a
    suffix is taken for a plain file. A link or file there that hides a whole environment goes unseen.
    """
    *parents, last = path.split("/")
    return (
        len(parents) < _DEEPEST_PREFIX
        and _PYTHON_DIRECTORY.match(last) is not None
        and last not in _NEVER_ABOVE_PACKAGES
        and _NEVER_ABOVE_PACKAGES.isdisjoint(parents)
    )
