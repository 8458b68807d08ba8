from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.cli.conftest import STORY, CommandLine, add_release
from tests.fakes.index import Index, Refuse
from tests.kernels.elf import elf

FIND = ("find-regression", "--arch", "sm120", "--source", "pypi:vllm")
LIBRARY = "vllm/third_party/deep_gemm/_C.cpython-312-x86_64-linux-gnu.so"


def pair(document: dict[str, dict[str, str]]) -> tuple[str, str]:
    return document["last_good"]["id"], document["first_bad"]["id"]


@pytest.mark.parametrize(
    "range_",
    [
        (),
        ("--good", "0.26.0", "--bad", "0.27.1"),
        ("--good", "2026-07-30", "--bad", "2026-08-15"),
        ("--good", "00000a25a"[:9].replace("00000a25a", "0.25.0"), "--bad", "0.27.0"),
        ("--bad", "0.27.1"),
        ("--since", "2026-07-01"),
        ("--strategy", "bisect"),
    ],
)
def test_the_same_pair_however_the_range_is_given(bisector: CommandLine, range_: tuple[str, ...]) -> None:
    answer = bisector(*FIND, *range_, "--json")
    assert answer.exit_code == 1
    assert pair(answer.json) == ("0.26.0", "0.27.0")
    assert answer.json["outcome"] == "found"
    assert answer.json["lost"] == ["bf16_gemm", "fp8_fp4_gemm_1d1d"]


def test_the_line_to_ask_again_gives_the_same_answer(bisector: CommandLine) -> None:
    first = bisector(*FIND, "--json").json
    words = first["reproduce"].split()
    assert words[0] == "bisector"
    assert pair(bisector(*words[1:], "--json").json) == pair(first)


def test_a_commit_that_the_history_knows_is_an_end(bisector: CommandLine) -> None:
    commit = bisector(*FIND, "--json").json["first_bad"]["commit"]
    assert pair(bisector(*FIND, "--bad", commit, "--json").json) == ("0.26.0", "0.27.0")


def test_an_unreadable_build_at_the_change_is_never_stepped_over(bisector: CommandLine, index: Index) -> None:
    index.add("vllm-0.26.1-cp38-abi3-manylinux_2_28_x86_64.whl", b"no zip at all", uploaded="2026-08-01T00:00:00Z")
    answer = bisector(*FIND, "--json")
    assert answer.exit_code == 3
    assert answer.json["outcome"] == "found-between"
    assert pair(answer.json) == ("0.26.0", "0.27.0")
    assert answer.json["untestable"] == ["0.26.1"]


def test_a_library_that_cannot_be_read_overrules_what_the_names_said(bisector: CommandLine, index: Index) -> None:
    garbage = elf({".rodata": b"nothing that looks like a template"})
    add_release(index, "0.26.1", "2026-08-01", ("sm90", "sm120"), **{LIBRARY: garbage})
    answer = bisector(*FIND, "--json")
    assert answer.json["outcome"] == "found-between"
    assert answer.json["untestable"] == ["0.26.1"]
    reasons = {entry["id"]: entry["reason"] for entry in answer.json["timeline"]}
    assert "template" in reasons["0.26.1"]


def test_a_release_without_a_wheel_for_the_platform_is_untestable(bisector: CommandLine) -> None:
    answer = bisector(*FIND, "--platform", "linux/arm64", "--json")
    assert (answer.exit_code, answer.json["outcome"]) == (3, "inconclusive")


def test_a_yanked_release_is_listed_and_not_searched(bisector: CommandLine, index: Index) -> None:
    content = index.files["vllm-0.27.0-cp38-abi3-manylinux_2_28_x86_64.whl"].content
    index.add("vllm-0.26.5-cp38-abi3-manylinux_2_28_x86_64.whl", content, uploaded="2026-08-01T00:00:00Z", yanked=True)
    assert pair(bisector(*FIND, "--json").json) == ("0.26.0", "0.27.0")
    listed = {
        build["id"]: build["marks"] for build in bisector("builds", "--source", "pypi:vllm", "--json").json["builds"]
    }
    assert listed["0.26.5"] == ["yanked"]


def test_ends_the_wrong_way_round_that_hold_are_a_mistake_in_the_request(bisector: CommandLine) -> None:
    answer = bisector(*FIND, "--good", "0.28.0", "--bad", "0.27.0")
    assert answer.exit_code == 2
    assert "--find-fix" in answer.err


def test_nothing_found_is_said_with_how_far_it_looked(bisector: CommandLine) -> None:
    answer = bisector("find-regression", "--arch", "H100", "--source", "pypi:vllm")
    assert answer.exit_code == 0
    assert answer.out.splitlines()[0] == (
        "sm90 kernels in pypi:vllm: no loss in 6 builds looked at (0.24.0 to 0.28.0)."
    )


def test_a_plan_reads_no_build(bisector: CommandLine, index: Index) -> None:
    answer = bisector(*FIND, "--plan", "--json")
    assert answer.exit_code == 0
    assert answer.json["plan"]["at_most"] == 6
    assert index.asked_ranges() == []


def test_asked_again_it_reads_nothing_but_the_listing_unless_told_to(bisector: CommandLine, index: Index) -> None:
    bisector(*FIND)
    read = len(index.asked_ranges())
    assert bisector(*FIND, "--json").json["cost"]["probes"] == 0
    assert len(index.asked_ranges()) == read
    assert bisector(*FIND, "--refresh", "--json").json["cost"]["probes"] > 0


def test_a_server_without_ranges_is_told_so_and_the_way_on_works(bisector: CommandLine, index: Index) -> None:
    index.ranges = False
    for release, uploaded, archs in STORY:  # larger than what one request for the directory fetches
        add_release(index, release, uploaded, archs, **{"vllm/filler.bin": Random(0).randbytes(1 << 20)})
    refused = bisector(*FIND)
    assert refused.exit_code == 3
    assert "--allow-full-download" in refused.err
    assert pair(bisector("--allow-full-download", *FIND, "--json").json) == ("0.26.0", "0.27.0")


def test_an_index_that_is_down_is_no_verdict(bisector: CommandLine, index: Index) -> None:
    index.trouble.extend([Refuse(status=503)] * 10)
    answer = bisector(*FIND, "--json")
    assert answer.exit_code == 4
    assert answer.json["ok"] is False
    assert answer.json["exit_code"] == 4
    assert answer.json["hint"]


def test_piped_there_is_no_colour_no_progress_and_no_trailing_blank(bisector: CommandLine) -> None:
    answer = bisector(*FIND)
    assert answer.err == ""
    assert "\x1b" not in answer.out
    assert all(line == line.rstrip() and len(line) <= 80 for line in answer.out.splitlines())


def test_verbose_tells_each_step_on_stderr(bisector: CommandLine) -> None:
    answer = bisector("-v", *FIND)
    assert "reading pypi:vllm==0.27.0" in answer.err
    assert "reading" not in answer.out


def test_interrupted_it_keeps_what_it_read_and_says_how_to_go_on(tmp_path: Path, index: Index) -> None:
    config, db = tmp_path / "config.toml", tmp_path / "history.db"
    config.write_text(f'[pypi]\nindex = "{index.url}"\n')
    words = ["--config", str(config), "--db", str(db), *FIND, "--strategy", "bisect"]
    # Three looks succeed; then the server asks to wait for longer than this test.
    before = len(index.seen)
    process = subprocess.Popen(
        [sys.executable, "-m", "bisector", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(index.seen) - before < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    index.trouble.extend([Refuse(status=429, headers={"Retry-After": "50"})] * 10)
    while not any(row for row in _observed(db)) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "find-regression --arch sm120 --source pypi:vllm --strategy bisect" in err.splitlines()[-1]
    assert _observed(db)


def _observed(db: Path) -> list[tuple[str]]:
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT digest FROM observations").fetchall()
    except sqlite3.OperationalError:
        return []
