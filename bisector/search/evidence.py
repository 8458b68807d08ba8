"""What the verdicts recorded so far settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from bisector.model import Answer, Verdict

AMBIGUOUS_LIMIT = 3
INFRA_LIMIT = 2


class Evidence:
    """The verdicts that count, by build id: the last one wins, and one of ``infra`` never counts.

    A build that stayed ambiguous three times is taken as untestable. Two failures of the infrastructure in a row, on
    any builds, or two on one build that has no verdict yet, are a reason to stop.
    """

    def __init__(self) -> None:
        self._verdicts: dict[str, Verdict] = {}
        self._ambiguous: Counter[str] = Counter()
        self._infra: Counter[str] = Counter()
        self._streak: list[str] = []

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The last verdict of each build that has one; read-only."""
        return MappingProxyType(self._verdicts)

    def record(self, build: str, verdict: Verdict) -> None:
        """Take a verdict in."""
        if verdict.answer is Answer.INFRA:
            self._streak.append(build)
            self._infra[build] += 1
            return
        self._streak.clear()
        del self._infra[build]
        if verdict.answer is Answer.AMBIGUOUS:
            self._ambiguous[build] += 1
        else:
            del self._ambiguous[build]
        self._verdicts[build] = verdict

    def answer(self, build: str) -> Answer | None:
        """``good``, ``bad`` or ``untestable``; ``None`` while the build has to be tested (again)."""
        verdict = self._verdicts.get(build)
        if verdict is None:
            return None
        if verdict.answer is Answer.AMBIGUOUS:
            return Answer.UNTESTABLE if self._ambiguous[build] >= AMBIGUOUS_LIMIT else None
        return verdict.answer

    def failure(self) -> str | None:
        """Why testing more makes no sense now, or ``None``."""
        if len(self._streak) >= INFRA_LIMIT:
            return f"the infrastructure failed twice in a row, on {self._streak[-2]} and on {self._streak[-1]}"
        for build, failures in self._infra.items():
            if failures >= INFRA_LIMIT and self.answer(build) is None:
                return f"the infrastructure failed twice on {build}"
        return None
