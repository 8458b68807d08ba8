"""The answer of every command as the one object that ``--json`` prints."""

from __future__ import annotations

import msgspec

from bisector.report.plain.envelope import Document, head, timestamp
from bisector.report.plain.history import harvest_body, rows_body
from bisector.report.plain.inspection import check_body, difference_body, inspection_body, timeline_body
from bisector.report.plain.night import night_document
from bisector.report.plain.regression import finding_body, plan_body
from bisector.results import (
    Audit,
    Check,
    Checkup,
    Diagnosis,
    Difference,
    Finding,
    Harvest,
    Inspection,
    Night,
    Plan,
    Result,
    Rows,
    Timeline,
)


def answer_document(result: Result) -> Document:  # noqa: C901 - a line for each kind of answer
    """The JSON object of a result."""
    match result:
        case Finding():
            return head("find-regression") | finding_body(result)
        case Night():
            return night_document(result)
        case Plan():
            return head("find-regression") | plan_body(result)
        case Check():
            return head("check") | check_body(result)
        case Inspection():
            return head("inspect") | inspection_body(result)
        case Difference():
            return head("diff") | difference_body(result)
        case Timeline():
            return head("builds") | timeline_body(result)
        case Checkup():
            return head("doctor") | _checkup_body(result)
        case Harvest():
            return head("harvest") | harvest_body(result)
        case Rows():
            return head("history") | rows_body(result)
        case Diagnosis():
            return head("diagnose") | {"causes": msgspec.to_builtins(result.causes), "lines": result.lines}
        case Audit():
            return head("audit") | {"flags": msgspec.to_builtins(result.flags), "elsewhere": list(result.elsewhere)}


def _checkup_body(checkup: Checkup) -> Document:
    return {"health": msgspec.to_builtins(checkup.health), "finished_at": timestamp(checkup.finished_at)}
