"""The memory: of contents, of streams, of questions, of boots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from bisector.model import (
    Asked,
    Build,
    Depth,
    Digest,
    KernelSummary,
    Observation,
    Platform,
    Run,
    RunState,
    Verdict,
)
from bisector.results import Filters, Rows, Subject
from bisector.trials import Boot


class Ledger(Protocol):
    """The memory of contents: observations by digest."""

    async def observation(self, digest: Digest, depth: Depth, *, version: int) -> Observation | None:
        """The observation of this content at this depth or deeper, by this version of the probe or a later one."""

    async def record(self, observation: Observation, build: Build | None) -> None:
        """Store it before anything is concluded from it; a second time changes nothing."""

    async def known(self, builds: Sequence[Build]) -> Mapping[str, Observation]:
        """The deepest observation of each of these builds that has one, by build id."""

    async def summaries(self, builds: Sequence[Build]) -> Mapping[str, KernelSummary]:
        """What ``known`` gives, in short and fast: thousands of builds in a fraction of a second."""


class Catalogue(Protocol):
    """The memory of streams: what they listed, in which order, and what is gone."""

    async def see(self, builds: Sequence[Build]) -> None:
        """Note that a stream listed these builds now: the whole of a listing for a platform."""

    async def arrange(self, builds: Sequence[Build]) -> None:
        """Note the order of these builds of one stream and platform, where something knows it better than dates do."""

    async def remembered(self, source: str, platform: Platform) -> Sequence[Build]:
        """Every build ever met in a stream, in the order they were given or else of publication.

        One that the last listing did not have is marked as gone, and its image located by digest, which outlives the
        tag. Of a name that was given to several contents there is the latest.
        """


class Backlog(Protocol):
    """The memory of what is still to be read."""

    async def unread(self, builds: Sequence[Build], depth: Depth, *, version: int) -> Sequence[Build]:
        """Those without an observation that answers at this depth, and not given up, in the order they were given."""

    async def give_up(self, build: Build, verdict: Verdict) -> None:
        """Note why a build cannot be looked at, and until when to believe it; a later observation outweighs it."""


class Journal(Protocol):
    """The memory of questions: each run with its verdicts, so that it can be gone on with and retold."""

    async def begin(self, asked: Asked) -> str:
        """The id of a new run. One that it resumes and that has no end was interrupted."""

    async def step(self, run: str, build: str, verdict: Verdict, *, from_history: bool) -> None:
        """Note a verdict of a run."""

    async def end(self, run: str, state: RunState, *, outcome: str | None, result: Mapping[str, object] | None) -> None:
        """Note how a run ended, and its answer."""

    async def run(self, run: str) -> Run:
        """A run as far as it came.

        Raises:
            UnknownRun: There is none of this id.
        """


class Boots(Protocol):
    """The memory of boots: each from its start, so that one whose owner was killed is known too."""

    async def begin(
        self, build: Build, *, host: str, profile: str, arch: str, run: str | None, settings: Mapping[str, object]
    ) -> str:
        """The id of a new boot."""

    async def end(self, boot: Boot) -> None:
        """Note how it went; a second time changes nothing but what became known."""

    async def abandon(self, boots: Collection[str]) -> Sequence[str]:
        """Note as interrupted these boots, and those of this machine whose process is gone; the ids of all of them."""


class Records(Protocol):
    """The memory as tables, for people and their tools."""

    async def table(self, subject: Subject, filters: Filters) -> Rows:
        """The rows about one subject that pass.

        Raises:
            UsageError: A filter does not apply to the subject.
        """

    async def sql(self, query: str) -> Rows:
        """The answer to one query in SQL, which can only read.

        Raises:
            UsageError: It is no single query, would write, or takes too long.
        """
