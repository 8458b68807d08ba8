"""The few doors through which jobs reach the rooms.

A job knows these Protocols and nothing behind them; ``wiring.py`` decides what stands behind each. Whatever stands
there passes the contract tests in ``tests/contracts``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from bisector.model import (
    Asked,
    Build,
    Commit,
    DependencyPin,
    Depth,
    Digest,
    EvidenceKind,
    KernelSummary,
    Location,
    Observation,
    Platform,
    Run,
    RunState,
    Verdict,
)
from bisector.results import Filters, Night, Rows, Subject
from bisector.trials import Boot


class BuildStream(Protocol):
    """An ordered series of builds of one thing."""

    @property
    def source(self) -> str:
        """The canonical spelling: ``pypi:vllm``."""

    async def builds(self) -> Sequence[Build]:
        """Every build the stream knows, oldest first.

        Raises:
            UnknownBuild: The thing itself does not exist.
            Unavailable: The place that lists it does not answer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What an artifact gave for a selection.

    Attributes:
        listed: Every path the selection wanted listed, sorted, with its size in bytes.
        contents: Path → bytes, for what it wanted read.
        digest: The artifact's content address.
    """

    listed: Mapping[str, int]
    contents: Mapping[str, bytes]
    digest: Digest


END_OF_LAYER: Final = "\U0010ffff"
"""Sorts after every path; see :meth:`Selection.satisfied`."""


class Selection(Protocol):
    """What a reader wants of an artifact: some paths only by name, few by content.

    ``key``, ``enters`` and ``satisfied`` are asked only where files come one after another: in image layers.
    """

    @property
    def key(self) -> str:
        """What is wanted, in a short word: whatever was read under an equal key need not be read again."""

    def lists(self, path: str) -> bool:
        """Whether the presence of this path matters."""

    def reads(self, paths: Sequence[str]) -> Sequence[str]:
        """Of the listed paths, those whose content is wanted; fewest first that suffice."""

    def enters(self, directory: str) -> bool:
        """Whether a path that matters could lie in or below this directory."""

    def satisfied(self, listed: Collection[str], last: str) -> bool:
        """Given what a layer has shown so far and the path just passed, whether the rest of it cannot matter.

        Asked only of layers whose paths come in order, component by component, so that a directory that was left
        does not come back. ``last`` itself is not in ``listed`` yet; ``END_OF_LAYER`` means that everything passed,
        and asks whether the layers below can matter.
        """


class Artifact(Protocol):
    """Something that holds a build's files. Paths are relative to site-packages and use ``/``."""

    @property
    def evidence(self) -> EvidenceKind:
        """What kind of artifact this is."""

    async def digest(self) -> Digest:
        """The content address; may read the whole of a local file, never the whole of a remote one."""

    async def select(self, selection: Selection) -> FoundFiles:
        """List and read, in as few bytes as the artifact allows; every content is checked against its checksum.

        Raises:
            Unreadable: The artifact is there and is not what it should be.
            Unavailable: It cannot be reached.
        """


class Artifacts(Protocol):
    """Opens the artifact at a location."""

    def open(self, location: Location, *, digest: Digest | None) -> AbstractAsyncContextManager[Artifact]:
        """The artifact; ``digest`` is what the stream says of it, if anything."""


class KernelReader(Protocol):
    """Turns an artifact into an observation."""

    def version(self, depth: Depth) -> int:
        """The version of the code that reads at this depth."""

    async def observe(self, artifact: Artifact, depth: Depth, *, all_libraries: bool = False) -> Observation:
        """Read the artifact.

        What can be told about an unreadable library is told in the observation; only an artifact that cannot be
        opened at all raises.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What a tag's manifest and configuration say of the image for one platform.

    Attributes:
        digest: The manifest's.
        index_digest: That of the list of images it was chosen from, if there is one.
        created: When it says it was built.
        commit: The source commit in its labels.
    """

    digest: Digest
    index_digest: Digest | None = None
    created: datetime | None = None
    commit: str | None = None


class TagSource(Protocol):
    """One repository of a registry, for one platform."""

    async def tags(self) -> Sequence[str]:
        """Every tag, in any order.

        Raises:
            UnknownBuild: There is no such repository.
        """

    async def image(self, tag: str) -> ImageFacts:
        """The image a tag names now.

        Raises:
            UnknownBuild: The tag is gone.
            NoBuildForPlatform: It has no image for the platform.
            Unreadable: Its manifest or configuration cannot be understood.
            Unavailable: The registry does not answer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImageFacts:
    """An image that lies on this machine, as the place it lies in knows it.

    Attributes:
        name: What it is called there, or its digest where it has no name.
        digest: The content address of its image for the platform; ``None`` when it has none for it.
        pin: A spelling that goes on naming this content when the name has moved.
        created: When it says it was built.
        commit: The source commit in its labels.
    """

    name: str
    digest: Digest | None = None
    pin: str | None = None
    created: datetime | None = None
    commit: str | None = None


class LocalImages(Protocol):
    """A place on this machine that holds images: the local engine, a layout or archive on disk."""

    async def images(self) -> Sequence[LocalImageFacts]:
        """Every image, in any order; one with several names as often as it has names.

        Raises:
            UnknownBuild: There is no such place.
            Unreadable: It cannot be understood.
            Unavailable: The engine does not answer.
        """


class CommitHistory(Protocol):
    """One branch of a repository, wherever its history is read; commits are given in full or abbreviated to 7 digits.

    Any of these may raise ``Unavailable`` where the history does not answer, and ``UsageError`` for a range that is
    too long.
    """

    async def between(self, base: str, head: str) -> Sequence[Commit]:
        """The commits of the branch after ``base`` up to ``head``, oldest first; none when they are the same.

        Raises:
            UnknownBuild: There is no such commit.
            ReversedRange: ``base`` comes after ``head``.
            UsageError: No branch leads from one to the other.
        """

    async def since(self, start: datetime, until: datetime | None = None) -> Sequence[Commit]:
        """The commits of the branch from one moment up to another or the present, oldest first."""

    async def commit(self, sha: str) -> Commit:
        """One commit, of whatever branch.

        Raises:
            UnknownBuild: There is none.
        """

    async def pin(self, sha: str) -> DependencyPin | None:
        """The DeepGEMM the commit builds with; ``None`` when its build files name none.

        Raises:
            UnknownBuild: There is no such commit.
        """


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Something to tell a receiver.

    Attributes:
        key: What it is about: a receiver is told it once.
        body: What is kept and sent; the receiver that wrote it understands it.
        says: It in one line, for people.
    """

    key: str
    body: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a receiver is to be told, kept until it was."""

    receiver: str
    key: str
    body: str


class Outbox(Protocol):
    """The memory of what was told, so that nothing is told twice and nothing that is due is forgotten.

    A receiver is known by its name in the configuration.
    """

    async def keys(self, receiver: str) -> Collection[str]:
        """What a receiver was told, or is to be told."""

    async def put(self, receiver: str, drafts: Sequence[Draft], *, sent: bool = False) -> None:
        """Keep them, in this order, all or none; a key that is known already changes nothing. ``sent``: just noted."""

    async def due(self, receiver: str | None = None) -> Sequence[Post]:
        """What a receiver, or any, is still to be told, the oldest first."""

    async def sent(self, post: Post, *, at: datetime) -> None:
        """Note that it was told."""

    async def failed(self, post: Post, reason: str) -> None:
        """Note that it could not be told now."""


class Receiver(Protocol):
    """Somebody or something that is told of changes."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    def drafts(self, night: Night, told: Collection[str], *, always: bool) -> Sequence[Draft]:
        """What it should be told of a night, given the keys of what it knows; ``always``: also that nothing changed."""

    async def send(self, post: Post) -> None:
        """Tell it, within a minute or so; what may have come through before is not told twice, if that can be known.

        Raises:
            ConfigError: Its address or token is missing or wrong.
            Unavailable: It does not answer, or did not take it.
        """

    def check(self) -> None:
        """Find mistakes that can be found without reaching it.

        Raises:
            ConfigError: There is one.
        """

    async def try_out(self) -> str:
        """Reach it without telling any news; what was done, in a phrase. Raises as ``send`` does."""


class Gauge(Protocol):
    """Something that shows how things stand, and forgets how they stood."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    async def show(self, night: Night, *, pending: int) -> None:
        """Show this night, and how many posts are due.

        Raises:
            ConfigError: It cannot be shown as the configuration wants it.
            Unavailable: It cannot be written.
        """

    def check(self) -> None:
        """Find mistakes without writing it. Raises ``ConfigError`` for one."""

    async def try_out(self) -> str:
        """Find out whether it can be written. Raises as ``show`` does."""


class Clock(Protocol):
    """The time. Nothing else in bisector asks the machine for it."""

    def now(self) -> datetime:
        """The present, UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class Meter(Protocol):
    """Counts what goes over the network."""

    requests: int
    bytes: int


# --- progress --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegan:
    """A question is being recorded under this id."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A stream was listed."""

    source: str
    builds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """A build is about to be read."""

    build: Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A build got its verdict, from history or by reading."""

    build: Build
    verdict: Verdict
    from_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """The search knows its range better; ``steps_left`` is an estimate."""

    before: str
    after: str
    between: int
    steps_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootStep:
    """A boot has come a step further.

    Attributes:
        build: Whose image it is.
        context: With which context, in tokens; ``None`` while there is no container yet.
        step: The step, in a few words.
        seconds: Since the boot began.
        passing: Many of its kind follow, and only the last matters.
    """

    build: Build
    context: int | None
    step: str
    seconds: float
    passing: bool = False


Event: TypeAlias = RunBegan | Listed | Probing | Probed | Narrowed | BootStep


class Progress(Protocol):
    """Is told what happens while a job runs."""

    def __call__(self, event: Event, /) -> None:
        """Take note; must not raise and must not wait."""
