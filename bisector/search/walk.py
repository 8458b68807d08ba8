"""A range of the stream in the order a search walks it, with what is known of each build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bisector.model import Answer, Found, FoundBetween


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A range, position 0 being the end the search starts from.

    What is looked for is the change nearest to position 0 from ``near`` to ``far``. Walking back in time for a loss,
    ``near`` is bad and ``far`` is good.

    Attributes:
        builds: Build ids by position; at least one.
        answers: Good, bad, untestable, or ``None`` where a build has to be tested.
        near: The answer on the near side of the change.
        far: The answer on its far side.
        backwards: Whether positions lead to older builds.
        closed: Whether both ends were given.
        ordinals: Numbers by position that stay the same when the range shifts.
        costs: What a test costs by position, in any unit, or ``None`` when all cost the same.
    """

    builds: tuple[str, ...]
    answers: tuple[Answer | None, ...]
    near: Answer
    far: Answer
    backwards: bool
    closed: bool
    ordinals: tuple[int, ...]
    costs: tuple[float, ...] | None = None

    def bracket(self) -> tuple[int, int] | None:
        """The near and the far side of the change nearest to position 0; between them nothing good or bad is known."""
        last_near = None
        for position, answer in enumerate(self.answers):
            if answer is self.near:
                last_near = position
            elif answer is self.far and last_near is not None:
                return last_near, position
        return None

    def first(self) -> int | None:
        """The first position that is not untestable: the end in effect, which may still have to be tested."""
        return next((at for at, answer in enumerate(self.answers) if answer is not Answer.UNTESTABLE), None)

    def untested(self, positions: Iterable[int]) -> list[int]:
        """Those of the positions that have to be tested."""
        return [at for at in positions if self.answers[at] is None]

    def tested(self) -> list[int]:
        """The positions known to be good or bad."""
        return [at for at, answer in enumerate(self.answers) if answer in {self.near, self.far}]

    def chronological(self, near: int, far: int) -> tuple[str, str]:
        """The builds at the two positions, the older first."""
        older, newer = (far, near) if self.backwards else (near, far)
        return self.builds[older], self.builds[newer]

    def name_change(self, near: int, far: int) -> Found | FoundBetween:
        """The outcome for a change whose inside is settled: every position between the two is untestable."""
        before, after = self.chronological(near, far)
        inside = self.builds[near + 1 : far]
        if not inside:
            return Found(before=before, after=after)
        return FoundBetween(before=before, after=after, untestable=inside[::-1] if self.backwards else inside)
