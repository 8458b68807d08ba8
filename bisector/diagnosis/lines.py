"""From the bytes of a line to what the server said: without colours, and without what carried it here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

LONGEST = 8192
"""Bytes of a line that are looked at around whatever makes it suspicious. vLLM's own longest lines have 4,000."""

ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, cursor movements and window titles (ECMA-48, and the OSC of xterm)."""

# Each is tried again after every other, since carriers wrap one another.
_CARRIERS = (
    # docker compose and docker stack: "vllm-1  | ", "server.1.k2x@node    | "
    re.compile(r"[\w.@-]{1,80}\s*\| ?"),
    # containerd and CRI-O, as Kubernetes keeps them: "2026-11-29T11:29:58.793139768Z stdout F "
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?(?:\s+std(?:out|err) [FP])?\s"),
    # kubectl logs --prefix and stern: "[pod/vllm-0/server] "
    re.compile(r"\[pod/[^\]\s]{1,200}\] ?"),
    # journald and syslog: "Nov 29 11:29:58 host vllm[123]: "
    re.compile(r"[A-Z][a-z]{2}\s+\d{1,2} \d\d:\d\d:\d\d \S{1,100} [\w./@()-]{1,100}(?:\[\d+\])?: ?"),
    # vLLM and torch: "(EngineCore pid=26) ", "[rank0]: ", "ERROR 11-29 11:31:32 [core.py:1510] "
    re.compile(r"\((?:\w+ )+pid=\d+(?:, ip=[^)]{1,60})?\) ?"),
    re.compile(r"\[rank\d+\]: ?"),
    re.compile(
        r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]\s]{1,120}\]|[\w./]+:\d+\]) ?"
    ),
)


def texts(raw: bytes) -> Iterator[str]:
    """What a line says, in parts: a progress bar writes its states behind one another, parted by returns."""
    for part in raw.split(b"\r"):
        if part and (text := _unwrapped(part.decode("utf-8", "replace"))).strip():
            yield text


def without_carriers(text: str) -> str:
    """A line without time stamps, process names and whatever else stands before what was said.

    Leading blanks of what was said stay: they tell the inside of a traceback from its end.
    """
    place = 0
    found = True
    while found:
        found = False
        for carrier in _CARRIERS:
            if match := carrier.match(text, place):
                place = match.end()
                found = True
    return text[place:]


def _unwrapped(text: str) -> str:
    """The line inside a record of Docker's json-file driver: ``{"log":"…","stream":"stderr","time":"…"}``."""
    if not text.startswith('{"log":"'):
        return text
    try:
        record = json.loads(text)
    except ValueError:
        return text
    return str(record["log"]).rstrip("\n")
