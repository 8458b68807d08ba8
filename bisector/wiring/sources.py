"""Whether a source is spelled as one, without asking anybody."""

from __future__ import annotations

from bisector.errors import UnknownSource
from bisector.streams import commits, dockerhub, engine, layout, registry

_PARSERS = {
    "dockerhub": dockerhub.parse_source,
    "registry": registry.parse_source,
    "commits": commits.parse_source,
    "oci": layout.parse_source,
    "docker": engine.parse_source,
}
_ANYTHING = ("pypi", "history")


def check_source(source: str) -> None:
    """Do nothing where a source can be one.

    Raises:
        UnknownSource: It names no kind of stream, or cannot be one of its kind.
    """
    kind, _, rest = source.partition(":")
    if kind in _PARSERS:
        _PARSERS[kind](source)
    elif kind not in _ANYTHING or not rest:
        raise UnknownSource(f"{source!r} names no stream of builds")
