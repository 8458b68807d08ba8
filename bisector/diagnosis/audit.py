"""Which settings of a launch command are only workarounds, and when each may go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bisector.diagnosis.launch import Launch, Setting
from bisector.results import Audit, Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class Workaround:
    """A setting that people use to get a server up.

    Attributes:
        name: What the whole name of a flag or variable must match.
        value: What its whole value must match, if it matters.
        below: The value must be a number less than this, if it matters.
        why: Why people set it.
        remove_when: When it may go.
        cost: What it costs while it stays.
    """

    name: re.Pattern[str]
    value: re.Pattern[str] | None = None
    below: float | None = None
    why: str
    remove_when: str
    cost: str

    @property
    def judges_value(self) -> bool:
        """Whether it depends on the value."""
        return self.value is not None or self.below is not None

    def fits(self, setting: Setting) -> bool:
        """Whether a setting is this workaround."""
        if not self.name.fullmatch(setting.name):
            return False
        if self.value is not None and not self.value.fullmatch(setting.value or ""):
            return False
        return self.below is None or _less(setting.value, self.below)


def audit(launch: Launch, workarounds: Iterable[Workaround]) -> Audit:
    """The workarounds in a launch command, in the order in which they stand. The first that fits a setting speaks."""
    known = list(workarounds)
    flags = []
    for setting in launch.settings:
        workaround = next((each for each in known if each.fits(setting)), None)
        if workaround:
            flags.append(
                Flag(
                    flag=_spelled(setting, workaround),
                    kind=setting.kind,
                    why=workaround.why,
                    remove_when=workaround.remove_when,
                    cost=workaround.cost,
                    line=setting.line,
                )
            )
    return Audit(flags=tuple(flags), elsewhere=launch.elsewhere)


def _less(value: str | None, limit: float) -> bool:
    try:
        return value is not None and float(value) < limit
    except ValueError:
        return False


# Flags that take a value always; of the others, the next word may be anything.
_VALUED = re.compile(
    r"--(?:attention-backend|moe-backend|block-size|dtype|kv-cache-memory-bytes|max-\S+|cud\S+|cpu\S+)"
)


def _spelled(setting: Setting, workaround: Workaround) -> str:
    if setting.value is None:
        return setting.name
    if setting.kind == "environment" or setting.joined:
        return f"{setting.name}={setting.value}"
    if workaround.judges_value or _VALUED.fullmatch(setting.name):
        return f"{setting.name} {setting.value}"
    return setting.name
