"""The crontab line, the units, the container recipe and the workflow: each tried as far as it can be here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bisector.cli.app import bisector, register, run

DATA = Path(__file__).parents[2] / "data"


def is_understood(command: str) -> bool:
    """Whether bisector knows every word of a command line; its configuration is not there, and not looked for."""
    words = re.sub(r"--config \S+", "", command.partition(" >>")[0]).split()
    assert words.pop(0) == "bisector"
    register()
    context = bisector.make_context("bisector", words, resilient_parsing=True)
    name, found, rest = bisector.resolve_command(context, [*context._protected_args, *context.args])
    assert found is not None
    found.make_context(name, rest, parent=context)
    return True


def test_the_crontab_line_is_one_that_cron_and_bisector_understand(tmp_path: Path) -> None:
    (line,) = [line for line in (DATA / "crontab").read_text().splitlines() if not line.startswith("#")]
    minute, hour, *rest = line.split(" ", 5)
    assert (int(minute) < 60, int(hour) < 24, rest[:3]) == (True, True, ["*", "*", "*"])
    command = rest[3]
    assert "%" not in command  # cron would read it as the end of the line
    assert is_understood(command.rpartition("; ")[2])
    # Run as cron does, with what it needs elsewhere than in /etc.
    (tmp_path / "environment").write_text("BISECTOR_CHAT_URL=nonsense://\n")
    (tmp_path / "config.toml").write_text("")
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    command = command.replace("/etc/bisector", str(tmp_path))
    ended = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, b"", b"")
    assert "Nothing is watched" in (tmp_path / "bisector.log").read_text()


def test_systemd_finds_no_fault_with_the_units(tmp_path: Path) -> None:
    service = (DATA / "systemd/bisector.service").read_text()
    command = re.search(r"^ExecStart=/usr/bin/env (.*)$", service, re.MULTILINE)
    assert command is not None
    assert is_understood(command[1])
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd is not installed")
    units = [shutil.copy(unit, tmp_path) for unit in sorted((DATA / "systemd").iterdir())]
    assert len(units) == 2
    found = subprocess.run([verify, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_workflow_is_one_and_its_commands_exist() -> None:
    workflow = yaml.safe_load((DATA / "github/nightly.yml").read_text())
    assert workflow[True]["schedule"] == [{"cron": "17 6 * * *"}]  # YAML 1.1 reads the key `on` as true
    steps = workflow["jobs"]["nightly"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("bisector")]
    assert len(commands) == 2
    assert all(is_understood(command) for command in commands)
    assert workflow["permissions"] == {"contents": "read", "issues": "write"}


def test_the_container_recipe_copies_what_there_is_and_does_not_run_as_root() -> None:
    recipe = (DATA / "container/Containerfile").read_text()
    instructions = [line.split(" ") for line in recipe.splitlines() if re.match(r"[A-Z]+ ", line)]
    for words in instructions:
        if words[0] == "COPY" and not words[1].startswith("--from"):
            assert all((DATA.parent / name).exists() for name in words[1:-1])
    assert ["USER", "bisector"] in instructions
    (start,) = [line for line in recipe.splitlines() if line.startswith("CMD ")]
    assert is_understood(f"bisector {' '.join(yaml.safe_load(start.removeprefix('CMD ')))}")
    extras = re.search(r"\.\[([\w,]+)\]", recipe)
    project = (DATA.parent / "pyproject.toml").read_text()
    assert extras is not None
    assert all(f"\n{extra} = [" in project for extra in extras[1].split(","))


def test_every_command_of_the_night_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["nightly"], ["report"], ["notify"], ["config"], ["config", "init"], ["config", "show"]):
        assert run([*words, "--help"]) == 0
        assert "Usage:" in capsys.readouterr().out
