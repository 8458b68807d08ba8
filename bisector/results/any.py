"""Every answer there is."""

from __future__ import annotations

from typing import TypeAlias

from bisector.results.inspections import (
    Check,
    Difference,
    Inspection,
)
from bisector.results.logs import Audit, Diagnosis
from bisector.results.nights import Night
from bisector.results.searches import Finding, Plan
from bisector.results.streams import (
    Checkup,
    Harvest,
    Rows,
    Timeline,
)

Result: TypeAlias = (
    Audit | Check | Checkup | Diagnosis | Difference | Finding | Harvest | Inspection | Night | Plan | Rows | Timeline
)
"""What a command answers with; each knows its exit code."""
