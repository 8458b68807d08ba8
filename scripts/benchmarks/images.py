"""An image of 3 GB: what reading DeepGEMM out of it costs, against pulling it; and a sweep over nightlies by wheels.

The image lies in a real registry on loopback, in seven layers of real wheels' content, vLLM's wheel in its own. Each
way runs in processes of its own, with nothing remembered. Seconds are those of whole processes, from their start;
reading is the part of them until the bytes are there and decompressed. The last rows move and decompress the very same
bytes with nothing but `curl` and `igzip`. The first run fetches 2.8 GB of wheels and packs them, which takes minutes;
the layers are kept in the user's cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import anyio
from platformdirs import user_cache_path
from rich.console import Console
from rich.table import Table

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.client import RegistryClient
from bisector.artifacts.image.reference import parse_reference
from bisector.http import Http
from bisector.kernels.selections import Kernels
from bisector.model import Platform
from tests.lab.dockerfile import SITE_PACKAGES
from tests.lab.engine import DockerEngine, why_none
from tests.lab.images import Image
from tests.lab.lab import Lab
from tests.lab.large_image import large_image
from tests.lab.registry import Registry
from tests.lab.scenario import Scenario

CACHE = user_cache_path("bisector-bench")
REPOSITORY, PLATFORM = "vllm/vllm-openai", "linux/amd64"
LIBRARY = f"{SITE_PACKAGES}/vllm/third_party/deep_gemm/_C_extension.abi3.so"
MEGABYTE = 1_000_000
NIGHTS = Scenario(first=date(2026, 7, 20), last=date(2026, 8, 12))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one way took.

    Attributes:
        seconds: From the start of its first process to the end of its last.
        size: Bytes of the image that were moved.
        reading: Seconds of them until the bytes were there and decompressed, without starting Python and parsing.
        memory: Largest resident set of a process, in bytes.
        kernels: Names or operations for sm120 that it showed.
        layers: Bytes read of each layer, counted from the lowest.
    """

    seconds: float
    size: int
    reading: float | None = None
    memory: int | None = None
    kernels: int | None = None
    layers: Mapping[int, int] = field(default_factory=dict)


async def read(name: str, *, verify: bool) -> dict[str, float | dict[int, int]]:
    """Get out of the image what `bisector inspect` parses."""
    reference = parse_reference(name)
    start = time.monotonic()
    async with Http() as http:
        client = RegistryClient(http, reference.host, reference.repository)
        artifact = ImageArtifact(client, await client.resolve(reference), Platform(PLATFORM), verify=verify)
        await artifact.select(Kernels(older_gate=True))
    if artifact.scan is None or artifact.verified != verify:
        raise SystemExit(f"Not verified as asked: {artifact.scan}")
    return {"reading": time.monotonic() - start, "layers": dict(artifact.scan.read)}


def by_bisector(name: str, *options: str) -> Outcome:
    """`bisector inspect` with an empty history, and the reading alone in another process."""
    with temporary() as folder:
        (folder / "config.toml").write_text("")
        command = [sys.executable, "-m", "bisector", "--config", str(folder / "config.toml")]
        command += ["--db", str(folder / "history.db"), "inspect", name, "--json", *options]
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        printed = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    seen = json.loads(printed)
    if process.returncode:
        raise SystemExit(f"bisector inspect failed: {seen}")
    done = subprocess.run([sys.executable, __file__, "read", name, *options], stdout=subprocess.PIPE, check=True)
    alone = json.loads(done.stdout)
    return Outcome(
        seconds=seconds,
        size=seen["cost"]["bytes"],
        reading=alone["reading"],
        memory=1024 * usage.ru_maxrss,
        kernels=len(seen["kernels"]["sm120"]),
        layers={int(at): size for at, size in alone["layers"].items()},
    )


def by_docker(name: str, image: Image) -> Outcome:
    """`docker pull`, `docker create`, `docker cp` and `strings`, by an engine that has nothing yet."""
    with temporary() as folder, closing(DockerEngine(folder)) as engine:
        start = time.monotonic()
        engine.docker("pull", "--quiet", name)
        container = engine.docker("create", name, "true").decode().strip()
        engine.docker("cp", f"{container}:/{LIBRARY}", str(folder / "library.so"))
        kernels = strings((folder / "library.so").read_bytes())
        return Outcome(seconds=time.monotonic() - start, size=whole(image), kernels=kernels)


def by_skopeo(name: str, image: Image) -> Outcome:
    """`skopeo copy` to a directory, then `tar` for the library; the layer it is in is told."""
    with temporary() as folder:
        start = time.monotonic()
        copy = f"skopeo copy --quiet --src-tls-verify=false docker://{name} dir:{folder}"
        subprocess.run(copy.split(), check=True)
        layer = folder / image.vllm.removeprefix("sha256:")
        library = subprocess.run(
            [program("tar"), "-xzOf", str(layer), LIBRARY], stdout=subprocess.PIPE, check=True
        ).stdout
        kernels = strings(library)
        return Outcome(seconds=time.monotonic() - start, size=whole(image), kernels=kernels)


def by_curl(registry: Registry, image: Image, layers: Mapping[int, int]) -> Outcome:
    """The same bytes of the same layers through `curl | igzip`, to nowhere."""
    inflate = shutil.which("igzip") or f"{sys.executable} -m isal.igzip"
    start = time.monotonic()
    for at, read in sorted(layers.items()):
        blob = f"{registry.url}/v2/{REPOSITORY}/blobs/{image.layers[PLATFORM][at].digest}"
        # What is cut off in the middle ends in a complaint.
        command = f"curl -s -r 0-{read - 1} {blob} | {inflate} -d -c > /dev/null 2>&1"
        subprocess.run(command, shell=True, check=False)  # noqa: S602 - a pipe is what is measured
    return Outcome(seconds=time.monotonic() - start, size=sum(layers.values()))


def program(name: str) -> str:
    """Where a program is."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not installed")
    return found


def strings(library: bytes) -> int:
    """How many names `strings | grep sm120_` shows."""
    found = subprocess.run([program("strings")], input=library, stdout=subprocess.PIPE, check=True).stdout
    return len({line for line in found.splitlines() if line.startswith(b"sm120_")})


def whole(image: Image) -> int:
    """Bytes of all layers."""
    return sum(layer.size for layer in image.layers[PLATFORM])


@contextmanager
def temporary() -> Iterator[Path]:
    """A folder beside the cache, for there is room for the image."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="run-") as folder:
        yield Path(folder)


def measure_image(repeat: int, *, docker: bool) -> None:
    """Print the table of one image."""
    image = large_image(CACHE / "image")
    table = Table(title=f"An image of {whole(image) / MEGABYTE:,.0f} MB in {len(image.layers[PLATFORM])} layers")
    for heading in ("way", "seconds", "reading", "MB", "share", "× faster", "memory MB", "sm120"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    with temporary() as folder, closing(Registry(folder)) as registry:
        registry.push(REPOSITORY, image)
        registry.tag(REPOSITORY, "nightly", image.index)
        name = f"{registry.url.removeprefix('http://')}/{REPOSITORY}:nightly"
        pull = by_docker(name, image) if docker else None
        known = best(lambda: by_bisector(name), repeat)
        verified = best(lambda: by_bisector(name, "--verify"), repeat)
        floor = best(lambda: by_curl(registry, image, known.layers), repeat)
        whole_floor = best(lambda: by_curl(registry, image, verified.layers), repeat)
        ways = {
            "bisector": known,
            "bisector --verify": verified,
            "docker pull, create, cp, strings": pull,
            "skopeo copy, tar, strings": by_skopeo(name, image),
            "curl | igzip, the bytes of bisector": floor,
            "curl | igzip, the bytes of --verify": whole_floor,
        }
    for way, outcome in ways.items():
        if outcome is not None:
            table.add_row(way, *row(outcome, image, pull))
    Console(width=110).print(table)
    for way, ours, bare in ("", known, floor), (" with --verify", verified, whole_floor):
        reading = ours.reading or ours.seconds
        print(
            f"Reading{way} takes {reading / bare.seconds:.2f} times as long as curl | igzip over the same bytes", end=""
        )
        print(f", and a {pull.seconds / reading:.0f}th of the pull." if pull else ".")


def best(way: Callable[[], Outcome], repeat: int) -> Outcome:
    """The quickest of some tries: whatever else runs on the machine only ever makes one slower."""
    return min((way() for _ in range(repeat)), key=lambda tried: tried.reading or tried.seconds)


def row(outcome: Outcome, image: Image, pull: Outcome | None) -> Sequence[str]:
    """The cells behind the name of a way."""
    return (
        f"{outcome.seconds:.2f}",
        "" if outcome.reading is None else f"{outcome.reading:.2f}",
        f"{outcome.size / MEGABYTE:,.1f}",
        f"{outcome.size / whole(image):.2%}",
        "" if pull is None else f"{pull.seconds / outcome.seconds:.0f}",
        "" if outcome.memory is None else f"{outcome.memory / MEGABYTE:.0f}",
        "" if outcome.kernels is None else str(outcome.kernels),
    )


def measure_sweep() -> None:
    """Print what finding the loss among 24 nightlies costs, by the wheels of their commits."""
    with temporary() as folder, Lab(NIGHTS) as lab:
        (folder / "lab.toml").write_text(lab.config_toml())
        command = [sys.executable, "-m", "bisector", "--config", str(folder / "lab.toml"), "--db"]
        command += [str(folder / "history.db"), "find-regression", "--arch", "sm120", "--json"]
        start = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ, check=False)
        seconds = time.monotonic() - start
    found = json.loads(done.stdout)
    cost = found.get("cost", {})
    print(
        f"A sweep of {cost.get('builds')} nightlies: {found.get('outcome', found.get('error'))}, {seconds:.2f} s, "
        f"{cost.get('bytes', 0) / MEGABYTE:.1f} MB, {cost.get('requests')} requests, {cost.get('probes')} probes."
    )


def main() -> None:
    """Measure, or be one of the processes measured."""
    match sys.argv[1:]:
        case ["read", name, *options]:
            print(json.dumps(anyio.run(lambda: read(name, verify="--verify" in options))))
        case arguments:
            parser = argparse.ArgumentParser(prog="scripts/bench images", description=__doc__)
            parser.add_argument("what", nargs="?", choices=["image", "sweep"], help="By default both.")
            parser.add_argument("--repeat", type=int, default=3, help="How often the quick ways are tried.")
            chosen = parser.parse_args(arguments)
            CACHE.mkdir(parents=True, exist_ok=True)
            if chosen.what in {None, "image"}:
                reason = why_none()
                if reason is not None:
                    print(f"Without docker: {reason}")
                measure_image(chosen.repeat, docker=reason is None)
            if chosen.what in {None, "sweep"}:
                measure_sweep()


if __name__ == "__main__":
    main()
