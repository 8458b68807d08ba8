"""What a vLLM server's log says of itself. Pure.

Wording moves between releases, so numbers and nouns are matched, never whole sentences; the shapes are those of
0.17 to 0.32 (https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/core/kv_cache_utils.py and beside it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from bisector.trials import Chosen, LogFacts, Phase

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST: Final = 64 * 1024  # a line is cut there; vLLM's longest, the dump of its configuration, is 4 kB

_KV_TOKENS: Final = re.compile(r"KV cache size: (?P<tokens>[\d,]+) tokens")
_CONCURRENCY: Final = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: (?P<times>[\d.]+)x")
_CONTEXT: Final = re.compile(r"Using max model len (?P<tokens>\d+)")
_ESTIMATE: Final = re.compile(r"estimated maximum model length is (?P<tokens>\d+)")
_ENGINE: Final = re.compile(r"Initializing an? (?:V1 )?LLM engine \(v(?P<version>[^)]+)\) with config:")
_PARALLEL: Final = re.compile(r"tensor_parallel_size=(?P<count>\d+)")
_EAGER: Final = re.compile(r"enforce_eager=(?P<eager>True|False)")
_GRAPHS: Final = re.compile(r"""['"]?cudagraph_mode['"]?[:=] ?<?CUDAGraphMode\.(?P<mode>\w+)""")
_CAPTURED: Final = re.compile(r"Graph capturing finished in")
_SKIPPED: Final = re.compile(r"skipped? memory profiling")
_BACKENDS: Final = (
    re.compile(
        r"Using '?(?:AttentionBackendEnum\.)?(?P<name>[\w-]+)'? (?P<role>[\w ]*?(?:attention|MoE)) backend"
        r"(?: out of potential backends: \[(?P<among>[^\]]*)\])?"
    ),
    re.compile(r"Using (?:AttentionBackendEnum\.)(?P<name>\w+)(?P<role>) backend"),
    re.compile(r"Using (?P<name>\w+)(?P<role>) backend on V1 engine"),
    re.compile(r"Selected (?P<name>\w+Kernel) for (?P<role>\w+)"),
)
_PHASES: Final = (
    (Phase.WEIGHTS, re.compile(r"Loading weights took|Model loading took")),
    (Phase.PROFILED, re.compile(r"Available KV cache memory|KV cache size: [\d,]+ tokens")),
    (Phase.GRAPHS, _CAPTURED),
)


class LogReading:
    """A log being read while it grows."""

    def __init__(self) -> None:
        self._rest = b""
        self._values: dict[str, int | float | bool | str] = {}
        self._backends: dict[str, Chosen] = {}
        self._phases: set[Phase] = set()

    def feed(self, piece: bytes) -> tuple[Phase, ...]:
        """Read on; the phases that these bytes, cut anywhere, are the first to show."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._rest = self._rest[:_LONGEST]
        return tuple(phase for line in lines for phase in self._line(line))

    def facts(self) -> LogFacts:
        """What it says so far."""
        tuple(self._line(self._rest))
        return LogFacts(**self._values, backends=tuple(self._backends.values()))  # type: ignore[arg-type]

    def _line(self, raw: bytes) -> Iterator[Phase]:
        line = _COLOUR.sub("", raw[:_LONGEST].decode(errors="replace"))
        self._read_numbers(line)
        self._read_engine(line)
        self._read_backend(line)
        for phase, pattern in _PHASES:
            if phase not in self._phases and pattern.search(line):
                self._phases.add(phase)
                yield phase

    def _read_numbers(self, line: str) -> None:
        if found := _KV_TOKENS.search(line):
            self._values["kv_tokens"] = int(found["tokens"].replace(",", ""))
        if found := _CONCURRENCY.search(line):
            self._values["concurrency"] = float(found["times"])
        if found := _CONTEXT.search(line):
            self._values["max_context"] = int(found["tokens"])
        if found := _ESTIMATE.search(line):
            self._values["estimated_context"] = int(found["tokens"])
        if _CAPTURED.search(line):
            self._values["captured"] = True
        if _SKIPPED.search(line):
            self._values["skipped_profiling"] = True

    def _read_engine(self, line: str) -> None:
        # The dump of the configuration says what is in force; flags and "non-default args" only what was asked for.
        engine = _ENGINE.search(line)
        if engine is None:
            return
        self._values["version"] = engine["version"]
        if found := _PARALLEL.search(line):
            self._values["tensor_parallel"] = int(found["count"])
        if found := _EAGER.search(line):
            self._values["eager"] = found["eager"] == "True"
        if found := _GRAPHS.search(line):
            self._values["graphs"] = found["mode"]

    def _read_backend(self, line: str) -> None:
        for pattern in _BACKENDS:
            if found := pattern.search(line):
                groups = found.groupdict()
                among = tuple(re.findall(r"[\w-]+", groups.get("among") or ""))
                chosen = Chosen(role=groups["role"].strip() or "attention", name=groups["name"], among=among)
                self._backends.setdefault(chosen.role, chosen)
                return
