"""The DeepGEMM that vLLM builds with, read from its build files. Pure.

Since 2026-04-08 it is declared to CMake (https://cmake.org/cmake/help/latest/module/FetchContent.html); the script,
which came before, still names the same revision.
"""

from __future__ import annotations

import re
from typing import Final

from bisector.model import DependencyPin

PIN_FILES: Final = ("cmake/external_projects/deepgemm.cmake", "tools/install_deepgemm.sh")
"""Where the pin stands, the authority first."""

_COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")
_DECLARATION = re.compile(r"(?i)\bFetchContent_Declare\s*\(([^)]*)\)")
_CMAKE = re.compile(r"""\b(GIT_REPOSITORY|GIT_TAG)\s+"?([\w.:/@+~-]{1,300})(?=["\s]|$)""", re.ASCII)
_SHELL = re.compile(r"""(?m)^\s*(DEEPGEMM_GIT_REPO|DEEPGEMM_GIT_REF)=["']?([\w.:/@+~-]{1,300})["']?\s*$""", re.ASCII)


def read_pin(text: str) -> DependencyPin | None:
    """The pin in one of :data:`PIN_FILES`; ``None`` when it is not there as plain text, such as behind a variable."""
    code = _COMMENT.sub("", text)
    for declared in _DECLARATION.findall(code):
        found = dict(_CMAKE.findall(declared))
        if len(found) == 2:  # noqa: PLR2004 - repository and revision
            return DependencyPin(repository=found["GIT_REPOSITORY"], revision=found["GIT_TAG"])
    # The first assignment is the default; those after it take arguments.
    assigned = dict(reversed(_SHELL.findall(code)))
    if len(assigned) == 2:  # noqa: PLR2004 - repository and revision
        return DependencyPin(repository=assigned["DEEPGEMM_GIT_REPO"], revision=assigned["DEEPGEMM_GIT_REF"])
    return None
