"""The proof against a real engine, with a stand-in for the server that boots in a second."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.boot.door import slow_door
from tests.boot.sshd import SshServer
from tests.boot.stand_in.image import with_behaviour
from tests.kernels.builds import build
from tests.lab.engine import DockerEngine
from tests.lab.registry import PROGRAM, Registry

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

PROFILE = """
title = "A stand-in"
arch = "sm120"
model = "/models/tiny"

[context]
tokens = {tokens}
start = 8192
step = 64

[[mount]]
host = "{models}"
container = "/models"

[heaviest]
prompt-tokens = {prompt}
output-tokens = 16

[benchmark]
prompts = 5

[timeouts]
boot = {patience}

[limits]
shm = "64m"
memory = "256m"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``bisector confirm`` against the engine, with a history of its own."""

    engine: DockerEngine
    folder: Path
    environment: Mapping[str, str]

    def profile(self, *, more: str = "", tokens: int = 16384, prompt: int = 12_000, patience: float = 30) -> Path:
        models = self.folder / "models"
        (models / "tiny").mkdir(parents=True, exist_ok=True)
        (models / "tiny" / "config.json").write_text("{}")
        file = self.folder / "tiny.toml"
        file.write_text(PROFILE.format(models=models, tokens=tokens, prompt=prompt, patience=patience) + more)
        return file

    def words(self, *builds: str, profile: Path, command: str = "confirm") -> list[str]:
        history = str(self.folder / "history.db")
        words = [sys.executable, "-m", "bisector", "--db", history, command, *builds]
        return [*words, "--profile", str(profile), "--json"]

    def run(self, *builds: str, profile: Path | None = None, command: str = "confirm") -> tuple[int, Any]:
        words = self.words(*builds, profile=profile or self.profile(), command=command)
        ran = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
        print(ran.stderr)  # noqa: T201 - shown when a test fails
        return ran.returncode, json.loads(ran.stdout)

    def containers(self) -> list[str]:
        return self.engine.docker("ps", "-aq").decode().split()

    def boots(self) -> list[tuple[str, str]]:
        with sqlite3.connect(self.folder / "history.db") as database:
            return database.execute("SELECT build, outcome FROM boot_results ORDER BY started_at").fetchall()


@pytest.fixture
def command(stand_in: DockerEngine, tmp_path: Path) -> Iterator[Command]:
    environment = {
        **stand_in.environment,
        "BISECTOR_CONFIG": str(tmp_path / "config.toml"),
        "HOME": str(tmp_path),
    }
    (tmp_path / "config.toml").write_text('[pypi]\nindex = "http://127.0.0.1:9/simple"\n')
    made = Command(engine=stand_in, folder=tmp_path, environment=environment)
    yield made
    assert made.containers() == []


def test_a_build_that_holds(command: Command) -> None:
    code, answer = command.run(with_behaviour(command.engine, "good"))
    assert (code, answer["outcome"]) == (0, "holds")
    (build,) = answer["builds"]
    assert [(rung["context"], rung["boots"]) for rung in build["ladder"]] == [(8192, True), (16384, True)]
    last = build["boots"][-1]
    assert list(last["phases"]) == ["pulled", "started", "weights", "profiled", "healthy", "answering"]
    assert last["facts"]["kv_tokens"] == 16_384
    assert last["heaviest"]["prompt_tokens"] == 12_000
    assert [made["warm_up"] for made in last["passes"]] == [True, False, False, False]
    assert command.boots() == [("stand-in:good", "answered")] * 2


def test_the_longest_context_that_boots_is_found(command: Command) -> None:
    code, answer = command.run(with_behaviour(command.engine, "small", fits=12_000))
    (build,) = answer["builds"]
    assert (code, build["context"], build["goal"]) == (1, 12_000, 16_384)
    assert build["ladder"][1] == {"context": 16_384, "boots": False, "estimated": 12_000}


FAILURES: dict[str, tuple[dict[str, Any], str, str, int]] = {
    "lost": ({"lost": True}, "failed", "deepgemm_no_arch_kernels", 1),
    "oom": ({"eats": True}, "failed", "container_out_of_memory", 1),
    "first": ({"dies_at": "chat/completions"}, "failed", "", 1),
    "bench": ({"dies_at": "benchmark"}, "failed", "", 1),
    "hangs": ({"hangs": True}, "timed-out", "", 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_fails_is_named(command: Command, name: str) -> None:
    behaviour, outcome, cause, code = FAILURES[name]
    spelled = with_behaviour(command.engine, name, **behaviour)
    patience = 3 if name == "hangs" else 30
    found, answer = command.run(spelled, profile=command.profile(tokens=12_016, patience=patience))
    (build,) = answer["builds"]
    assert (found, build["outcome"]) == (code, outcome)
    if cause:
        assert build["causes"][0]["id"] == cause


@pytest.mark.parametrize(
    ("more", "outcome", "words"),
    [
        ('[gpus]\ncount = 1\narch = "sm120"\n', "no-hardware", "no GPU can be used"),
        (
            "[[mount]]\nhost = '/nowhere/at/all'\ncontainer = '/x'\n",
            "no-hardware",
            "nothing can be read at /nowhere/at/all",
        ),
    ],
)
def test_what_the_machine_lacks_is_no_failure_of_the_image(
    command: Command, more: str, outcome: str, words: str
) -> None:
    code, answer = command.run(with_behaviour(command.engine, "good"), profile=command.profile(more=more))
    (build,) = answer["builds"]
    assert (code, build["outcome"]) == (4, outcome)
    assert words in build["reason"]


def test_a_port_that_is_taken_is_no_failure_of_the_image(command: Command) -> None:
    profile = command.profile()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        profile.write_text(f"port = {taken.getsockname()[1]}\n{profile.read_text()}")
        code, answer = command.run(with_behaviour(command.engine, "good"), profile=profile)
    (build,) = answer["builds"]
    assert (code, build["outcome"]) == (4, "unavailable")
    assert "is taken" in build["reason"]


def test_a_slower_build_is_worse_and_the_same_is_a_tie(command: Command) -> None:
    fast, slow = (with_behaviour(command.engine, name, tpot=tpot) for name, tpot in (("fast", 20.0), ("slow", 24.0)))
    code, answer = command.run(fast, slow, profile=command.profile(tokens=12_016))
    assert (code, answer["comparison"]["standing"]) == (1, "worse")
    assert answer["comparison"]["measures"][0]["change"] == pytest.approx(0.2, abs=0.01)
    code, answer = command.run(fast, fast, profile=command.profile(tokens=12_016))
    assert (code, answer["comparison"]["standing"]) == (0, "tie")


INTERRUPTIONS = [
    ("started", signal.SIGINT),
    ("started", signal.SIGKILL),
    ("weights", signal.SIGTERM),
    ("healthy", signal.SIGKILL),
    ("answering", signal.SIGINT),
    ("heaviest", signal.SIGKILL),
    ("warm-up", signal.SIGTERM),
    ("warm-up", signal.SIGKILL),
]


@pytest.mark.parametrize(("phase", "stop"), INTERRUPTIONS)
def test_an_interruption_leaves_nothing_for_long(command: Command, phase: str, stop: signal.Signals) -> None:
    spelled = with_behaviour(command.engine, "paced", pace=0.3)
    words = command.words(spelled, profile=command.profile(tokens=8192, prompt=2000))
    process = subprocess.Popen(words, env=command.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait_for_line(process, lambda line: phase in line)
        process.send_signal(stop)
        code = process.wait(timeout=30)
    finally:
        process.kill()
        process.communicate()
    if stop is not signal.SIGKILL:
        assert code == 130
        assert command.containers() == []
        assert command.boots() == [("stand-in:paced", "interrupted")]
    code, _ = command.run(with_behaviour(command.engine, "good"), profile=command.profile(tokens=8192, prompt=2000))
    assert code == 0
    assert command.boots()[0] == ("stand-in:paced", "interrupted")


def test_a_machine_elsewhere_is_left_clean_too(command: Command, sshd: SshServer) -> None:
    good, paced = with_behaviour(command.engine, "good"), with_behaviour(command.engine, "paced", pace=0.3)
    away = replace(
        command, environment={**command.environment, "PATH": os.environ["PATH"], "DOCKER_HOST": "unix:///none"}
    )
    arguments = ("--host", sshd.to(command.engine))
    profile = command.profile(tokens=8192, prompt=2000)
    code, answer = away.run(good, *arguments, profile=profile)
    assert (code, answer["outcome"], answer["host"]) == (0, "holds", arguments[1])
    words = away.words(paced, *arguments, profile=profile)
    process = subprocess.Popen(
        words, env=away.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _wait_for_line(process, lambda line: "answering" in line)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all that it started
        assert process.wait(timeout=30) == 130
    finally:
        process.kill()
        process.communicate()
    assert command.containers() == []


def test_a_machine_that_is_in_use_is_left_alone(command: Command) -> None:
    spelled = with_behaviour(command.engine, "paced", pace=1.0)
    words = command.words(spelled, profile=command.profile())
    first = subprocess.Popen(words, env=command.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait_for_line(first, lambda line: "started" in line)
        code, answer = command.run(with_behaviour(command.engine, "good"))
        assert (code, answer["ok"]) == (4, False)
        assert f"held by process {first.pid}" in answer["error"]
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=30) == 130
    finally:
        first.kill()
        first.communicate()


def test_the_first_slow_build_of_six_is_found(command: Command) -> None:
    for night in range(1, 7):
        with_behaviour(command.engine, f"slowing:{night}", tpot=20.0 if night < 5 else 24.0)
    arguments = ("--arch", "sm120", "--source", "docker:slowing", "--by", "tpot", "--good", "1", "--bad", "6")
    profile = command.profile(tokens=8192, prompt=2000)
    code, answer = command.run(*arguments, profile=profile, command="find-regression")
    assert (code, answer["outcome"], answer["by"]) == (1, "found", "tpot")
    assert (answer["last_good"]["id"], answer["first_bad"]["id"]) == ("4", "5")


def test_the_first_build_that_does_not_answer_is_found(command: Command) -> None:
    for night in range(1, 7):
        with_behaviour(command.engine, f"failing:{night}", lost=night >= 3)
    arguments = ("--arch", "sm120", "--source", "docker:failing", "--by", "boot", "--good", "1", "--bad", "6")
    profile = command.profile(tokens=8192, prompt=2000)
    code, answer = command.run(*arguments, profile=profile, command="find-regression")
    assert (code, answer["outcome"]) == (1, "found")
    assert (answer["last_good"]["id"], answer["first_bad"]["id"]) == ("2", "3")


def test_what_the_kernels_say_is_confirmed_by_booting(command: Command) -> None:
    for night, archs in enumerate((("sm90", "sm120"), ("sm90", "sm120"), ("sm90",), ("sm90",))):
        lost = "sm120" not in archs
        with_behaviour(command.engine, f"losing:{night}", packages=build(*archs), lost=lost)
    arguments = ("--arch", "sm120", "--source", "docker:losing", "--confirm")
    profile = command.profile(tokens=8192, prompt=2000)
    code, answer = command.run(*arguments, profile=profile, command="find-regression")
    assert (code, answer["outcome"]) == (1, "found")
    assert (answer["last_good"]["id"], answer["first_bad"]["id"]) == ("1", "2")
    assert answer["confirmation"]["agreement"] == "confirmed"
    assert answer["confirmation"]["builds"][1]["causes"][0]["id"] == "deepgemm_no_arch_kernels"


@pytest.fixture
def registry(command: Command) -> Iterator[Registry]:
    """A registry that holds ``mine/vllm:nightly``, which the engine has not."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not installed")
    with_behaviour(command.engine, "good")
    folder = command.folder / "registry"
    folder.mkdir()
    registry = Registry(folder)
    try:
        image = f"{registry.url.removeprefix('http://')}/mine/vllm:nightly"
        for arguments in (("tag", "stand-in:good", image), ("push", "-q", image), ("rmi", image)):
            command.engine.docker(*arguments)
        yield registry
    finally:
        registry.close()


@pytest.mark.registry
def test_an_image_is_pulled_from_a_registry(command: Command, registry: Registry) -> None:
    repository = f"{registry.url.removeprefix('http://')}/mine/vllm"
    profile = command.profile(tokens=8192, prompt=2000)
    code, answer = command.run(f"{repository}:nightly", profile=profile)
    assert (code, answer["outcome"]) == (0, "holds")
    code, answer = command.run(f"{repository}:none", profile=profile)
    assert (code, answer["ok"]) == (2, False)


@pytest.mark.registry
@pytest.mark.parametrize(
    ("stop", "silent"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGKILL, False)],
    ids=["Ctrl-C", "Ctrl-C, the registry silent", "kill -9"],
)
def test_a_pull_can_be_interrupted(
    command: Command, empty_engine: DockerEngine, registry: Registry, stop: signal.Signals, *, silent: bool
) -> None:
    door = slow_door(int(registry.url.rpartition(":")[2]), rate=2_000_000)
    words = command.words(f"127.0.0.1:{door.port}/mine/vllm:nightly", profile=command.profile())
    process = subprocess.Popen(
        [*words[:3], "-v", *words[3:]],
        env={**command.environment, **empty_engine.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _wait_for_line(process, lambda line: "pulling" in line)
        if silent:
            door.rate = 0.001
            time.sleep(2)  # what was under way comes through
        process.send_signal(stop)
        assert process.wait(timeout=30) == (130 if stop is signal.SIGINT else -signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
        door.close()


def test_a_workaround_that_is_no_longer_needed_is_told(command: Command) -> None:
    profile = command.profile(tokens=8192, prompt=2000, more='[[flag]]\nname = "--enforce-eager"\n')
    code, answer = command.run("--try", with_behaviour(command.engine, "good"), profile=profile, command="audit")
    assert (code, answer["boots"]) == (0, True)
    assert [(flag["flag"], flag["needed"]) for flag in answer["flags"]] == [("--enforce-eager", False)]


def test_what_cannot_be_booted_is_found_all_the_same(command: Command) -> None:
    for name, archs in (("a", ("sm90", "sm120")), ("b", ("sm90",))):
        with_behaviour(command.engine, f"parting:{name}", packages=build(*archs))
    nowhere = command.profile(more="[[mount]]\nhost = '/nowhere/at/all'\ncontainer = '/x'\n")
    arguments = ("--arch", "sm120", "--source", "docker:parting", "--confirm")
    code, answer = command.run(*arguments, profile=nowhere, command="find-regression")
    assert (code, answer["outcome"]) == (1, "found")
    assert answer["confirmation"]["agreement"] == "untested"


def _wait_for_line(process: subprocess.Popen[bytes], wanted: Callable[[str], bool]) -> None:
    deadline = time.monotonic() + 60
    assert process.stderr is not None
    for line in process.stderr:
        if wanted(line.decode()):
            return
        assert time.monotonic() < deadline
    pytest.fail("the command ended before it came so far")
