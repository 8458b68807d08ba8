"""What scripts rely on: exit codes, one shape of errors, configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bisector import errors
from bisector.cli.app import bisector as group
from bisector.cli.app import register, run
from tests.cli.conftest import CommandLine

register()
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def every_error() -> list[type[errors.BisectorError]]:
    found, waiting = [], [errors.BisectorError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_a_hint_and_an_exit_code_and_stands_in_the_tree(kind: type[errors.BisectorError]) -> None:
    error = kind("it failed")
    assert error.hint.strip()
    assert error.exit_code in {1, 2, 3, 4}
    assert errors.__doc__
    assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize("name", sorted(group.commands))
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"bisector {name} --help" in README


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 70, 130])
def test_every_exit_code_is_in_the_readme(code: int) -> None:
    assert f"| {code} |" in README


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--json"),
        ("find-regression", "--json"),
        ("find-regression", "--arch", "sm999", "--json"),
        ("find-regression", "--arch", "sm86", "--json"),
        ("find-regression", "--arch", "sm120", "--since", "soon", "--json"),
        ("find-regression", "--arch", "sm120", "--strategy", "guess", "--json"),
        ("inspect", "pypi:vllm", "--json"),
        ("inspect", "pypi:vllm==0.0.99", "--json"),
        ("check", "pypi:nothing==1", "--arch", "sm120", "--json"),
        ("builds", "--source", "floppy:a", "--json"),
        ("builds", "--platform", "amiga", "--json"),
    ],
)
def test_a_mistake_in_the_request_is_one_object_and_exit_two(bisector: CommandLine, arguments: tuple[str, ...]) -> None:
    answer = bisector(*arguments)
    assert answer.exit_code == 2
    assert answer.json.keys() == {"schema_version", "ok", "error", "hint", "exit_code"}
    assert answer.json["exit_code"] == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("db = ", "TOML"),
        ("colour = 1", "colour"),
        ("[pypi]\nindeks = 'x'", "indeks"),
        ("[find-regression]\narc = 'sm120'", "'arch'"),
        ("[pypi]\nindex = 3", "index"),
        ("pypi = 3", "pypi"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, names: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert run(["--config", str(path), "builds"]) == 2
    assert names in capsys.readouterr().err


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", str(tmp_path / "no.toml"), "builds"]) == 2
    assert "no.toml" in capsys.readouterr().err


def test_command_line_over_environment_over_file(bisector: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bisector.folder / "config.toml"
    base = f'[pypi]\nindex = "{bisector.index.url}"\n'
    path.write_text(f'db = "{bisector.folder}/own.db"\n{base}[check]\narch = "sm100"\n')
    start = ["--config", str(path), "check", "pypi:vllm==0.27.0"]
    assert run(start) == 0
    assert (bisector.folder / "own.db").exists()
    monkeypatch.setenv("BISECTOR_CHECK_ARCH", "sm120")
    assert run(start) == 1
    assert run([*start, "--arch", "sm90"]) == 0


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from bisector.cli.app import run; run(['--help']);"
        "heavy = {'lief', 'httpx', 'aiosqlite', 'pypi_simple', 'docker', 'anyio'} & set(sys.modules);"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_history_that_cannot_be_opened_is_exit_four(bisector: CommandLine) -> None:
    (bisector.folder / "history.db").write_bytes(b"this is no database" * 100)
    answer = bisector("builds", "--json")
    assert answer.exit_code == 4
    assert "history.db" in answer.json["error"]
