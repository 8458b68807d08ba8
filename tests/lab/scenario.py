"""What happens in the lab: which nights there are, and what went wrong in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

from .commits import Commit, at_night, history
from .releases import BEFORE, WITH_SM120

_OCI_NIGHTS = frozenset({date(2026, 7, 23), date(2026, 8, 10)})
_STOPPED_NIGHTS = (date(2026, 4, 20), date(2026, 4, 21), date(2026, 4, 22))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A run of nights around the loss of 2026-07-30 and its repair of 2026-08-12, and what else befalls it.

    Attributes:
        first: The first night.
        last: The last night.
        without_wheels: Full hashes of commits the wheel index has nothing for.
        stale: A night whose image carries the wheel of the night before.
        undated: A night whose tag has no dates.
        repushed: A night whose tag was pushed once more five days later, with the same content.
        vanished: A night whose tag the tags API lists and the registry does not know.
        cu129: Whether there is a second family, ``cu129-nightly-…``.
        cu130: Whether there is a family that stopped in April, ``cu130-nightly-…``.
        as_of: The moment it is; nights pushed later are not there yet. ``None``: after the last night.
        keep: How many tags of a family survive the clean-up, the two floating ones that share its prefix
            included, as upstream's 14 do; ``None``: all. Digests survive always.
        token_seconds: How long a registry token holds.
        pull_limit: How many manifests an address may get in six hours.
        github_limit: Requests an hour; GitHub gives 60 to who is anonymous.
        accounts: User → password of who may have a token; anybody may without.
    """

    first: date = date(2026, 7, 19)
    last: date = date(2026, 8, 16)
    without_wheels: frozenset[str] = frozenset()
    stale: date | None = None
    undated: date | None = date(2026, 8, 6)
    repushed: date | None = None
    vanished: date | None = None
    cu129: bool = False
    cu130: bool = False
    as_of: datetime | None = None
    keep: int | None = None
    token_seconds: int = 300
    pull_limit: int = 100
    github_limit: int = 5000
    accounts: Mapping[str, str] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The moment it is when the lab comes up."""
        return self.as_of or datetime.combine(self.last, time(23, tzinfo=UTC))

    @property
    def days(self) -> Sequence[date]:
        """The nights, oldest first."""
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]

    def plans(self) -> Sequence[Plan]:
        """What is built, family by family, the oldest night first."""
        families = ["nightly", "cu129-nightly"] if self.cu129 else ["nightly"]
        plans = [self._plan(day, family) for family in families for day in self.days]
        if self.cu130:
            plans += [_stopped(day) for day in _STOPPED_NIGHTS]
        return plans

    def _plan(self, day: date, family: str) -> Plan:
        return Plan(
            date=day,
            family=family,
            commit=at_night(day).sha,
            wheel=at_night(day - timedelta(days=day == self.stale)),
            pushed_at=_pushed(day),
            oci=day in _OCI_NIGHTS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A nightly image before it is built.

    Attributes:
        date: The night.
        family: ``nightly``, ``cu129-nightly`` or ``cu130-nightly``.
        commit: The full hash for its tag and its configuration.
        wheel: The commit whose wheel goes into it; another one when it is stale.
        pushed_at: When its tag is pushed, UTC.
        oci: Whether it has OCI media types, a zstd layer and an attestation, instead of Docker's types and gzip.
    """

    date: date
    family: str
    commit: str
    wheel: Commit
    pushed_at: datetime
    oci: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """A nightly image as it was pushed.

    Attributes:
        plan: What it was built from.
        digest: Of the manifest list.
        platforms: Platform → digest of the image's manifest.
        sizes: Platform → bytes of its compressed layers.
        layer: Digest of the layer with vLLM, on linux/amd64.
        media_type: Of the manifest list.
    """

    plan: Plan
    digest: str
    platforms: Mapping[str, str]
    sizes: Mapping[str, int]
    layer: str
    media_type: str

    @property
    def date(self) -> date:
        """The night."""
        return self.plan.date

    @property
    def family(self) -> str:
        """The beginning of its tag."""
        return self.plan.family

    @property
    def commit(self) -> str:
        """The full hash in its tag and its configuration."""
        return self.plan.commit

    @property
    def pushed_at(self) -> datetime:
        """When its tag was first pushed, UTC."""
        return self.plan.pushed_at

    @property
    def tag(self) -> str:
        """``nightly-<40 hex>``."""
        return f"{self.family}-{self.commit}"

    @property
    def sm120(self) -> bool:
        """Whether the image has DeepGEMM kernels for sm120."""
        return self.plan.wheel.release in WITH_SM120


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag as the tags API tells of it, on one night's image or one platform of it."""

    name: str
    night: Night
    pushed_at: datetime | None
    platform: str | None = None

    @property
    def digest(self) -> str:
        """What it points to."""
        return self.night.platforms[self.platform] if self.platform else self.night.digest


def tags_at(scenario: Scenario, nights: Sequence[Night], moment: datetime) -> list[Tag]:
    """The tags there are at a moment, newest first, family by family."""
    tags: list[Tag] = []
    for family in dict.fromkeys(night.family for night in nights):
        there = [night for night in nights if night.family == family and night.pushed_at <= moment]
        if not there:
            continue
        newest = there[-1]
        by_commit = [Tag(name=night.tag, night=night, pushed_at=_last_push(scenario, night, moment)) for night in there]
        # the clean-up sorts by date and counts the per-machine tags in, whose names begin alike
        by_commit.sort(key=lambda tag: tag.pushed_at or tag.night.pushed_at, reverse=True)
        if scenario.keep is not None:
            by_commit = by_commit[: max(0, scenario.keep - 2)]
        floating = {"": None, "-x86_64": "linux/amd64", "-aarch64": "linux/arm64"}
        tags += [
            Tag(name=f"{family}{suffix}", night=newest, pushed_at=newest.pushed_at, platform=platform)
            for suffix, platform in floating.items()
        ]
        tags += by_commit
    return tags


def _pushed(day: date) -> datetime:
    # builds take hours, not always the same
    return datetime.combine(day, time(8, tzinfo=UTC)) + timedelta(minutes=day.toordinal() * 37 % 300)


def _stopped(day: date) -> Plan:
    """A night of the family that stopped, from a commit before the history begins."""
    seed = f"cu130 {day}"
    commit = replace(
        history()[0],
        sha=hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest(),
        at=datetime.combine(day, time(3, tzinfo=UTC)),
        release=BEFORE,
        number=0,
    )
    return Plan(date=day, family="cu130-nightly", commit=commit.sha, wheel=commit, pushed_at=_pushed(day), oci=False)


def _last_push(scenario: Scenario, night: Night, moment: datetime) -> datetime | None:
    if night.date == scenario.undated:
        return None
    again = night.pushed_at + timedelta(days=5)
    return again if night.date == scenario.repushed and again <= moment else night.pushed_at
