"""Nights to report on: empty, with one build, as long as one likes, and full of what must come out harmless."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bisector.arch import Arch
from bisector.model import (
    Answer,
    Build,
    Commit,
    Cost,
    DeepGemm,
    DependencyPin,
    Depth,
    Digest,
    EvidenceKind,
    Found,
    KernelSummary,
    LibraryStatus,
    Loss,
    Mark,
    Observation,
    Platform,
    Verdict,
)
from bisector.results import (
    ArchNight,
    Finding,
    GateFinding,
    HandOff,
    HandOffOutcome,
    HarvestedSource,
    News,
    NewsKind,
    Night,
    PackageChange,
    PinChange,
    Question,
    Rows,
    Seen,
    Stage,
    StreamNight,
    TimelineEntry,
)
from bisector.search import Direction, Strategy

NOW = datetime(2026, 8, 3, 4, 10, tzinfo=UTC)
SOURCE = "dockerhub:vllm/vllm-openai"
PLATFORM = Platform("linux/amd64")
OPS = ("bf16_gemm", "fp8_gemm_1d1d", "fp8_mqa_logits", "hc_prenorm_gemm")
ARCHS = {"sm90": 17, "sm100": 15, "sm120": 4}
LOSS_LASTS = 5
EARLIER = range(60, 70)
"""How many builds before the newest an earlier, repaired loss lay."""


def commit(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()


def build(number: int, *, behind: int, name: str | None = None) -> Build:
    digest = Digest(f"sha256:{hashlib.sha256(str(number).encode()).hexdigest()}")
    return Build(
        id=name or f"nightly-{commit(number)}",
        source=SOURCE,
        spec=f"vllm/vllm-openai:nightly-{commit(number)}",
        platform=PLATFORM,
        location=None,
        digest=digest,
        published_at=NOW - timedelta(days=behind, hours=2),
        pin=f"vllm/vllm-openai@{digest}",
        marks=(Mark.GONE,) if behind > 12 else (),
    )


def entry(number: int, *, behind: int, name: str | None = None) -> TimelineEntry:
    item = build(number, behind=behind, name=name)
    if behind in {2, 130} or behind > 300:
        return TimelineEntry(build=item)
    if behind == 9:
        unreadable = Verdict(answer=Answer.UNTESTABLE, reason="No template could be read")
        return TimelineEntry(build=item, kernels=dict.fromkeys(ARCHS, unreadable))
    lost = behind < LOSS_LASTS or behind in EARLIER
    operations = {arch: number for arch, number in ARCHS.items() if not (lost and arch == "sm120")}
    return TimelineEntry(
        build=item,
        summary=KernelSummary(status=LibraryStatus.PRESENT, depth=Depth.KERNELS, operations=operations),
        kernels={
            arch: Verdict(
                answer=Answer.GOOD if arch in operations else Answer.BAD, reason=f"{operations.get(arch, 0)} kernels"
            )
            for arch in ARCHS
        },
    )


def night(builds: int, *, news: bool = True) -> Night:
    """A night of a stream with so many builds; sm120 was lost five builds ago."""
    entries = tuple(entry(number, behind=builds - 1 - number) for number in range(builds))
    lost = builds > LOSS_LASTS
    losses = _losses(entries) if lost else ()
    newest = entries[-1].build if entries else None
    return Night(
        at=NOW,
        streams=(
            StreamNight(
                source=SOURCE,
                platform=PLATFORM,
                entries=entries,
                archs=tuple(_stands(arch, entries, losses if arch == "sm120" else ()) for arch in ARCHS),
                newest_at=newest.published_at if newest else None,
                harvest=HarvestedSource(
                    source=SOURCE, platform=PLATFORM, listed=12, new=(newest.id,), read=(newest.id,)
                )
                if newest
                else HarvestedSource(source=SOURCE, platform=PLATFORM),
            ),
        ),
        news=(_news(entries),) if news and lost else (),
        stages=(
            Stage(name="harvest", ok=True, says="12 builds listed, 1 new, 1 read"),
            Stage(name="search", ok=True, says="1 loss found"),
            Stage(name="confirm", ok=False, says="the host rig does not answer"),
        ),
        not_measured=("No boot: the host rig does not answer",),
        cost=Cost(builds=builds, probes=1, from_history=max(builds - 1, 0), requests=11, bytes=612_000, seconds=3.8),
    )


def _losses(entries: Sequence[TimelineEntry]) -> tuple[Loss, ...]:
    def named(behind: int) -> str:
        return entries[-1 - behind].build.id

    current = Loss(last_good=named(LOSS_LASTS), lost_at=named(LOSS_LASTS - 1), last_bad=named(0))
    if len(entries) <= EARLIER.stop:
        return (current,)
    earlier = Loss(
        last_good=named(EARLIER.stop),
        lost_at=named(EARLIER.stop - 1),
        last_bad=named(EARLIER.start),
        regained_at=named(EARLIER.start - 1),
    )
    return (earlier, current)


def _stands(arch: str, entries: Sequence[TimelineEntry], losses: tuple[Loss, ...]) -> ArchNight:
    told = [
        (item, item.kernels[arch])
        for item in entries
        if item.kernels and item.kernels[arch].answer is not Answer.UNTESTABLE
    ]
    good = [item for item, verdict in told if verdict.answer is Answer.GOOD]
    return ArchNight(
        arch=arch,
        verdict=told[-1][1] if told else Verdict(answer=Answer.UNTESTABLE, reason="no build is known yet"),
        newest=told[-1][0].build if told else None,
        pin=good[-1].build if good else None,
        losses=losses,
    )


def seen(item: Build) -> Seen:
    observation = Observation(
        digest=item.digest or Digest(""),
        depth=Depth.KERNELS,
        probe_version=1,
        evidence=EvidenceKind.IMAGE,
        deep_gemm=DeepGemm(status=LibraryStatus.PRESENT),
    )
    return Seen(build=item, observation=observation, from_history=True)


def finding(before: Build, after: Build, *, title: str = "Bump DeepGEMM to 2.6.1 (#50000)") -> Finding:
    arch = Arch(12, 0)
    culprit = Commit(sha=commit(41), parent=commit(40), committed_at=NOW - timedelta(days=5), title=title)
    return Finding(
        question=Question(device=arch, served_by=arch),
        source=SOURCE,
        platform=PLATFORM,
        strategy=Strategy.SWEEP,
        direction=Direction.LOSS,
        outcome=Found(before=before.id, after=after.id),
        timeline=(),
        before=seen(before),
        after=seen(after),
        losses=(),
        changed_ops=OPS,
        packages=(PackageChange(name="deep_gemm", before="2.5.0", after="2.6.1"),),
        gate=GateFinding.CRASH,
        newest_good=None,
        hand_off=HandOff(
            outcome=HandOffOutcome.FOUND,
            commits=23,
            tested=6,
            culprit=culprit,
            pin=PinChange(
                before=DependencyPin(repository="https://github.com/deepseek-ai/DeepGEMM.git", revision=commit(1)),
                after=DependencyPin(repository="https://github.com/deepseek-ai/DeepGEMM.git", revision=commit(2)),
            ),
        ),
        notes=(),
        cost=Cost(),
        reproduce=f"bisector find-regression --arch sm120 --source {SOURCE} --good {before.id} --bad {after.id}",
        finished_at=NOW,
    )


def _news(entries: Sequence[TimelineEntry]) -> News:
    before, after = entries[-1 - LOSS_LASTS].build, entries[-LOSS_LASTS].build
    return News(
        kind=NewsKind.LOST,
        key=f"lost:{SOURCE}:sm120:{after.id}",
        source=SOURCE,
        arch="sm120",
        sentence=f"sm120 kernels were lost in {after.id}; pin {before.id}",
        finding=finding(before, after),
    )


BOOTS = Rows(
    columns=("boot", "build", "started_at", "host", "profile", "outcome", "cause", "cause_title", "context"),
    rows=[
        ("b3", f"nightly-{commit(40)}", "2026-08-02T04:00:00.000000Z", "rig", "tp2", "fails", "deepgemm_arch_missing",
         "DeepGEMM has no kernel for sm120", None),
        ("b2", f"nightly-{commit(39)}", "2026-07-30T04:00:00.000000Z", "rig", "tp2", "answers", None, None, 131072),
        ("b1", f"nightly-{commit(38)}", "2026-07-29T04:00:00.000000Z", "rig", "tp2", None, None, None, None),
    ],
)  # fmt: skip


def benchmarks(boots: int) -> Rows:
    """So many measured boots of one profile, slower from the last tenth on."""

    def row(number: int) -> tuple[str | int | float, ...]:
        tpot = 18.4 + 0.25 * (number * 7 % 5) / 5 + (1.6 if number > boots * 0.9 else 0)
        at = f"{NOW - timedelta(days=(boots - number) * 2):%Y-%m-%dT%H:%M:%S.%fZ}"
        build = f"nightly-{commit(number)}"
        return (SOURCE, build, at, "sm120", "rig", "tp2", 5, tpot, tpot - 0.21, tpot + 0.3, 210.5, 1834.0, at)

    columns = ("source", "build", "published_at", "arch", "host", "profile", "passes", "tpot_ms", "tpot_ms_best")
    more = ("tpot_ms_worst", "ttft_ms", "throughput", "started_at")
    return Rows(columns=(*columns, *more), rows=[row(number) for number in range(boots)])


def hostile(words: str) -> tuple[Night, Rows, Rows]:
    """A night whose every text from outside is these words, with its boots and benchmarks."""
    plain = night(8)
    [stream] = plain.streams

    def said(verdict: Verdict) -> Verdict:
        return replace(verdict, reason=words)

    entries = tuple(
        replace(
            item,
            build=replace(item.build, id=f"{words}{number}", source=words, pin=words, spec=words),
            kernels=dict(zip((words,), map(said, item.kernels.values()), strict=False)),
        )
        for number, item in enumerate(stream.entries)
    )
    loss = Loss(last_good=words, lost_at=entries[-2].build.id, last_bad=words, untestable=(words,))
    repaired = replace(loss, untestable=(), regained_at=words)
    stands = ArchNight(
        arch=words,
        verdict=Verdict(answer=Answer.BAD, reason=words),
        newest=entries[-1].build,
        pin=entries[0].build,
        losses=(repaired, loss),
    )
    found = finding(entries[0].build, entries[-1].build, title=words)
    change = PackageChange(name=words, before=words, after=words)
    hand_off = replace(found.hand_off, culprit=None, reason=words) if found.hand_off else None
    found = replace(
        found,
        changed_ops=(words,),
        packages=(change,),
        hand_off=hand_off,
        notes=(words,),
        reproduce=f"bisector {words}",
    )
    told = News(kind=NewsKind.LOST, key=words, source=words, arch=words, sentence=words, finding=found)
    failed = replace(stream.harvest, source=words, error=words)
    night_of_it = replace(
        plain,
        streams=(
            replace(stream, source=words, platform=Platform(words), entries=entries, archs=(stands,), harvest=failed),
            replace(stream, entries=(), archs=(replace(stands, verdict=Verdict(answer=Answer.INFRA, reason=words)),)),
        ),
        news=(told,),
        stages=(Stage(name=words, ok=False, says=words),),
        not_measured=(words,),
    )
    boots = Rows(columns=BOOTS.columns, rows=[tuple(words for _ in BOOTS.columns)])
    measured = benchmarks(2)
    kept = {"published_at", "started_at"}
    spoiled = [
        tuple(
            words if isinstance(value, str) and name not in kept else value
            for name, value in zip(measured.columns, row, strict=True)
        )
        for row in measured.rows
    ]
    return night_of_it, boots, Rows(columns=measured.columns, rows=spoiled)


MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg/onload=alert(1)>", "{{ 7 * 7 }}",
    "{% raw %}",    "</title></style><b>", "]]>", "<!--", "&lt;b&gt;", "[a](https://example.org)", "![a](https://example.org/a.png)",
    "<https://example.org>", "https://example.org", "www.example.org", "mailto:a@example.org", "a@example.org",
    "@everyone", "#123", "vllm-project/vllm#1", "GH-7", "**bold**", "_it_", "~~no~~", "`code`", "```", "|", "| --- |",
    "# heading", "- item", "1. item", "> quote", "---", "===", "\\", "\n\n", "\r", "\t", "\x1b[31m", "\x1b]0;title\x07",
    "\x9b31m", "\x00", "\x7f", "\u202e", "\u2028", "[bold]", "[/]", ":smile:", "$x$", "$$", "<details>", " ",
    "2026-08-01",
)  # fmt: skip
"""Pieces of what somebody might call a tag, write into a log or title a commit."""
ALL_OF_MARKUP = "".join(MARKUP)[:190]
