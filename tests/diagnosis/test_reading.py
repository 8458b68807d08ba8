"""However a log reaches us, it says the same."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.diagnosis.engine import Reading, diagnose
from bisector.diagnosis.signatures import shipped
from bisector.reference import gpus
from tests.diagnosis.logs import CASES, ids, read, read_lines

TOLD = [case for case in CASES if "cause" in case]
stories = st.sampled_from(TOLD)
COLOUR = "\x1b[0;36m"
PREFIXES = {
    "docker compose": "vllm-1  | ",
    "docker timestamps": "2026-11-29T11:29:58.793139768Z ",
    "containerd": "2026-11-29T11:29:58.793139768Z stderr F ",
    "journald": "Nov 29 11:29:58 gpu-host vllm[1234]: ",
    "kubectl": "[pod/vllm-0/server] ",
    "worker": "(EngineCore pid=93) (Worker_TP0 pid=95) ",
    "level": "(Worker_TP0 pid=95) ERROR 11-29 11:31:32 [core.py:1510] ",
    "coloured": f"{COLOUR}(EngineCore_DP0 pid=93){COLOUR} ",
    "several": "vllm-1  | 2026-11-29T11:29:58Z (EngineCore pid=93) ",
}


def causes(case: dict[str, list[str]]) -> list[str]:
    return ids(read_lines(*case["lines"]))


@given(case=stories, prefix=st.sampled_from(sorted(PREFIXES.values())))
def test_prefixes_change_nothing(case: dict[str, list[str]], prefix: str) -> None:
    diagnosis = read_lines(*(f"{prefix}{line}" for line in case["lines"]))
    assert ids(diagnosis) == causes(case)
    assert not any(cause.excerpt.startswith(prefix.strip()) for cause in diagnosis.causes)


@given(case=stories, data=st.data())
def test_colours_anywhere_change_nothing(case: dict[str, list[str]], data: st.DataObject) -> None:
    lines = []
    for line in case["lines"]:
        place = data.draw(st.integers(0, len(line)))
        lines.append(f"{line[:place]}\x1b[1;31m{line[place:]}\x1b[0m")
    assert ids(read_lines(*lines)) == causes(case)


@given(case=stories, cuts=st.lists(st.integers(0, 5000), max_size=8))
def test_pieces_may_be_cut_anywhere(case: dict[str, list[str]], cuts: list[int]) -> None:
    whole = "".join(f"{line}\n" for line in case["lines"]).encode()
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert read(*pieces) == read(whole)


@given(case=stories, noise=st.binary(max_size=400))
def test_binary_noise_between_lines_changes_nothing(case: dict[str, list[str]], noise: bytes) -> None:
    noise = bytes(byte for byte in noise if byte not in b"\r\n\x1b")
    whole = b"".join(noise + b"\n" + line.encode() + b"\n" for line in case["lines"])
    assert causes(case)[0] in ids(read(whole))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("case", TOLD, ids=[case["name"] for case in TOLD])
def test_encodings_change_nothing(case: dict[str, list[str]], encoding: str) -> None:
    text = "".join(f"{line}\r\n" for line in case["lines"])
    assert ids(read(text.encode(encoding))) == causes(case)


def test_a_log_that_changes_its_encoding() -> None:
    assert ids(
        read("käse\n".encode("latin-1") + "RuntimeError: Failed to infer device type\n".encode("utf-16-le"))
    ) == ["no_gpu_visible"]


@pytest.mark.parametrize("case", TOLD, ids=[case["name"] for case in TOLD])
def test_dockers_own_records(case: dict[str, list[str]]) -> None:
    records = [
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-29T11:29:58Z"}) for line in case["lines"]
    ]
    compact = [record.replace('{"log": "', '{"log":"') for record in records]
    assert ids(read_lines(*compact)) == causes(case)


def test_progress_bars_are_lines_within_a_line() -> None:
    bar = "".join(f"\rLoading safetensors checkpoint shards: {percent:3}% Completed" for percent in range(101))
    diagnosis = read_lines(bar + "\rRuntimeError: Failed to infer device type")
    assert ids(diagnosis) == ["no_gpu_visible"]
    assert diagnosis.causes[0].excerpt == "RuntimeError: Failed to infer device type"


def test_a_line_without_an_end_is_searched_through() -> None:
    filler = b"x" * 3_000_000
    diagnosis = read(filler + b" No CUDA GPUs are available " + filler)
    assert ids(diagnosis) == ["no_gpu_visible"]
    assert (diagnosis.lines, diagnosis.causes[0].line) == (1, 1)
    assert len(diagnosis.causes[0].excerpt) <= 400


def test_lines_are_counted_from_one_across_pieces() -> None:
    lines = [f"INFO line {number}\n" for number in range(50_000)] + ["RuntimeError: Failed to infer device type\n"]
    diagnosis = read(*(line.encode() for line in lines))
    assert (diagnosis.lines, diagnosis.causes[0].line) == (50_001, 50_001)


def test_a_log_may_be_asked_while_it_grows() -> None:
    reading = Reading(shipped(), gpus())
    reading.feed(b"INFO:     Application startup complete.\n")
    assert reading.conclude().causes == ()
    reading.feed(b"vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n")
    assert ids(reading.conclude()) == ["unknown"]


def test_control_characters_of_a_log_reach_nobody() -> None:
    diagnosis = read(b"vllm: error: unrecognized arguments: --x\x07\x9b2J\xe2\x80\xae\n")
    assert all(character.isprintable() for cause in diagnosis.causes for character in cause.title + cause.excerpt)


@settings(max_examples=20, deadline=None)
@given(lines=st.lists(st.text(max_size=200), max_size=30))
def test_any_text_is_read_without_complaint(lines: list[str]) -> None:
    assert read_lines(*lines).exit_code in {0, 3}


def test_memory_does_not_grow_with_the_log() -> None:
    def log(blocks: int) -> Iterator[bytes]:
        for block in range(blocks):
            names = (
                f"ERROR request {block}{chr(97 + number % 20)}{number}zq{number * 7919} not done\n"
                for number in range(20_000)
            )
            yield "".join(names).encode()

    def peak(blocks: int) -> int:
        tracemalloc.start()
        try:
            diagnose(log(blocks), shipped(), gpus())
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(12) < max(1.5 * peak(3), 30_000_000)
