"""A proof on the hardware, for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bisector.model import Answer
from bisector.report.plain.envelope import Document, head
from bisector.report.words import mark, pairs, safe, section, short
from bisector.trials import (
    Agreement,
    Boot,
    BootOutcome,
    Comparison,
    Confirmation,
    LogFacts,
    Measure,
    Omissions,
    Pass,
    Standing,
    Trial,
)

_AGREEMENT = {
    Agreement.CONFIRMED: "Confirmed: the good build answers, and the bad one fails as its lost kernels predict.",
    Agreement.BAD_BOOTS: "Not confirmed: the build without the kernels boots and answers here all the same.",
    Agreement.OTHER_CAUSE: "Not confirmed: the bad build fails, but not for want of the kernels.",
    Agreement.GOOD_FAILS: "Not confirmed: the build that has the kernels fails too, for a reason of its own.",
    Agreement.BOTH_FAIL_ALIKE: "Not confirmed: both builds fail for the same reason, which is not the kernels' loss.",
    Agreement.UNTESTED: "Not tested: the machine, not the builds, is the reason.",
}
_STANDING = {
    Standing.BETTER: "faster",
    Standing.WORSE: "slower",
    Standing.TIE: "no difference",
    Standing.AMBIGUOUS: "too noisy to tell",
}
_UNITS = {"tpot_ms": ("TPOT", "ms"), "throughput": ("throughput", "tokens/s"), "ttft_ms": ("TTFT", "ms")}


def confirmation_word(confirmation: Confirmation) -> str:
    """The answer in a word, for the journal."""
    if confirmation.agreement is not None:
        return confirmation.agreement
    if not all(trial.tested for trial in confirmation.trials):
        return Agreement.UNTESTED
    if not all(trial.holds for trial in confirmation.trials):
        return "fails"
    return confirmation.comparison.standing if confirmation.comparison else "holds"


def confirmation_parts(confirmation: Confirmation) -> Iterator[RenderableType]:
    """What a terminal shows."""
    if confirmation.agreement is not None:
        yield Text(_AGREEMENT[confirmation.agreement], style="bold")
    yield Text(f"profile {safe(confirmation.profile)} on {safe(confirmation.host)}, {confirmation.seconds:.0f} s")
    for trial in confirmation.trials:
        yield section(short(trial.build.id), pairs(_trial_rows(trial)))
    if confirmation.comparison:
        yield section(_comparison_title(confirmation.comparison), _measures(confirmation.comparison))


def confirmation_document(confirmation: Confirmation) -> Document:
    """The JSON object of ``confirm``."""
    return head("confirm") | confirmation_body(confirmation)


def confirmation_body(confirmation: Confirmation) -> Document:
    """The same, as a part of another answer."""
    return {
        "outcome": confirmation_word(confirmation),
        "profile": confirmation.profile,
        "host": confirmation.host,
        "agreement": confirmation.agreement,
        "builds": [_trial(trial) for trial in confirmation.trials],
        "comparison": msgspec.to_builtins(confirmation.comparison) | {"standing": confirmation.comparison.standing}
        if confirmation.comparison
        else None,
        "seconds": confirmation.seconds,
    }


def omission_parts(omissions: Omissions) -> Iterator[RenderableType]:
    """What ``audit --try`` shows."""
    whole = omissions.whole
    if not whole.answered:
        yield Text(f"It does not boot as it is, so nothing was left out: {safe(whole.reason)}", style="bold")
        return
    yield Text(f"profile {safe(omissions.profile)} on {safe(omissions.host)}")
    if not omissions.tried:
        yield Text("There is no workaround in it.")
    words = {True: "still needed", False: "no longer needed", None: "could not be tried"}
    for each in omissions.tried:
        rows: list[tuple[str, RenderableType]] = [("why set", Text(_whole(each.flag.why)))]
        if each.needed is False:
            rows.append(("it costs", Text(_whole(each.flag.cost))))
        elif each.boot.reason:
            named = each.boot.causes[0].title if each.boot.causes else each.boot.reason
            rows.append(("without it", Text(_whole(named))))
        yield section(f"{safe(each.flag.flag)}: {words[each.needed]}", pairs(rows))


def omission_document(omissions: Omissions) -> Document:
    """The JSON object of ``audit --try``."""
    return head("audit") | {
        "profile": omissions.profile,
        "host": omissions.host,
        "boots": omissions.whole.answered,
        "flags": [
            msgspec.to_builtins(each.flag)
            | {"needed": each.needed, "causes": msgspec.to_builtins(each.boot.causes), "boot": each.boot.id}
            for each in omissions.tried
        ],
    }


# --- for people ------------------------------------------------------------------------------------------------------


def _trial_rows(trial: Trial) -> Iterator[tuple[str, RenderableType]]:
    last = trial.boots[-1]
    expected = trial.expected
    if expected and expected.answer in {Answer.GOOD, Answer.BAD}:
        yield "kernels", Text.assemble(mark(expected), f" {safe(expected.reason)}")
    yield "answer", Text(_ending(trial, last), style="bold")
    for cause in last.causes:
        yield "cause", Text(safe(cause.title))
        yield "", Text(_whole(cause.meaning), style="dim")
        yield "", Text(_whole(cause.advice), style="dim")
    if len(trial.ladder) > 1:
        yield "ladder", Text(", ".join(f"{rung.context:,} {'●' if rung.boots else '○'}" for rung in trial.ladder))
        for rung in trial.ladder:
            if rung.estimated:
                yield "", Text(f"at {rung.context:,} the log estimates {rung.estimated:,}", style="dim")
    yield "phases", Text("  ".join(f"{each.phase} {each.seconds:.0f} s" for each in last.phases))
    yield from _facts(last.facts)
    if last.heaviest:
        heaviest = last.heaviest
        yield "heaviest", Text(f"{heaviest.prompt_tokens:,} tokens in {heaviest.seconds:.1f} s")
    if trial.passes:
        yield "benchmark", Text(_passes(trial.passes))


def _whole(text: str) -> str:
    """A paragraph that may be long, of words that may not."""
    return " ".join(map(safe, text.split()))


def _ending(trial: Trial, last: Boot) -> str:
    if trial.holds:
        return f"answers at its full context of {trial.goal:,}"
    if last.answered and trial.context:
        longest = f"{trial.context:,} of {trial.goal:,}"
        return f"answers at {longest} tokens at most" if len(trial.ladder) > 1 else f"answers at {longest}"
    if last.outcome is BootOutcome.FAILED and trial.context and len(trial.ladder) > 1:
        return f"answers at {trial.context:,} of {trial.goal:,} tokens at most; then {safe(last.reason)}"
    return f"{last.outcome}: {safe(last.reason)}"


def _facts(facts: LogFacts) -> Iterator[tuple[str, RenderableType]]:
    if facts.version:
        yield "vLLM", Text(safe(facts.version))
    if facts.kv_tokens and facts.concurrency:
        yield "KV cache", Text(f"{facts.kv_tokens:,} tokens, {facts.concurrency:g} requests of full length at once")
    if facts.eager is not None:
        graphs = f"CUDA graphs {facts.graphs}" if facts.graphs else "CUDA graphs not stated"
        captured = ", captured" if facts.captured else ""
        yield "mode", Text(f"{'eager' if facts.eager else 'compiled'}, {safe(graphs)}{captured}")
    for chosen in facts.backends:
        yield "backend", Text(f"{safe(chosen.role)}: {safe(chosen.name)}")
    if facts.skipped_profiling:
        yield "memory", Text("not profiled: nothing is kept free for the activations of long prompts")


def _passes(passes: tuple[Pass, ...]) -> str:
    values = ", ".join(f"{each.tpot_ms:.2f}" for each in passes)
    return f"{len(passes)} warm passes, TPOT {values} ms"


def _comparison_title(comparison: Comparison) -> str:
    return f"{short(comparison.after)} against {short(comparison.before)}: {_STANDING[comparison.standing]}"


def _measures(comparison: Comparison) -> Table:
    table = Table.grid(padding=(0, 2))
    for measure in comparison.measures:
        label, unit = _UNITS[measure.name]
        table.add_row(label, f"{measure.before:.2f} → {measure.after:.2f} {unit}", _change(measure))
    return table


def _change(measure: Measure) -> str:
    if measure.noise == float("inf"):
        return "not measured"
    way = "slower" if measure.change > 0 else "faster"
    return f"{abs(measure.change):.1%} {way}, ± {measure.noise:.1%}: {_STANDING[measure.standing]}"


# --- as data ---------------------------------------------------------------------------------------------------------


def _trial(trial: Trial) -> Document:
    last = trial.boots[-1] if trial.boots else None
    return {
        "id": trial.build.id,
        "spec": trial.build.spec,
        "expected": trial.expected.answer if trial.expected else None,
        "holds": trial.holds,
        "context": trial.context,
        "goal": trial.goal,
        "outcome": last.outcome if last else None,
        "reason": last.reason if last else None,
        "causes": msgspec.to_builtins(last.causes) if last else [],
        "ladder": msgspec.to_builtins(trial.ladder),
        "boots": [_boot(boot) for boot in trial.boots],
    }


def _boot(boot: Boot) -> dict[str, Any]:
    return {
        "id": boot.id,
        "context": boot.context,
        "image": boot.image,
        "outcome": boot.outcome,
        "reason": boot.reason,
        "exit_code": boot.exit_code,
        "seconds": boot.seconds,
        "phases": {each.phase: each.seconds for each in boot.phases},
        "facts": msgspec.to_builtins(boot.facts),
        "heaviest": msgspec.to_builtins(boot.heaviest),
        "passes": [
            {
                "warm_up": made.warm_up,
                "asked": made.asked,
                "completed": made.completed,
                "tpot_ms": made.tpot_ms,
                "ttft_ms": made.ttft_ms,
                "throughput": made.throughput,
            }
            for made in boot.passes
        ],
    }
