"""Results as plain data: what ``--json`` prints, and what the other forms are made from (DESIGN §5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bisector.errors import BisectorError
from bisector.model import (
    Build,
    Cost,
    Found,
    FoundBetween,
    Gate,
    Inconclusive,
    NonMonotone,
    NoRegression,
    NotReproduced,
    Observation,
    Outcome,
    Run,
)
from bisector.report.grid import Grid, GridCell
from bisector.report.night import page
from bisector.results import (
    ArchNight,
    Audit,
    Check,
    Checkup,
    Diagnosis,
    Difference,
    Finding,
    HandOff,
    Harvest,
    Inspection,
    News,
    Night,
    PackageChange,
    Plan,
    Question,
    Result,
    Rows,
    Seen,
    StreamNight,
    Timeline,
    TimelineEntry,
    carried_instead,
)
from bisector.search import Direction

SCHEMA_VERSION = 1

Document = dict[str, Any]

_OBEYED = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters beyond those JSON itself escapes, and marks that turn the direction of writing."""


def encode(document: Mapping[str, Any]) -> str:
    """One JSON object, one line; what a terminal might obey is spelled out, as JSON allows it to be."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(document).decode())


def error(failure: BisectorError) -> Document:
    """The one shape of an error."""
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": False,
        "error": failure.message,
        "hint": failure.hint,
        "exit_code": failure.exit_code,
    }


def document(result: Result) -> Document:  # noqa: C901 - a line for each kind of answer
    """The JSON object of a result."""
    match result:
        case Finding():
            return head("find-regression") | _finding(result)
        case Night():
            return night(result)
        case Plan():
            return head("find-regression") | _plan(result)
        case Check():
            return head("check") | _check(result)
        case Inspection():
            return head("inspect") | _inspection(result)
        case Difference():
            return head("diff") | _difference(result)
        case Timeline():
            return head("builds") | _timeline(result)
        case Checkup():
            return head("doctor") | _checkup(result)
        case Harvest():
            return head("harvest") | _harvest(result)
        case Rows():
            return head("history") | _rows(result)
        case Diagnosis():
            return head("diagnose") | {"causes": msgspec.to_builtins(result.causes), "lines": result.lines}
        case Audit():
            return head("audit") | {"flags": msgspec.to_builtins(result.flags), "elsewhere": list(result.elsewhere)}


def night(found: Night, *, boots: Rows | None = None, benchmarks: Rows | None = None) -> Document:
    """A night with everything its other forms are made from; the first lines are theirs, word for word."""
    report = page(found, boots=boots, benchmarks=benchmarks)
    return head("nightly") | {
        "at": _time(found.at),
        "headlines": list(report.headlines),
        "streams": [_stream(*pair) for pair in zip(found.streams, report.grids, strict=True)],
        "news": [_news(news) for news in found.news],
        "stages": msgspec.to_builtins(found.stages),
        "not_measured": list(found.not_measured),
        "boots": _rows(boots)["rows"] if boots else [],
        "benchmarks": _rows(benchmarks)["rows"] if benchmarks else [],
        "cost": _cost(found.cost),
    }


def outcome_name(outcome: Outcome) -> str:
    """The outcome as the contract spells it."""
    match outcome:
        case Found():
            return "found"
        case FoundBetween():
            return "found-between"
        case NonMonotone():
            return "non-monotone"
        case NotReproduced():
            return "not-reproduced"
        case Inconclusive():
            return "inconclusive"
        case NoRegression():
            return "no-regression"


def outcome_word(result: Result) -> str | None:
    """The answer in a word, for the journal; ``None`` where there is none."""
    return outcome_name(result.outcome) if isinstance(result, Finding) else None


def head(command: str) -> Document:
    """What every answer begins with."""
    return {"schema_version": SCHEMA_VERSION, "command": command, "ok": True}


def _time(moment: datetime | None) -> str | None:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else None


def _build(build: Build, observation: Observation | None = None, *, commit: str | None = None) -> Document:
    found = observation.provenance.commit if observation else commit
    return {
        "id": build.id,
        "spec": build.spec,
        "published_at": _time(build.published_at),
        "commit": build.commit or found,
        "digest": build.digest,
        "platform": build.platform,
        "pin": build.pin,
        "marks": list(build.marks),
    }


def _seen(seen: Seen | None) -> Document | None:
    return _build(seen.build, seen.observation) if seen else None


def _cost(cost: Cost) -> Document:
    return msgspec.to_builtins(cost)  # type: ignore[no-any-return]


def _gate(gate: Gate | None) -> Document | None:
    return msgspec.to_builtins(gate) if gate else None


def _kernels(observation: Observation | None) -> Document:
    if observation is None:
        return {}
    return {arch: [kernel.op for kernel in kernels] for arch, kernels in observation.kernels.items()}


def _question(question: Question) -> Document:
    return {
        "arch": question.device.name,
        "served_by": question.served_by.name,
        "note": question.note,
        "require": list(question.require),
    }


def _packages(changes: tuple[PackageChange, ...]) -> list[Document]:
    return [msgspec.to_builtins(change) for change in changes]


def _entry(entry: TimelineEntry) -> Document:
    commit = entry.summary.commit if entry.summary else None
    return _build(entry.build, entry.observation, commit=commit) | {
        "verdict": entry.verdict.answer if entry.verdict else None,
        "reason": entry.verdict.reason if entry.verdict else None,
    }


def _outcome_details(outcome: Outcome) -> Document:
    match outcome:
        case FoundBetween(untestable=untestable):
            return {"untestable": list(untestable)}
        case NonMonotone(seen=seen):
            return {"seen": [{"id": name, "verdict": answer} for name, answer in seen]}
        case NotReproduced(ends=ends):
            return {
                "ends": [
                    {"id": name, "expected": expected, "verdict": verdict.answer, "reason": verdict.reason}
                    for name, expected, verdict in ends
                ]
            }
        case Inconclusive(reason=reason, before=before, after=after):
            return {"reason": reason, "narrowed_to": [before, after]}
        case NoRegression() | Found():
            return {}


def _finding(finding: Finding) -> Document:
    before, after = _seen(finding.before), _seen(finding.after)
    is_loss = finding.direction is Direction.LOSS
    return (
        _question(finding.question)
        | {
            "outcome": outcome_name(finding.outcome),
            "source": finding.source,
            "platform": finding.platform,
            "by": finding.by,
            "strategy": finding.strategy,
            "direction": finding.direction,
            "last_good": before if is_loss else None,
            "first_bad": after if is_loss else None,
            "last_bad": None if is_loss else before,
            "first_good": None if is_loss else after,
            "untestable": [],
            "lost": list(finding.changed_ops) if is_loss else [],
            "gained": [] if is_loss else list(finding.changed_ops),
            "losses": [msgspec.to_builtins(loss) for loss in finding.losses],
            "changes": {"packages": _packages(finding.packages)},
            "gate": finding.gate,
            "newest_good": _build(finding.newest_good) if finding.newest_good else None,
            "timeline": [_entry(entry) for entry in finding.timeline],
            "commits": _hand_off(finding.hand_off),
            "confirmation": None,
            "notes": list(finding.notes),
            "cost": _cost(finding.cost),
            "finished_at": _time(finding.finished_at),
            "reproduce": finding.reproduce,
            "run": None,
        }
        | _outcome_details(finding.outcome)
    )


def _hand_off(hand_off: HandOff | None) -> Document | None:
    if hand_off is None:
        return None
    culprit, parent = hand_off.culprit, hand_off.parent
    return {
        "outcome": hand_off.outcome,
        "reason": hand_off.reason,
        "culprit": culprit.sha if culprit else None,
        "parent": parent.sha if parent else None,
        "title": culprit.title if culprit else None,
        "pull_request": culprit.pull_request if culprit else None,
        "committed_at": _time(culprit.committed_at) if culprit else None,
        "suspects": [{"sha": commit.sha, "title": commit.title} for commit in hand_off.suspects],
        "pin": msgspec.to_builtins(hand_off.pin) if hand_off.pin else None,
        "commits": hand_off.commits,
        "tested": hand_off.tested,
    }


def _plan(plan: Plan) -> Document:
    return _question(plan.question) | {
        "plan": {
            "source": plan.source,
            "strategy": plan.strategy,
            "depth": plan.depth,
            "builds": [build.id for build in plan.builds],
            "at_most": plan.at_most,
            "from_history": plan.from_history,
            "first": list(plan.first),
        },
        "reproduce": plan.reproduce,
    }


def _check(check: Check) -> Document:
    return _question(check.question) | {
        "builds": [
            _build(checked.build, checked.observation)
            | {
                "verdict": checked.verdict.answer,
                "reason": checked.verdict.reason,
                "kernels": _kernels(checked.observation),
                "gate": checked.gate,
            }
            for checked in check.builds
        ],
        "cost": _cost(check.cost),
    }


def _inspection(inspection: Inspection) -> Document:
    observation = inspection.seen.observation
    return {
        "build": _seen(inspection.seen),
        "deep_gemm": msgspec.to_builtins(observation.deep_gemm),
        "kernels": _kernels(observation),
        "evidence_of": msgspec.to_builtins(observation.kernels),
        "gate": _gate(observation.gate),
        "packages": {package.name: package.version for package in observation.packages},
        "version": observation.provenance.version,
        "local_build": observation.provenance.local_build,
        "commit": _commit(inspection.seen),
        "libraries": msgspec.to_builtins(observation.libraries or ()),
        "evidence": observation.evidence,
        "from_history": inspection.seen.from_history,
        "cost": _cost(inspection.cost),
    }


def _commit(seen: Seen) -> Document:
    """What the name promises, what is inside, and whether they agree."""
    promised, carried = seen.build.commit, seen.observation.provenance.commit
    agree = carried_instead(seen.build, seen.observation) is None if promised and carried else None
    return {"tag": promised, "image": carried, "match": agree}


def _difference(difference: Difference) -> Document:
    return {
        "before": _seen(difference.before),
        "after": _seen(difference.after),
        "kernels": {change.arch: {"lost": change.lost, "gained": change.gained} for change in difference.archs},
        "packages": _packages(difference.packages),
        "gate": {"before": _gate(difference.gate[0]), "after": _gate(difference.gate[1])},
        "commits": None,
        "cost": _cost(difference.cost),
    }


def _timeline(timeline: Timeline) -> Document:
    return {
        "source": timeline.source,
        "builds": [
            _entry(entry) | {"kernels": {arch: verdict.answer for arch, verdict in entry.kernels.items()}}
            for entry in timeline.entries
        ],
        "cost": _cost(timeline.cost),
    }


def _harvest(harvest: Harvest) -> Document:
    return {
        "sources": msgspec.to_builtins(harvest.sources),
        "cost": _cost(harvest.cost),
        "finished_at": _time(harvest.finished_at),
    }


def _rows(rows: Rows) -> Document:
    return {"rows": [dict(zip(rows.columns, row, strict=True)) for row in rows.rows], "more": rows.more}


def run(found: Run) -> Document:
    """A run, step by step."""
    return head("history") | {"run": msgspec.to_builtins(found)}


def _checkup(checkup: Checkup) -> Document:
    return {"health": msgspec.to_builtins(checkup.health), "finished_at": _time(checkup.finished_at)}


def _news(news: News) -> Document:
    return {
        "kind": news.kind,
        "key": news.key,
        "source": news.source,
        "arch": news.arch,
        "sentence": news.sentence,
        "finding": _finding(news.finding) if news.finding else None,
    }


def _stream(stream: StreamNight, drawn: Grid) -> Document:
    return {
        "source": stream.source,
        "platform": stream.platform,
        "newest_at": _time(stream.newest_at),
        "archs": [_arch(stands) for stands in stream.archs],
        "builds": [
            _entry(entry) | {"kernels": dict(zip(drawn.archs, map(_cell, row.cells), strict=True))}
            for entry, row in zip(stream.entries, drawn.rows, strict=True)
        ],
        "changes": msgspec.to_builtins(drawn.changes),
        "harvest": msgspec.to_builtins(stream.harvest),
    }


def _arch(stands: ArchNight) -> Document:
    return {
        "arch": stands.arch,
        "verdict": stands.verdict.answer,
        "reason": stands.verdict.reason,
        "newest": _build(stands.newest) if stands.newest else None,
        "pin": _build(stands.pin) if stands.pin else None,
        "losses": msgspec.to_builtins(stands.losses),
    }


def _cell(cell: GridCell) -> Document:
    return {"says": cell.kind, "operations": cell.operations, "reason": cell.reason}
