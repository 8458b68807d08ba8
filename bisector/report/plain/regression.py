"""A search for the build that lost the kernels: its outcome, the way on to the commit, and the plan of it."""

from __future__ import annotations

import msgspec

from bisector.model import Found, FoundBetween, Inconclusive, NonMonotone, NoRegression, NotReproduced, Outcome
from bisector.report.plain.builds import build_fields, entry_fields, packages, question_fields, seen_fields
from bisector.report.plain.envelope import Document, cost_fields, timestamp
from bisector.results import Finding, HandOff, Plan, Result
from bisector.search import Direction


def finding_body(finding: Finding) -> Document:
    """What was found; what is not known yet, or was not asked for, is ``None``."""
    before, after = seen_fields(finding.before), seen_fields(finding.after)
    is_loss = finding.direction is Direction.LOSS
    return (
        question_fields(finding.question)
        | {
            "outcome": _outcome_name(finding.outcome),
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
            "changes": {"packages": packages(finding.packages)},
            "gate": finding.gate,
            "newest_good": build_fields(finding.newest_good) if finding.newest_good else None,
            "timeline": [entry_fields(entry) for entry in finding.timeline],
            "commits": _hand_off(finding.hand_off),
            "confirmation": None,
            "notes": list(finding.notes),
            "cost": cost_fields(finding.cost),
            "finished_at": timestamp(finding.finished_at),
            "reproduce": finding.reproduce,
            "run": None,
        }
        | _outcome_details(finding.outcome)
    )


def plan_body(plan: Plan) -> Document:
    """What would be done."""
    return question_fields(plan.question) | {
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


def outcome_word(result: Result) -> str | None:
    """The answer in a word, for the journal; ``None`` where there is none."""
    return _outcome_name(result.outcome) if isinstance(result, Finding) else None


def _outcome_name(outcome: Outcome) -> str:
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
        "committed_at": timestamp(culprit.committed_at) if culprit else None,
        "suspects": [{"sha": commit.sha, "title": commit.title} for commit in hand_off.suspects],
        "pin": msgspec.to_builtins(hand_off.pin) if hand_off.pin else None,
        "commits": hand_off.commits,
        "tested": hand_off.tested,
    }
