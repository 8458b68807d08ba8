"""When no signature matches: the lines that tell most, and where the fault most likely lies."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bisector.diagnosis.lines import without_carriers
from bisector.results import UNKNOWN_CAUSE, Cause, Certainty, Layer

TELLING = (
    "Error",
    "ERROR",
    "CRITICAL",
    "FATAL",
    "atal",
    "rror:",
    "xception",
    "Interrupt",
    "Fault",
    "Failure",
    "xited",
    "xit code",
    "panic",
    'File "',
)
"""Texts of which every line holds one that is worth quoting when no signature matches."""

_EXCERPT = 300
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Fault|Exit|NotFound)(?::\s.*|:?)$"
)
_WORTH = re.compile(r"(?:Error|Exception|Interrupt|Failure|Fault|Exit|NotFound)(?::|$)|[Ee]xit|File \"")
_TRACEBACK = re.compile(r"Traceback \(most recent|\s|During handling of|The above exception|\^|$")
_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|Fatal|fatal|[Ee]rror:|panic(?:ked)?)\b")
_EXIT = re.compile(r"\bexited with (?:code|status) [1-9]|\bExited \([1-9]|\bexit (?:code|status):? [1-9]")
_FRAME = re.compile(r'\s*File "[^"]*?(?P<path>(?:vllm|torch|triton|flashinfer|transformers|deep_gemm)/[^"]+)", line')

# Where a path or a message points, the first that fits.
_PLACES = (
    (Layer.DISTRIBUTED, re.compile(r"distributed/|nccl|NCCL|gloo|ray/|ray\.", re.ASCII)),
    (Layer.MEMORY, re.compile(r"[Mm]emory|kv_cache|KV cache")),
    (
        Layer.KERNELS,
        re.compile(r"_custom_ops|kernels?/|quantization/|fused_moe|triton/|flashinfer/|deep_gemm|CUDA|cutlass"),
    ),
    (Layer.MODEL, re.compile(r"model_loader|models/|transformers/|tokenizer|weights?\b|safetensors")),
    (Layer.LAUNCH, re.compile(r"arg_utils|argparse|config/|cli/|validation error")),
)


@dataclass(slots=True)
class Telling:
    """The lines of a log that tell most where no signature does, as far as it has been read."""

    exception: tuple[int, str] | None = None
    error: tuple[int, str] | None = None
    exit: tuple[int, str] | None = None
    frame: str = field(default="")

    def look(self, number: int, raw: str) -> None:
        """Consider a line."""
        if not _WORTH.search(raw) and (self.error or not _ERROR.search(raw)):
            return
        text = without_carriers(raw)
        if frame := _FRAME.match(text):
            self.frame = frame["path"]
        elif _EXCEPTION.match(text):
            self.exception = number, _shortened(text)
        elif _EXIT.search(text):
            self.exit = number, _shortened(text)
        elif self.error is None and _ERROR.search(raw) and not _TRACEBACK.match(text):
            self.error = number, _shortened(text)

    @property
    def lines(self) -> list[tuple[int, str]]:
        """Number and text: the last exception, the first error, the last exit, the most telling first."""
        return [line for line in dict.fromkeys((self.exception, self.error, self.exit)) if line]


def unknown(telling: Telling, symptom: tuple[int, str, str] | None) -> Cause:
    """The answer where no signature matches.

    Args:
        telling: The lines that tell most.
        symptom: Number, text and meaning of a line that only says that something failed.
    """
    lines = telling.lines
    if not lines and symptom is None:
        return _empty()
    meaning = "No signature of bisector matches this log. The lines quoted tell most."
    if symptom:
        lines = [*lines, symptom[:2]]
        meaning = f"{meaning} {symptom[2]}" if telling.lines else symptom[2]
    return Cause(
        id=UNKNOWN_CAUSE,
        layer=_layer(" ".join([lines[0][1], telling.frame])),
        arch=None,
        title="Unknown cause" if telling.lines else "The log shows that it failed, but not why",
        line=lines[0][0],
        excerpt="\n".join(text for _, text in lines),
        meaning=meaning,
        advice="Run again with VLLM_LOGGING_LEVEL=DEBUG and keep the whole log, standard error included; "
        "for a failed collective add NCCL_DEBUG=INFO. Then look the first quoted line up in vLLM's issues.",
        certainty=Certainty.POSSIBLE,
    )


def _empty() -> Cause:
    return Cause(
        id=UNKNOWN_CAUSE,
        layer=Layer.RUNTIME,
        arch=None,
        title="The log is empty",
        line=0,
        excerpt="",
        meaning="Nothing was printed: the process was killed before it could speak, never started, or its output "
        "went elsewhere. Exit code 137 with OOMKilled means the kernel killed it for its memory.",
        advice="docker inspect --format '{{json .State}}' NAME; and keep standard error: docker logs NAME 2>&1.",
        certainty=Certainty.POSSIBLE,
    )


def _layer(text: str) -> Layer:
    return next((layer for layer, place in _PLACES if place.search(text)), Layer.RUNTIME)


def _shortened(text: str) -> str:
    clean = "".join(character if character.isprintable() else " " for character in text).strip()
    return clean if len(clean) <= _EXCERPT else clean[: _EXCERPT - 1] + "…"
