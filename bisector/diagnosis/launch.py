"""A launch command taken apart: its flags and variables, each with the line it stands in.

Made for what people have: a `docker run` in a shell script with continuations and comments, a Dockerfile, a systemd
unit, a profile. It does not run a shell: variables and substitutions stay as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One flag or variable.

    Attributes:
        name: ``--max-num-seqs`` with dashes throughout, or ``NCCL_P2P_DISABLE``.
        value: What follows it; ``None`` where nothing does.
        kind: ``flag`` or ``environment``.
        line: Where it stands, from 1.
        joined: The value stands behind ``=`` and not behind a blank.
    """

    name: str
    value: str | None
    kind: str
    line: int
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a command sets, and which files it takes more settings from."""

    settings: tuple[Setting, ...]
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command, without its quotes."""

    text: str
    line: int


_PIECE = re.compile(
    r"""
      (?:\\\r?\n)(?P<continued>)
    | (?:(?<=[\s;|&()<>])|\A)(?P<comment>\#[^\n]*)
    | (?P<end>[\s;|&()<>])
    | '(?P<single>[^']*)(?:'|\Z)
    | "(?P<double>(?:[^"\\]|\\.)*)(?:"|\Z)
    | \\(?P<escaped>.)
    | (?P<plain>[^\s\\'";|&()<>]+|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r'\\(["\\$`]|\n)')
_VARIABLE = re.compile(r"(?:Environment=)?(?P<name>[A-Z][A-Z0-9_]*[A-Z0-9])=(?P<value>.*)", re.DOTALL)
_FLAG = re.compile(r"(?P<name>--?[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_LISTED = "[](),"
_BETWEEN = {"=", ":", "{", "}", "value"}
_ENV_FILE = "--env-file"


def words(text: str, first_line: int = 1) -> Iterator[Word]:
    """The words of a shell text; a quote that never closes ends with the text."""
    line = first_line
    word: Word | None = None
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "end":
            if word:
                yield word
            word = None
        elif piece.lastgroup not in {"continued", "comment"}:
            said = piece[piece.lastgroup or 0]
            if piece.lastgroup == "double":
                said = _ESCAPED.sub(r"\1", said)
            word = Word(word.text + said, word.line) if word else Word(said, line)
        line += piece[0].count("\n")
    if word:
        yield word


def settings(found: Iterable[Word]) -> Launch:
    """The flags and variables in a row of words."""
    row = [Word(word.text.strip(_LISTED), word.line) for word in found]
    row = [word for word in row if word.text and word.text not in _BETWEEN]
    result: list[Setting] = []
    elsewhere: list[str] = []
    for place, word in enumerate(row):
        after = row[place + 1] if place + 1 < len(row) else None
        if match := _VARIABLE.fullmatch(word.text.removeprefix("-e").removeprefix("--env=")):
            result.append(Setting(name=match["name"], value=match["value"], kind="environment", line=word.line))
        elif match := _FLAG.fullmatch(word.text):
            name, value, joined = match["name"], match["value"], match["value"] is not None
            if value is None and after and not _FLAG.fullmatch(after.text) and not _VARIABLE.fullmatch(after.text):
                value = after.text
            if name == _ENV_FILE:
                elsewhere += [value] if value else []
            else:
                name = name.replace("_", "-") if name.startswith("--") and "." not in name else name
                result.append(Setting(name=name, value=value, kind="flag", line=word.line, joined=joined))
    return Launch(settings=tuple(result), elsewhere=tuple(elsewhere))
