"""A process that writes to a history and says on stdout how far it came: ``writer.py FILE NAME COUNT``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import anyio

from bisector.history.database import open_database
from bisector.history.journal import RunJournal
from bisector.history.store import History
from bisector.model import (
    Answer,
    Asked,
    Build,
    DeepGemm,
    Depth,
    Digest,
    EvidenceKind,
    Kernel,
    LibraryStatus,
    Observation,
    Platform,
    RunState,
    Verdict,
)

KERNELS_EACH = 20
VERDICT = Verdict(answer=Answer.GOOD, reason="20 kernels")


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()


async def write(path: Path, name: str, count: int) -> None:
    clock = MachineClock()
    async with open_database(path) as database:
        history, journal = History(database, clock), RunJournal(database, clock)
        run = await journal.begin(Asked(command="write", source="pypi:vllm"))
        for number in range(count):
            digest = Digest(f"sha256:{name}-{number}")
            build = Build(
                id=f"{name}-{number}", source="pypi:vllm", spec="", platform=Platform("linux/amd64"), location=None
            )
            observation = Observation(
                digest=digest,
                depth=Depth.KERNELS,
                probe_version=1,
                evidence=EvidenceKind.WHEEL,
                deep_gemm=DeepGemm(status=LibraryStatus.PRESENT),
                kernels={"sm120": tuple(Kernel(op=f"op{number}") for number in range(KERNELS_EACH))},
            )
            await history.see([build])
            await history.record(observation, build)
            if await history.observation(digest, Depth.KERNELS, version=1) != observation:
                raise SystemExit(f"{digest} is not what was written")
            await journal.step(run, build.id, VERDICT, from_history=False)
            sys.stdout.write(f"{build.id}\n")
            sys.stdout.flush()
        await journal.end(run, RunState.FINISHED, outcome="written", result=None)


if __name__ == "__main__":
    anyio.run(write, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
