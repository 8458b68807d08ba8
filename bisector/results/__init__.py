"""What each job answers with: one value a command, rendered by the report room in many forms.

Frozen, without behaviour beyond their own fields.
"""

from bisector.results.any import Result
from bisector.results.codes import ExitCode
from bisector.results.inspections import (
    ArchChange,
    Check,
    Checked,
    Difference,
    GateFinding,
    Inspection,
    PackageChange,
    Question,
    Seen,
    carried_instead,
)
from bisector.results.logs import UNKNOWN_CAUSE, Audit, Cause, Certainty, Diagnosis, Flag, Layer
from bisector.results.nights import ArchNight, News, NewsKind, Night, Stage, StreamNight
from bisector.results.searches import Finding, HandOff, HandOffOutcome, PinChange, Plan
from bisector.results.streams import (
    Checkup,
    Filters,
    Harvest,
    HarvestedSource,
    Health,
    HealthState,
    Rows,
    Subject,
    Timeline,
    TimelineEntry,
    Untold,
)

__all__ = [
    "UNKNOWN_CAUSE",
    "ArchChange",
    "ArchNight",
    "Audit",
    "Cause",
    "Certainty",
    "Check",
    "Checked",
    "Checkup",
    "Diagnosis",
    "Difference",
    "ExitCode",
    "Filters",
    "Finding",
    "Flag",
    "GateFinding",
    "HandOff",
    "HandOffOutcome",
    "Harvest",
    "HarvestedSource",
    "Health",
    "HealthState",
    "Inspection",
    "Layer",
    "News",
    "NewsKind",
    "Night",
    "PackageChange",
    "PinChange",
    "Plan",
    "Question",
    "Result",
    "Rows",
    "Seen",
    "Stage",
    "StreamNight",
    "Subject",
    "Timeline",
    "TimelineEntry",
    "Untold",
    "carried_instead",
]
