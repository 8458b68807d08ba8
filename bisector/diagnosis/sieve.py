"""The first look at a log: most lines are never looked at twice, so that hundreds of megabytes take seconds.

Logs repeat themselves. Without its numbers a line is mostly one seen before; and where every line is new, its words
are not. So a line is looked at when its *make* is new (its text without hexadecimal digits, which are what counters,
times and identifiers are written in) and when it holds a word that some anchor may stand in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from bisector.diagnosis.lines import ANSI, LONGEST

SHORTEST_KEY = 3
# Without control characters and bytes beyond ASCII too: noise is all unlike, and no anchor has any.
_DIGITS = b"0123456789abcdef" + bytes({*range(32), *range(127, 256)} - set(b"\t\n\v\f\r"))
_MARKS = b"\xff\xfe\xef\xbb\xbf"  # byte order marks, of UTF-16 and UTF-8

_BLOCK = 1 << 20
_OVERLAP = 512
_MAKES, _WORDS = 50_000, 100_000
_LONGEST_MAKE = 512


def key(anchor: str) -> bytes:
    """The longest word of an anchor, in the form in which words are searched: without hexadecimal digits.

    Blanks around it are part of it, so that a word that the anchor has whole is found as a whole only.
    """
    found = re.findall(rb" ?[^ ]+ ?", anchor.encode().translate(None, _DIGITS).replace(b" ", b"  "))
    return max(found, key=len, default=b"")


class Suspect(NamedTuple):
    """A line that is worth a closer look.

    Attributes:
        number: Its place in the log, from 1.
        raw: Its bytes; of a very long line, those around what made it suspicious.
        make: What it has in common with lines that differ in numbers only.
        anchors: Those that may stand in it.
    """

    number: int
    raw: bytes
    make: bytes
    anchors: Sequence[str]


class Sieve:
    """Takes a log in pieces of any size and gives the lines worth a look, in order.

    Its memory does not depend on the log: a block of one megabyte, 50,000 makes and 100,000 words are kept at most.
    """

    def __init__(self, anchors: Iterable[str]) -> None:
        self._keys: dict[bytes, frozenset[bytes]] = {}
        for anchor in anchors:
            self._keys[key(anchor)] = self._keys.get(key(anchor), frozenset()) | {anchor.encode()}
        self._rest = b""
        self._count = 0
        self._settled: set[bytes] = set()
        self._passed: set[bytes] = set()
        self._dull: set[bytes] = set()
        self._telling: dict[bytes, frozenset[bytes]] = {}
        self.last = b""

    @property
    def count(self) -> int:
        """How many lines there were."""
        return self._count

    def settle(self, make: bytes) -> None:
        """Never give a line of this make again: all that it can tell is known."""
        if len(make) <= _LONGEST_MAKE:
            if len(self._settled) >= _MAKES:
                self._settled.clear()
            self._settled.add(make)

    def pass_on(self, make: bytes) -> None:
        """Give every line of this make, but no longer its bytes: what it tells is known, and when it stands counts."""
        if len(make) <= _LONGEST_MAKE and len(self._passed) < _MAKES:
            self._passed.add(make)

    def feed(self, piece: bytes) -> Iterator[Suspect]:
        """Take the next piece."""
        for start in range(0, len(piece), _BLOCK):
            self._rest += piece[start : start + _BLOCK]
            end = self._rest.rfind(b"\n")
            if end >= 0:
                whole, self._rest = self._rest[:end], self._rest[end + 1 :]
                lines = _plain(whole).split(b"\n")
                yield from self._sift(lines)
                self._count += len(lines)
            if len(self._rest) >= _BLOCK:
                # A line without an end is looked at in pieces that overlap, so that no text is cut in two.
                yield from self._sift([_plain(self._rest)])
                self._rest = self._rest[-_OVERLAP:]

    def close(self) -> Iterator[Suspect]:
        """Take the end of the log: a last line may have no line feed."""
        if self._rest:
            rest, self._rest = self._rest, b""
            yield from self._sift([_plain(rest)])
            self._count += 1

    def _sift(self, lines: list[bytes]) -> Iterator[Suspect]:
        self.last = next((line for line in reversed(lines) if line.strip()), self.last)[-LONGEST:]
        makes = b"\n".join(lines).translate(None, _DIGITS).split(b"\n")
        unsettled = set(makes) - self._settled
        fresh = list(unsettled - self._passed)
        suspicious = self._suspicious(fresh) if fresh else {}
        for order, make in enumerate(fresh):
            if order not in suspicious:
                self.settle(make)
        if not suspicious and len(unsettled) == len(fresh):
            return
        anchors = {fresh[order]: found for order, found in suspicious.items()}
        for place, make in enumerate(makes):
            if make in self._passed:
                yield Suspect(self._count + place + 1, b"", make, ())
            elif make in anchors and make not in self._settled:
                for raw in _windows(lines[place], anchors[make]):
                    if present := _present(raw, anchors[make]):
                        yield Suspect(self._count + place + 1, raw, make, present)

    def _suspicious(self, makes: list[bytes]) -> dict[int, frozenset[bytes]]:
        """The places of the makes with a telling word, and the anchors that may stand there."""
        split = [make.split() for make in makes]
        words = set().union(*split)
        self._learn(words)
        telling = words & self._telling.keys()
        if not telling:
            return {}
        found: dict[int, frozenset[bytes]] = {}
        for order, own in enumerate(split):
            if not telling.isdisjoint(own):
                found[order] = frozenset().union(*(self._telling[word] for word in telling.intersection(own)))
        return found

    def _learn(self, words: set[bytes]) -> None:
        """Tell the words in which an anchor may stand from the others."""
        if len(self._dull) + len(self._telling) > _WORDS:
            self._dull.clear()
            self._telling.clear()
        new = list(words - self._dull - self._telling.keys())
        if not new:
            return
        blob = b" " + b"  ".join(new) + b" "
        starts: list[int] = []
        telling: dict[bytes, frozenset[bytes]] = {}
        for text, anchors in self._keys.items():
            hit = blob.find(text)
            while hit >= 0:
                starts = starts or [0, *accumulate(len(word) + 2 for word in new)]
                order = bisect_right(starts, hit) - 1
                telling[new[order]] = telling.get(new[order], frozenset()) | anchors
                hit = blob.find(text, starts[order + 1])
        self._telling |= telling
        self._dull |= {word for word in new if word not in telling}


def _plain(block: bytes) -> bytes:
    """Lines without colours, and without the noughts and marks that other encodings add to plain letters."""
    if b"\0" in block:
        block = block.replace(b"\0", b"")
    if block.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        block = block.lstrip(_MARKS)
    return ANSI.sub(b"", block) if b"\x1b" in block else block


def _present(raw: bytes, anchors: frozenset[bytes]) -> list[str]:
    # Docker's json-file driver writes quotes in its own way; what it holds is looked at later.
    wrapped = raw.startswith(b'{"log":')
    return [anchor.decode() for anchor in anchors if wrapped or anchor in raw]


def _windows(line: bytes, anchors: frozenset[bytes]) -> Iterator[bytes]:
    """A line as it is, or of an endless one the surroundings of the first of each anchor."""
    if len(line) <= LONGEST:
        yield line
        return
    hits = sorted(line.find(anchor) for anchor in anchors)
    end = -1
    for hit in hits:
        if hit > end:
            start = max(0, hit - LONGEST // 4)
            end = start + LONGEST
            yield line[start:end]
