"""What a person hands over to be read: a file, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bisector.errors import Unreadable, UsageError

STANDARD_INPUT = "-"
_PIECE = 1 << 20
_LONGEST_COMMAND = 4 << 20


def pieces(source: str) -> Iterator[bytes]:
    """The bytes of a file of any size, a megabyte at a time; ``-`` is standard input.

    Raises:
        UsageError: There is no such file.
        Unreadable: It is there, and cannot be read.
    """
    with _opened(source) as file:
        while piece := file.read(_PIECE):
            yield piece


def text(source: str) -> str:
    """The text of a launch command.

    Raises:
        UsageError: There is no such file.
        Unreadable: It cannot be read, is no text, or is far too long to be a command.
    """
    with _opened(source) as file:
        content = file.read(_LONGEST_COMMAND + 1)
    if len(content) > _LONGEST_COMMAND or b"\0" in content:
        raise Unreadable(
            f"{_name(source)} is no launch command.", hint="Hand over a docker run line, a compose file or a script."
        )
    return content.decode("utf-8", "replace").lstrip("\ufeff")


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    try:
        if source == STANDARD_INPUT:
            yield sys.stdin.buffer
        else:
            with Path(source).open("rb") as file:
                yield file
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {source!r}.", hint="Name a file, or - for standard input.") from error
    except OSError as error:
        raise Unreadable(
            f"{_name(source)} cannot be read: {error.strerror}.", hint="Name a readable file, or - for standard input."
        ) from error


def _name(source: str) -> str:
    return "Standard input" if source == STANDARD_INPUT else f"The file {source!r}"
