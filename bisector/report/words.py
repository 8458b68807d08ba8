"""The words and marks that every form for people shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bisector.model import Answer, Build, Cost, Gate, Loss, Observation, Verdict
from bisector.results import GateFinding, PackageChange, Question

MARKS = {
    Answer.GOOD: ("●", "green"),
    Answer.BAD: ("○", "red"),
    Answer.UNTESTABLE: ("?", "yellow"),
    Answer.INFRA: ("!", "yellow"),
    Answer.AMBIGUOUS: ("~", "yellow"),
}
"""A mark says its answer by shape; colour only repeats it."""

_LONGEST = 200
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_WIDTH = 77


def safe(text: object) -> str:
    """Text from outside, without control characters and not endless."""
    clean = "".join(character if character.isprintable() else "�" for character in str(text))
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def short(name: str) -> str:
    """A build's name for reading: whole commits are cut to nine digits. Not for lines to paste."""
    return _COMMIT.sub(lambda found: found[0][:9], safe(name))


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


def mark(verdict: Verdict | None) -> Text:
    """The mark of a verdict; a middle dot where nobody looked."""
    if verdict is None:
        return Text("·", style="dim")
    return Text(*MARKS[verdict.answer])


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


def section(title: str, body: RenderableType) -> Group:
    """A heading and its indented body, after a blank line."""
    return Group(Text(), Text(title, style="bold"), Padding(body, (0, 0, 0, 2)))


def names(items: Iterable[str]) -> Text:
    """Names in running text that breaks between them."""
    return Text(", ".join(safe(item) for item in items))


def pairs(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Labels and values in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, value)
    return table


def package_rows(changes: Iterable[PackageChange]) -> Table:
    """Packages that differ."""
    return pairs(
        (safe(change.name), Text(f"{_version(change.before)} → {_version(change.after)}")) for change in changes
    )


def _version(version: str | None) -> str:
    return safe(version) if version else "(none)"


class Paste(Text):
    """Text to copy: printed from the first column and never wrapped."""


def paste(title: str, line: str) -> Iterator[RenderableType]:
    """A heading and a line to copy, after a blank line."""
    yield Text()
    yield Text(title, style="bold")
    yield Paste(line)


def command_line(command: str) -> str:
    """A command to copy, continued on further lines where it is longer than a terminal is wide."""
    lines = [""]
    for word in command.replace(" --", "\0--").split("\0"):
        if len(lines[-1]) + len(word) > _WIDTH:
            lines[-1] += " \\"
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def pin_line(build: Build) -> str:
    """The line that uses exactly this build, broken where requirements files may be, to fit 80 columns."""
    return (build.pin or build.spec).replace(" --hash=", " \\\n  --hash=")
