from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from bisector.cli.app import run
from tests.diagnosis.logs import CASES

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB.\n"
CAUSE_KEYS = {"id", "layer", "arch", "title", "line", "excerpt", "meaning", "advice", "certainty"}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where no history can be opened, since these commands must not want one."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("BISECTOR_DB", str(tmp_path / "nowhere" / "history.db"))
    return tmp_path


def log(folder: Path, text: str) -> str:
    path = folder / "server.log"
    path.write_text(text)
    return str(path)


def test_diagnose_answers_in_json(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", log(outside, OUT_OF_MEMORY), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], document["command"], document["ok"]) == (1, "diagnose", True)
    [cause] = document["causes"]
    assert cause.keys() == CAUSE_KEYS
    assert (cause["id"], cause["layer"], cause["line"], cause["certainty"]) == (
        "cuda_out_of_memory",
        "memory",
        1,
        "likely",
    )
    assert not (outside / "nowhere").exists()


def test_diagnose_reads_standard_input(
    outside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["diagnose"], ["diagnose", "-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OUT_OF_MEMORY.encode())))
        assert run(arguments) == 0
        assert "ran out of memory" in capsys.readouterr().out
    assert not (outside / "nowhere").exists()


def test_diagnose_fits_a_terminal(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for case in CASES:
        run(["diagnose", log(outside, "\n".join(case["lines"]))])
        lines = capsys.readouterr().out.splitlines()
        assert lines
        assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("text", "code"), [("INFO: fine\n", 0), ("MoonError: wrong house\n", 3), ("", 3)])
def test_diagnose_tells_scripts(outside: Path, capsys: pytest.CaptureFixture[str], text: str, code: int) -> None:
    assert run(["diagnose", log(outside, text)]) == code
    assert capsys.readouterr().out


def test_audit_answers_in_json(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", log(outside, "docker run --env-file a.env IMAGE --enforce-eager"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    [flag] = document["flags"]
    assert flag.keys() == {"flag", "kind", "why", "remove_when", "cost", "line"}
    assert (flag["flag"], flag["kind"], flag["line"]) == ("--enforce-eager", "flag", 1)
    assert document["elsewhere"] == ["a.env"]


def test_audit_fits_a_terminal(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", log(outside, "vllm serve m --enforce-eager\nexport NCCL_P2P_DISABLE=1")]) == 0
    out = capsys.readouterr().out
    assert "--enforce-eager  line 1" in out
    assert "NCCL_P2P_DISABLE=1  line 2" in out
    assert max(map(len, out.splitlines())) <= 80


def test_audit_finds_nothing_where_nothing_is(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", log(outside, "vllm serve m")]) == 0
    assert "No workarounds" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["diagnose", "audit"])
def test_what_cannot_be_read_is_named(outside: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, str(outside / "no.log"), "--json"]) == 2
    assert "no.log" in json.loads(capsys.readouterr().out)["error"]
    assert run([command, str(outside), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["exit_code"] == 3


def test_audit_refuses_what_is_no_command(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (outside / "image").write_bytes(b"\x7fELF\0\0")
    assert run(["audit", str(outside / "image")]) == 3
    assert "no launch command" in capsys.readouterr().err
