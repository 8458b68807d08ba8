"""What builds contain: one of them, two compared, some against a question, a whole stream."""

from __future__ import annotations

import msgspec

from bisector.report.plain.builds import (
    build_fields,
    entry_fields,
    gate_fields,
    operations,
    packages,
    question_fields,
    seen_fields,
)
from bisector.report.plain.envelope import Document, cost_fields
from bisector.results import Check, Difference, Inspection, Seen, Timeline, carried_instead


def inspection_body(inspection: Inspection) -> Document:
    """Everything that was seen in a build."""
    observation = inspection.seen.observation
    return {
        "build": seen_fields(inspection.seen),
        "deep_gemm": msgspec.to_builtins(observation.deep_gemm),
        "kernels": operations(observation),
        "evidence_of": msgspec.to_builtins(observation.kernels),
        "gate": gate_fields(observation.gate),
        "packages": {package.name: package.version for package in observation.packages},
        "version": observation.provenance.version,
        "local_build": observation.provenance.local_build,
        "commit": _commit(inspection.seen),
        "libraries": msgspec.to_builtins(observation.libraries or ()),
        "evidence": observation.evidence,
        "from_history": inspection.seen.from_history,
        "cost": cost_fields(inspection.cost),
    }


def _commit(seen: Seen) -> Document:
    """What the name promises, what is inside, and whether they agree."""
    promised, carried = seen.build.commit, seen.observation.provenance.commit
    agree = carried_instead(seen.build, seen.observation) is None if promised and carried else None
    return {"tag": promised, "image": carried, "match": agree}


def difference_body(difference: Difference) -> Document:
    """What came and went from one build to the other."""
    return {
        "before": seen_fields(difference.before),
        "after": seen_fields(difference.after),
        "kernels": {change.arch: {"lost": change.lost, "gained": change.gained} for change in difference.archs},
        "packages": packages(difference.packages),
        "gate": {"before": gate_fields(difference.gate[0]), "after": gate_fields(difference.gate[1])},
        "commits": None,
        "cost": cost_fields(difference.cost),
    }


def check_body(check: Check) -> Document:
    """The verdict on each build, and what it rests on."""
    return question_fields(check.question) | {
        "builds": [
            build_fields(checked.build, checked.observation)
            | {
                "verdict": checked.verdict.answer,
                "reason": checked.verdict.reason,
                "kernels": operations(checked.observation),
                "gate": checked.gate,
            }
            for checked in check.builds
        ],
        "cost": cost_fields(check.cost),
    }


def timeline_body(timeline: Timeline) -> Document:
    """A stream, build by build."""
    return {
        "source": timeline.source,
        "builds": [
            entry_fields(entry) | {"kernels": {arch: verdict.answer for arch, verdict in entry.kernels.items()}}
            for entry in timeline.entries
        ],
        "cost": cost_fields(timeline.cost),
    }
