"""Bytes, requests, seconds and peak memory for reading each release, against downloading the wheel and `strings`.

Each look runs in a process of its own, with an empty history; memory is the largest resident set of that process and
its LIEF worker. The download and `strings` are what a user does today; they are run for the releases named with
--compare, since each costs hundreds of megabytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from rich.console import Console
from rich.table import Table

from bisector.config.sections import Config
from bisector.http import Http
from bisector.model import Build, Depth, Platform, RemoteWheel
from bisector.wiring import open_rooms

RELEASES = (
    *("0.20.0", "0.22.0", "0.24.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1"),
    *("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"),
)
MEGABYTE = 1_000_000
PLATFORM, SOURCE = Platform("linux/amd64"), "pypi:vllm"


async def look(release: str, depth: Depth) -> dict[str, float]:
    """One look at one release with an empty history."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_rooms(
            config=Config(), db=Path(folder) / "history.db", platform=PLATFORM, default_source=SOURCE
        ) as rooms:
            build = await rooms.resolve.build(f"pypi:vllm=={release}")
            tally = rooms.probe.tally()
            seen = await rooms.probe.look(build, depth, tally)
            cost = tally.cost(builds=1)
    return {
        "bytes": cost.bytes,
        "requests": cost.requests,
        "seconds": cost.seconds,
        "kernels": len(seen.observation.kernels.get("sm120", ())),
        "memory": peak_memory(),
    }


def peak_memory() -> int:
    """The largest resident set of this process and its ended children, in bytes."""
    return 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


async def download(build: Build, folder: Path) -> tuple[Path, int]:
    """The whole wheel, as pip would fetch it."""
    if not isinstance(build.location, RemoteWheel):
        raise TypeError(build.location)
    target = folder / "whole.whl"
    async with Http() as http:
        with target.open("w+b") as file:
            await http.download(build.location.url, file, limit=10**9)
        return target, http.meter.bytes


async def by_strings(release: str) -> dict[str, float]:
    """Download the wheel, unpack DeepGEMM's library, and count what `strings | grep sm120_` shows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_rooms(
            config=Config(), db=folder / "history.db", platform=PLATFORM, default_source=SOURCE
        ) as rooms:
            build = await rooms.resolve.build(f"pypi:vllm=={release}")
        start = time.monotonic()
        wheel, size = await download(build, folder)
        with zipfile.ZipFile(wheel) as archive:
            member = next(path for path in archive.namelist() if "/deep_gemm/_C" in path and path.endswith(".so"))
            library = archive.extract(member, folder)
        found = (await anyio.run_process(["strings", library])).stdout
        kernels = len({line for line in found.splitlines() if line.startswith(b"sm120_")})
        return {"bytes": size, "seconds": time.monotonic() - start, "kernels": kernels, "memory": peak_memory()}


def in_a_process(*arguments: str) -> dict[str, float]:
    """Run this file with the arguments and decode what it prints."""
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def measure(releases: Sequence[str], compare: Sequence[str]) -> None:
    """Print the table."""
    table = Table(title="vLLM wheels: MB read, requests, seconds, peak MB of memory, sm120 operations")
    for heading in ("release", "look", "MB", "requests", "seconds", "memory", "sm120"):
        table.add_column(heading, justify="left" if heading in {"release", "look"} else "right")

    def row(release: str, way: str, answer: dict[str, float]) -> None:
        megabytes, memory = answer["bytes"] / MEGABYTE, answer["memory"] / MEGABYTE
        requests = f"{answer['requests']:.0f}" if "requests" in answer else ""
        kernels = "" if way == "names" else f"{answer['kernels']:.0f}"
        table.add_row(release, way, f"{megabytes:.2f}", requests, f"{answer['seconds']:.2f}", f"{memory:.0f}", kernels)

    for release in releases:
        row(release, "names", in_a_process("look", release, "names"))
        row(release, "kernels", in_a_process("look", release, "kernels"))
        if release in compare:
            row(release, "download + strings", in_a_process("strings", release))
    Console(width=100).print(table)


def main() -> None:
    """Measure, or be one of the processes measured."""
    match sys.argv[1:]:
        case ["look", release, depth]:
            print(json.dumps(anyio.run(look, release, Depth(depth))))
        case ["strings", release]:
            print(json.dumps(anyio.run(by_strings, release)))
        case arguments:
            parser = argparse.ArgumentParser(prog="scripts/bench wheels", description=__doc__)
            parser.add_argument("releases", nargs="*", help="Releases to read.")
            parser.add_argument("--compare", nargs="*", default=["0.27.0", "0.33.0"], help="Those to download too.")
            chosen = parser.parse_args(arguments)
            measure(chosen.releases or RELEASES, chosen.compare)


if __name__ == "__main__":
    main()
