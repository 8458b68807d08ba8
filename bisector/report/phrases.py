"""The phrases that every form for people shares: plain text, from the standard library alone."""

from __future__ import annotations

import re
from datetime import datetime

from bisector.model import Answer, Build, Cost, Gate, Loss, Observation
from bisector.results import GateFinding, Question

MARKS = {
    Answer.GOOD: ("●", "green"),
    Answer.BAD: ("○", "red"),
    Answer.UNTESTABLE: ("?", "yellow"),
    Answer.INFRA: ("!", "yellow"),
    Answer.AMBIGUOUS: ("~", "yellow"),
}
"""A mark says its answer by shape; colour only repeats it."""

_LONGEST = 200
_LONGEST_SENTENCE = 800
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_WIDTH = 77


def clean(text: object) -> str:
    """Text from outside, whole, without control characters, line ends or marks that turn the direction of writing."""
    return "".join(character if character.isprintable() else "�" for character in str(text))


def safe(text: object) -> str:
    """The same, not endless: for reading, not for pasting."""
    shown = clean(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def short(name: str) -> str:
    """A build's name for reading: whole commits are cut to nine digits. Not for lines to paste."""
    return _COMMIT.sub(lambda found: found[0][:9], safe(name))


def sentence(text: object) -> str:
    """A sentence from outside: whole, unless it is a book; commits are cut to nine digits."""
    whole = _COMMIT.sub(lambda found: found[0][:9], clean(text))
    return whole if len(whole) <= _LONGEST_SENTENCE else whole[: _LONGEST_SENTENCE - 1] + "…"


def day(moment: datetime | None) -> str:
    """``2026-08-10``, or nothing."""
    return f"{moment:%Y-%m-%d}" if moment else ""


def count(number: int, noun: str) -> str:
    """``1 build``, ``2 builds``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: float) -> str:
    """Bytes in decimal units, as networks and registries count them."""
    for unit in ("B", "kB", "MB"):
        if number < 1000:  # noqa: PLR2004 - decimal units
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def asked(question: Question) -> str:
    """What the question asks for: ``sm120 kernels``, ``sm120 bf16_gemm``."""
    arch = question.served_by.name
    return f"{arch} {', '.join(question.require)}" if question.require else f"{arch} kernels"


def build_line(build: Build, observation: Observation | None = None) -> str:
    """A build by name, date and commit, as far as they are known."""
    commit = build.commit or (observation.provenance.commit if observation else None)
    named = short(build.id)
    shown = f"commit {safe(commit)[:9]}" if commit and commit[:9] not in named else ""
    parts = [named, day(build.published_at), shown, *build.marks]
    return "  ".join(part for part in parts if part)


def loss_line(loss: Loss) -> str:
    """One loss in a sentence."""
    end = f"back in {short(loss.regained_at)}" if loss.regained_at else f"still missing in {short(loss.last_bad)}"
    return f"lost in {short(loss.lost_at)} (last good {short(loss.last_good)}), {end}"


def gate_sentence(gate: GateFinding, question: Question, build: Build) -> str | None:
    """What the gate and the kernels together mean, for an operator."""
    name, device, arch = short(build.id), question.device.name, question.served_by.name
    match gate:
        case GateFinding.CRASH:
            return (
                f"vLLM {name} sends {device} to DeepGEMM, and its {arch} kernels are missing: models that use them "
                f"fail at load. VLLM_USE_DEEP_GEMM=0 avoids it, at a cost in speed."
            )
        case GateFinding.FALLBACK:
            return f"vLLM {name} does not send {device} to DeepGEMM; it runs other, slower kernels."
        case GateFinding.UNUSED:
            return f"vLLM {name} has {arch} kernels, but its gate does not send {device} to DeepGEMM."
        case GateFinding.SERVED:
            return f"vLLM {name} sends {device} to DeepGEMM, which has {arch} kernels."
        case GateFinding.UNKNOWN:
            return None


def gate_words(gate: Gate | None) -> str:
    """Which devices the gate admits."""
    if gate is None:
        return "none found"
    if not gate.readable:
        return "there, in a form this version of bisector does not understand"
    families = [f"{family[:-1]}x" for family in gate.families]
    return ", ".join([*gate.capabilities, *families]) or "admits nothing"


def cost_line(cost: Cost) -> str:
    """What an answer cost."""
    parts = [f"{count(cost.probes, 'build')} read, {cost.from_history} from history"]
    parts.append(f"{size(cost.bytes)} in {count(cost.requests, 'request')}")
    return f"{', '.join(parts)}, {cost.seconds:.1f} s"


def command_line(command: str) -> str:
    """A command to copy, continued on further lines where it is longer than a terminal is wide."""
    lines = [""]
    for word in clean(command).replace(" --", "\0--").split("\0"):
        if len(lines[-1]) + len(word) > _WIDTH:
            lines[-1] += " \\"
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def pin_line(build: Build) -> str:
    """The line that uses exactly this build, broken where requirements files may be, to fit 80 columns."""
    return clean(build.pin or build.spec).replace(" --hash=", " \\\n  --hash=")
