"""The words of the project as values: builds, what was seen in them, what that means, what a search found.

Everything here is frozen and without behaviour beyond its own fields. An observation is what was seen and never a
judgement; a verdict is a judgement and never stored without the observation it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType, TypeAlias

Digest = NewType("Digest", str)
"""A content address, ``sha256:<64 hex>``: equal digests mean equal content."""

Platform = NewType("Platform", str)
"""``os/architecture`` as container tools spell it: ``linux/amd64``."""


# --- where a build's files can be read -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWheel:
    """A wheel on a web server.

    Attributes:
        url: Where it lies.
        size: Its length in bytes, when the index says.
    """

    url: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPath:
    """A wheel, a shared library or an unpacked directory on this machine."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWheel:
    """The wheel that was built of one commit, in an index of per-commit wheels.

    Attributes:
        commit: All 40 digits.
        platform: Whose wheel.
        variant: The CUDA variant's folder, such as ``cu129``; ``None`` is the default build.
    """

    commit: str
    platform: Platform
    variant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteImage:
    """A container image in a registry.

    Attributes:
        registry: The host as users write it: ``docker.io``, ``ghcr.io``, ``127.0.0.1:5000``.
        repository: ``vllm/vllm-openai``.
        reference: A tag, or a digest ``sha256:…``.
        platform: Which image of a list of images.
    """

    registry: str
    repository: str
    reference: str
    platform: Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """A container image on this machine's disk.

    Attributes:
        path: An OCI layout directory, or an archive that ``docker save`` or ``skopeo`` wrote.
        name: Which of several images in it; ``None`` where there is only one.
        platform: Which image of a list of images.
    """

    path: str
    name: str | None
    platform: Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineImage:
    """An image in the local Docker engine, by its name or id."""

    name: str


Location: TypeAlias = RemoteWheel | LocalPath | CommitWheel | RemoteImage | LocalImage | EngineImage


# --- builds ----------------------------------------------------------------------------------------------------------


class Mark(StrEnum):
    """Something a reader should know about a build before adopting it."""

    YANKED = "yanked"
    PRERELEASE = "pre-release"
    FLOATING = "floating"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One item of a stream.

    Attributes:
        id: The name within its stream: ``0.27.0``.
        source: The stream's canonical spelling: ``pypi:vllm``.
        spec: A spelling that names this build anywhere: ``pypi:vllm==0.27.0``.
        platform: The platform whose files are meant.
        location: Where the files are, or ``None`` when the stream has none for this platform.
        witness: A cheaper artifact of the same commit, for a first look; the location stays the authority.
        elsewhere: Other places that may have the same commit's files when the location has them no more.
        digest: The content address of the artifact, when the stream knows it before reading.
        published_at: When it appeared, UTC.
        commit: The source commit, when the stream knows it before reading.
        pin: The line to paste in order to use exactly this build.
        marks: What a reader should know before adopting it.
    """

    id: str
    source: str
    spec: str
    platform: Platform
    location: Location | None
    witness: CommitWheel | None = None
    elsewhere: tuple[Location, ...] = ()
    digest: Digest | None = None
    published_at: datetime | None = None
    commit: str | None = None
    pin: str | None = None
    marks: tuple[Mark, ...] = ()


# --- the source's own history ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One step of a branch.

    Attributes:
        sha: All 40 digits.
        parent: The first parent, the step before on the branch; ``None`` for the very first.
        committed_at: When it came onto the branch, UTC, as far as its committer's date tells.
        title: The first line of its message, in one printable line.
        pull_request: The number at the end of the title: ``… (#50000)``.
    """

    sha: str
    parent: str | None
    committed_at: datetime
    title: str
    pull_request: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyPin:
    """Which state of a dependency the source builds with.

    Attributes:
        repository: Where it is cloned from: ``https://github.com/deepseek-ai/DeepGEMM.git``.
        revision: The commit, tag or branch that is checked out.
    """

    repository: str
    revision: str


# --- observations ----------------------------------------------------------------------------------------------------


class Depth(StrEnum):
    """How far an artifact was read.

    ``names`` is the cheap look: which files are there. It is right for "any kernel of this architecture at all".
    ``kernels`` also opens the library and the version files.
    """

    NAMES = "names"
    KERNELS = "kernels"


class EvidenceKind(StrEnum):
    """What kind of artifact an observation was made on."""

    IMAGE = "image"
    WHEEL = "wheel"
    FILE = "file"


class LibraryStatus(StrEnum):
    """The three answers about a bundled library; "without this architecture" is read from the inventory."""

    PRESENT = "present"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One operation of one architecture, with the evidence for it.

    Attributes:
        op: The operation without its architecture: ``bf16_gemm``.
        units: The headers a JIT template includes for it and the package ships: ``impls/sm120_bf16_gemm.cuh``.
        entries: The functions a JIT template instantiates for it: ``sm120_bf16_gemm_impl``.
    """

    op: str
    units: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


ANY_ARCH = "smxx"
"""The key of kernels that serve every architecture."""

Inventory: TypeAlias = Mapping[str, tuple[Kernel, ...]]
"""Architecture (``sm120``, or ``ANY_ARCH``) → its operations, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepGemm:
    """The bundled DeepGEMM as it was found.

    Attributes:
        status: Present, absent, or there and unreadable.
        reason: Why it is absent or unreadable, in one sentence.
        version: Its own ``__version__``.
        files: The paths of its shared libraries in the artifact.
        headers: The JIT headers it ships, relative to ``include/deep_gemm``: ``impls/sm120_bf16_gemm.cuh``.
        templates: How many JIT templates the library holds; ``None`` when the library was not opened.
    """

    status: LibraryStatus
    reason: str | None = None
    version: str | None = None
    files: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    templates: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Which GPUs vLLM sends to DeepGEMM, read from ``vllm/platforms/cuda.py``.

    Attributes:
        capabilities: Architectures named exactly, such as ``sm90``.
        families: Families named by their base, such as ``sm120`` for every 12.x.
        readable: False when the function was there in a form that could not be understood.
    """

    capabilities: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A dependency as the build declares it: ``torch`` ``==2.14.0``."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the build says it comes from.

    Attributes:
        version: vLLM's own version.
        commit: The abbreviated or full commit in ``vllm/_version.py``.
        local_build: What a local-build mark in the version means, in words, or ``None``.
    """

    version: str | None = None
    commit: str | None = None
    local_build: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaTarget:
    """Device code of one target in an ahead-of-time library.

    Attributes:
        target: ``sm_90a`` for machine code, ``compute_80`` for PTX.
        count: How many code objects of it.
    """

    target: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaLibrary:
    """An ahead-of-time library and the device code it carries."""

    path: str
    size: int
    targets: tuple[CudaTarget, ...]
    unreadable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was seen in one artifact, once and for all.

    Attributes:
        digest: The content address of the artifact it was seen in.
        depth: How far it was read.
        probe_version: The version of the code that read it; a newer one reads again.
        evidence: What kind of artifact it was.
        deep_gemm: The library.
        kernels: Its operations by architecture; empty at depth ``names``.
        gate: vLLM's gate; ``None`` when there was none to read.
        packages: Pinned and bundled packages.
        provenance: Version and commit.
        libraries: Ahead-of-time libraries, when they were asked for.
    """

    digest: Digest
    depth: Depth
    probe_version: int
    evidence: EvidenceKind
    deep_gemm: DeepGemm
    kernels: Inventory = field(default_factory=dict)
    gate: Gate | None = None
    packages: tuple[Package, ...] = ()
    provenance: Provenance = Provenance()
    libraries: tuple[CudaLibrary, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSummary:
    """The part of an observation that a timeline shows: it can be told without the whole.

    Attributes:
        status: Whether DeepGEMM is bundled.
        depth: How far the build was read.
        reason: Why the library is absent or unreadable.
        operations: Architecture → how many operations it has, or kernel headers at depth ``names``; none: not there.
        commit: The commit, as the artifact itself says.
    """

    status: LibraryStatus
    depth: Depth
    reason: str | None = None
    operations: Mapping[str, int] = field(default_factory=dict)
    commit: str | None = None


# --- verdicts --------------------------------------------------------------------------------------------------------


class Answer(StrEnum):
    """A predicate's answer. ``infra`` never counts; ``ambiguous`` asks for more samples."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"
    INFRA = "infra"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer, why (a phrase, without a full stop), and until when it may be believed (``None``: for good)."""

    answer: Answer
    reason: str = ""
    expires_at: datetime | None = None


# --- runs ------------------------------------------------------------------------------------------------------------


class RunState(StrEnum):
    """How a run stands. One that was killed stays ``running``, without an end."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know, so that it can be asked again.

    Attributes:
        command: ``find-regression``.
        arguments: Everything the command needs, as JSON has it.
        question: The same in words.
        source: The stream, where there is one.
        arch: The architecture, where there is one.
        resumes: The run that this one goes on with.
    """

    command: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    question: str | None = None
    source: str | None = None
    arch: str | None = None
    resumes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """One verdict of a run, and when it was given."""

    build: str
    verdict: Verdict
    from_history: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One question that was asked, as far as it came.

    Attributes:
        id: Sorts by time.
        asked: The question.
        state: How it stands.
        started_at: UTC.
        ended_at: UTC; ``None`` while it runs, and for good when it was killed.
        host: The machine it ran on.
        pid: Its process there.
        outcome: Its answer in a word.
        result: Its answer as it was printed, in JSON.
        steps: Its verdicts in the order in which it got them.
    """

    id: str
    asked: Asked
    state: RunState
    started_at: datetime
    ended_at: datetime | None
    host: str
    pid: int
    outcome: str | None
    result: Mapping[str, object] | None
    steps: tuple[RunStep, ...]


# --- what a search found ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """An interval ``[lost_at, regained_at)`` of one architecture in one stream, by build id.

    Attributes:
        last_good: The newest build before it that had the kernels.
        lost_at: The first build seen without them.
        last_bad: The last build seen without them.
        regained_at: The first build that has them again, or ``None`` while it lasts.
        untestable: Builds between ``last_good`` and ``lost_at`` that nobody could test.
    """

    last_good: str
    lost_at: str
    last_bad: str
    regained_at: str | None = None
    untestable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Two neighbours in the stream, both tested: the change is in ``after``."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBetween:
    """Every build between the two is known to be untestable: the change is in one of them or in ``after``."""

    before: str
    after: str
    untestable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NonMonotone:
    """A bisection met answers that contradict a single change; the sequence of tested builds shows it."""

    seen: tuple[tuple[str, Answer], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReproduced:
    """An end did not hold: what was expected of which build, and what was found."""

    ends: tuple[tuple[str, Answer, Verdict], ...]
    """(build, expected answer, verdict)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """No answer, and why; the range as far as it was narrowed."""

    reason: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRegression:
    """Nothing was lost in the builds looked at."""

    tested: int


Outcome: TypeAlias = Found | FoundBetween | NonMonotone | NotReproduced | Inconclusive | NoRegression


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an answer cost.

    Attributes:
        builds: Builds in the range.
        probes: Artifacts opened.
        from_history: Builds answered without opening anything.
        requests: HTTP requests.
        bytes: Bytes of their bodies.
        seconds: Wall time.
    """

    builds: int = 0
    probes: int = 0
    from_history: int = 0
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How often a registry lets manifests be asked for, by the headers of its last answer that had them.

    Attributes:
        limit: Requests in a window.
        remaining: Requests left in it.
        window: Its length in seconds, when the registry says.
    """

    limit: int
    remaining: int
    window: int | None = None
