"""``check``, ``inspect``, ``diff`` and ``builds``, on the little index and on local files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.fakes.index import Index
from tests.fakes.wheels import unpack, wheel
from tests.kernels.builds import build as files_of
from tests.kernels.elf import for_archs

LIBRARY = "vllm/third_party/deep_gemm/_C.cpython-312-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("builds", "extra", "code"),
    [
        (("pypi:vllm==0.28.0",), (), 0),
        (("pypi:vllm==0.27.1",), (), 1),
        (("0.26.0", "0.27.0"), (), 1),
        (("vllm==0.28.0",), ("--require", "bf16_gemm"), 0),
        (("0.28.0",), ("--require", "bf16_gem"), 1),
    ],
)
def test_check(bisector: CommandLine, builds: tuple[str, ...], extra: tuple[str, ...], code: int) -> None:
    answer = bisector("check", *builds, "--arch", "RTX 5090", *extra, "--json")
    assert answer.exit_code == code
    assert [build["verdict"] for build in answer.json["builds"]][-1] == ("bad" if code else "good")


def test_the_gate_open_and_the_kernels_missing_is_said_as_the_crash_it_is(bisector: CommandLine) -> None:
    answer = bisector("check", "pypi:vllm==0.27.1", "--arch", "sm120")
    assert "vLLM 0.27.1 sends sm120 to DeepGEMM, and its sm120 kernels are missing" in answer.out
    assert bisector("check", "0.27.1", "--arch", "sm120", "--json").json["builds"][0]["gate"] == "crash"


@pytest.mark.parametrize("form", ["wheel", "directory", "library"])
def test_local_files_are_builds_too(bisector: CommandLine, tmp_path: Path, form: str) -> None:
    files = files_of("sm90", "sm120")
    match form:
        case "wheel":
            path = tmp_path / "vllm-1-py3-none-any.whl"
            path.write_bytes(wheel(files))
        case "directory":
            path = unpack(files, tmp_path / "site-packages")
        case _:
            path = tmp_path / "_C.so"
            path.write_bytes(for_archs("sm90", "sm120"))
    answer = bisector("inspect", str(path), "--json")
    assert answer.exit_code == 0
    assert answer.json["kernels"]["sm120"] == ["bf16_gemm", "fp8_fp4_gemm_1d1d"]
    assert answer.json["evidence"] == ("wheel" if form == "wheel" else "file")
    assert bisector("check", str(path), "--arch", "sm120").exit_code == 0
    assert bisector("check", str(path), "--arch", "sm100").exit_code == 1


@pytest.mark.parametrize(
    ("name", "content", "code", "status"),
    [
        ("broken.whl", b"PK\x03\x04 but no directory", 3, None),
        ("text.so", b"just text", 3, "unreadable"),
        ("truncated.so", for_archs("sm120")[:200], 3, "unreadable"),
        ("empty.so", b"", 3, "unreadable"),
        ("hostile.so", b"\x7fELF\x02\x01\x01" + b"\xff" * 200, 3, "unreadable"),
    ],
)
def test_a_file_that_cannot_be_understood_is_no_answer(
    bisector: CommandLine, tmp_path: Path, name: str, content: bytes, code: int, status: str | None
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    answer = bisector("inspect", str(path), "--json")
    assert answer.exit_code == code
    if status:
        assert answer.json["deep_gemm"]["status"] == status
        assert answer.json["deep_gemm"]["reason"]
    else:
        assert answer.json["ok"] is False
        assert answer.json["hint"]
    assert bisector("check", str(path), "--arch", "sm120").exit_code == 3


def test_a_file_that_is_not_there_is_a_mistake_in_the_request(bisector: CommandLine, tmp_path: Path) -> None:
    answer = bisector("inspect", str(tmp_path / "nowhere.whl"))
    assert answer.exit_code == 2
    assert "nowhere.whl" in answer.err


def test_a_changed_file_at_the_same_path_is_read_again(bisector: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "vllm-1-py3-none-any.whl"
    path.write_bytes(wheel(files_of("sm120")))
    assert bisector("check", str(path), "--arch", "sm120").exit_code == 0
    path.write_bytes(wheel(files_of("sm90")))
    assert bisector("check", str(path), "--arch", "sm120").exit_code == 1


def test_diff_says_what_was_lost_and_exits_one(bisector: CommandLine) -> None:
    answer = bisector("diff", "0.26.0", "0.27.0", "--json")
    assert answer.exit_code == 1
    assert answer.json["kernels"] == {"sm120": {"lost": ["bf16_gemm", "fp8_fp4_gemm_1d1d"], "gained": []}}
    assert bisector("diff", "0.27.0", "0.28.0").exit_code == 0
    assert "sm120 gained 2 operations" in bisector("diff", "0.27.0", "0.28.0").out


def test_builds_show_what_the_history_knows(bisector: CommandLine, index: Index) -> None:
    bisector("find-regression", "--arch", "sm120", "--source", "pypi:vllm")
    read = len(index.asked_ranges())
    lines = bisector("builds", "--source", "pypi:vllm").out.splitlines()
    row = {line.split()[0]: line.split()[1:] for line in lines[2:] if line.strip()}
    assert row["0.26.0"] == ["2026-07-25", "2", "2", "2"]
    assert row["0.27.0"] == ["2026-08-10", "2", "2", "○"]
    assert row["0.27.1"] == ["2026-08-11", "●", "●", "○"]
    assert len(index.asked_ranges()) == read
