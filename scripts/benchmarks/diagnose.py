"""Seconds and peak memory to diagnose a log of 200 MB, against `grep -E` with the same texts.

Four logs: a server's life with a failure at its end; the same start over and over; requests that all differ; prose of
which no two lines agree, the worst there is. Each is read by `bisector diagnose` in a process of its own, and by grep.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bisector.diagnosis.signatures import shipped

MEGABYTE = 1_000_000
FAILURE = (
    b"(EngineCore pid=24) ERROR 11-29 11:30:38 [core.py:1510] ValueError: To serve at least one request with the "
    b"model's max seq len (32768), (0.01 GiB KV cache is needed, which is larger than the available KV cache memory "
    b"(0.0 GiB). Based on the available memory, the estimated maximum model length is 16256.\n"
)
START = b"".join(
    b"(%s pid=%d) INFO 11-29 11:27:%02d [%s.py:%d] %s\n" % line
    for line in (
        (b"APIServer", 1, 3, b"api_server", 1755, b"vLLM API server version 0.32.0"),
        (
            b"EngineCore",
            26,
            9,
            b"core",
            133,
            b"Initializing a V1 LLM engine (v0.32.0) with config: model='m', dtype=bf16",
        ),
        (b"Worker_TP0", 37, 11, b"pynccl", 103, b"vLLM is using nccl==2.27.3"),
        (b"Worker_TP0", 37, 12, b"gpu_model_runner", 3000, b"Starting to load model m..."),
        (b"Worker_TP0", 37, 41, b"gpu_model_runner", 3012, b"Model loading took 43.12 GiB memory and 29.0 seconds"),
        (
            b"EngineCore",
            26,
            50,
            b"kv_cache_utils",
            2327,
            b"GPU KV cache size: 262,144 tokens, Maximum concurrency: 64.00x",
        ),
        (b"APIServer", 1, 59, b"launcher", 40, b"Application startup complete."),
    )
)


def life(rng: random.Random) -> Iterator[bytes]:
    """Requests and statistics, with numbers that change and identifiers in hexadecimal."""
    yield START
    while True:
        port, rate = rng.randrange(1024, 65536), rng.random() * 90
        yield b'INFO:     172.17.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK %032x\n' % (
            port,
            rng.getrandbits(128),
        )
        yield (
            b"(APIServer pid=1) INFO 11-29 11:27:03 [loggers.py:248] Engine 000: Avg throughput: %.1f tokens/s\n" % rate
        )


def restarts(_: random.Random) -> Iterator[bytes]:
    """A server that starts again and again."""
    while True:
        yield START


def requests(rng: random.Random) -> Iterator[bytes]:
    """Identifiers in letters and digits: hardly two lines agree."""
    letters = string.ascii_letters + string.digits
    while True:
        name = "".join(rng.choices(letters, k=22)).encode()
        yield b"INFO 11-29 11:27:03 [logger.py:43] Added request cmpl-%s with 2000 tokens in 12 ms\n" % name


def prose(rng: random.Random) -> Iterator[bytes]:
    """Lines of invented words, no two alike."""
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randrange(3, 11))) for _ in range(20_000)]
    while True:
        yield f"{' '.join(rng.choices(words, k=14))}\n".encode()


LOGS: dict[str, Callable[[random.Random], Iterator[bytes]]] = {
    "a server's life": life,
    "restarts": restarts,
    "requests": requests,
    "prose": prose,
}


def write(path: Path, lines: Iterator[bytes], size: int) -> None:
    """A log of this size, with the failure at its end."""
    with path.open("wb") as file:
        written = 0
        while written < size:
            block = b"".join(next(lines) for _ in range(10_000))
            written += file.write(block)
        file.write(FAILURE)


def expression() -> str:
    """All anchors as one expression for grep."""
    return "|".join(re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", anchor) for anchor in shipped().anchors)


def run(*command: str) -> dict[str, float]:
    """Seconds and memory of a command that reads a log."""
    start = time.monotonic()
    # Into a file: grep stops at the first match when it sees that nobody reads on.
    with tempfile.TemporaryFile() as out:
        subprocess.run(command, stdout=out, check=False)
    return {"seconds": time.monotonic() - start}


def measured(*command: str) -> dict[str, float]:
    """The same in a process between, so that the memory is this command's own."""
    done = subprocess.run([sys.executable, __file__, "run", *command], stdout=subprocess.PIPE, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def compare(megabytes: int) -> None:
    """Print the table."""
    table = Table(title=f"Logs of {megabytes} MB: seconds and peak MB of memory")
    for heading in ("log", "bisector s", "MB", "grep -E s", "MB"):
        table.add_column(heading, justify="left" if heading == "log" else "right")
    with tempfile.TemporaryDirectory() as folder:
        patterns = Path(folder) / "patterns"
        patterns.write_text(expression())
        for name, lines in LOGS.items():
            path = Path(folder) / "server.log"
            write(path, lines(random.Random(1)), megabytes * MEGABYTE)  # noqa: S311 - the same log each time
            ours = measured(sys.executable, "-m", "bisector", "diagnose", str(path))
            greps = measured("grep", "-c", "-a", "-E", "-f", str(patterns), str(path))
            cells = (value for way in (ours, greps) for value in (f"{way['seconds']:.2f}", f"{way['memory']:.0f}"))
            table.add_row(name, *cells)
    Console(width=100).print(table)


def main() -> None:
    """Compare, or be the process that measures one command."""
    match sys.argv[1:]:
        case ["run", *command]:
            answer = run(*command)
            memory = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(json.dumps(answer | {"memory": memory / MEGABYTE}))
        case arguments:
            parser = argparse.ArgumentParser(prog="scripts/bench diagnose", description=__doc__)
            parser.add_argument("--megabytes", type=int, default=200, help="How long each log is.")
            compare(parser.parse_args(arguments).megabytes)


if __name__ == "__main__":
    main()
