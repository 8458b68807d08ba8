"""What a proof on the hardware is made of: boots, rungs of the context ladder, passes of a benchmark, comparisons.

Frozen, without behaviour beyond their own fields. A boot says what happened; what that means for a build is a verdict.
"""

from bisector.trials.boots import (
    MACHINE,
    Boot,
    BootOutcome,
    Chosen,
    LogFacts,
    LongRequest,
    Pass,
    Phase,
    Reached,
)
from bisector.trials.proofs import (
    Agreement,
    Comparison,
    Confirmation,
    Measure,
    Omission,
    Omissions,
    Rung,
    Standing,
    Trial,
)

__all__ = [
    "MACHINE",
    "Agreement",
    "Boot",
    "BootOutcome",
    "Chosen",
    "Comparison",
    "Confirmation",
    "LogFacts",
    "LongRequest",
    "Measure",
    "Omission",
    "Omissions",
    "Pass",
    "Phase",
    "Reached",
    "Rung",
    "Standing",
    "Trial",
]
