"""What an image's history tells about its layers: where vLLM was installed, and which layers cannot touch it.

The history is a hint. A layer it points at wrongly costs time, never a wrong answer; a layer it excuses from being read
is excused only for a ``COPY`` or ``ADD`` to a place that has nothing to do with Python, and is named in the result.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import Final

from bisector.artifacts.image.manifest import ImageConfig, Layer

_WHEELS: Final = re.compile(r"dist/\*\.whl")
_OTHER_WHEELS: Final = re.compile(r"ep_kernels|deepgemm", re.IGNORECASE)
_CLASSIC: Final = re.compile(r"/bin/sh -c #\(nop\) +(?:COPY|ADD) (?:multi|file|dir):\S+ in (?P<to>/\S*) *\Z")
_BUILDKIT: Final = re.compile(r"(?:COPY|ADD) (?P<rest>.*) # buildkit\Z", re.DOTALL)
_WORKDIR: Final = re.compile(r"(?:/bin/sh -c #\(nop\) +)?WORKDIR (?P<to>/\S*) *\Z")
_SYSTEM: Final = frozenset({"", "usr", "lib", "lib64", "lib32", "bin", "sbin", "opt", "root", "var", "run"})
"""Where Python may live, or what may be a link to where it lives."""


def layer_hint(layers: Sequence[Layer]) -> int | None:
    """Which layer (counted from the lowest) installed vLLM: the topmost whose command installs the wheels it built."""
    for at in range(len(layers) - 1, -1, -1):
        command = layers[at].created_by or ""
        if _WHEELS.search(command) and not _OTHER_WHEELS.search(command):
            return at
    return None


def harmless(layers: Sequence[Layer], config: ImageConfig, *, root: str) -> frozenset[int]:
    """The layers (counted from the lowest) that can change nothing in the Python environment at ``root``.

    A ``RUN`` is never one of them: it can do anything. A ``COPY`` is one when its destination, which may be relative
    to the ``WORKDIR`` before it, lies in a directory of the image that is neither the system's nor the environment's.
    """
    if not root or any(layer.created_by is None for layer in layers):
        return frozenset()
    found: set[int] = set()
    workdir, at = "/", 0
    for step in config.history or ():
        if moved := _WORKDIR.match(step.created_by):
            workdir = moved["to"]
        if step.empty_layer:
            continue
        destination = _destination(step.created_by, workdir)
        if destination is not None and _top(destination.lstrip("/")) not in {*_SYSTEM, _top(root)}:
            found.add(at)
        at += 1
    return frozenset(found)


def _top(path: str) -> str:
    return path.partition("/")[0]


def _destination(command: str, workdir: str) -> str | None:
    if classic := _CLASSIC.match(command):
        return posixpath.normpath(classic["to"])
    if copied := _BUILDKIT.match(command):
        try:
            last = shlex.split(copied["rest"])[-1]
        except (ValueError, IndexError):
            return None
        # A destination with a variable in it is whatever the variable was.
        return None if "$" in last else posixpath.normpath(posixpath.join(workdir, last))
    return None
