"""Searches over the lab: real wheels' content in a real registry, behind Docker Hub's manners."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import BisectorError
from tests.fakes.answering import Answer, answered
from tests.lab.lab import Lab
from tests.lab.scenario import Scenario


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.registry)
            item.add_marker(pytest.mark.online)


@dataclass(slots=True)
class Bisector:
    """The command line with a history of its own, pointed at a lab."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    lab: Lab

    def __call__(self, *arguments: str, db: str = "history.db") -> Answer:
        config = self.folder / "config.toml"
        config.write_text(self.lab.config_toml())
        return answered(self.capsys, "--config", str(config), "--db", str(self.folder / db), *arguments)

    def find(self, *arguments: str, **options: Any) -> Answer:
        return self("find-regression", "--arch", "sm120", *arguments, "--json", **options)


Start = Callable[..., Bisector]


@pytest.fixture
def start(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Bring up a lab for a scenario."""
    if shutil.which("docker-registry") is None:
        pytest.skip("Debian's docker-registry is not installed (apt-get install docker-registry)")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker-configuration"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    with ExitStack() as stack:

        def started(scenario: Scenario | None = None) -> Bisector:
            try:
                lab = stack.enter_context(Lab(scenario))
            except BisectorError as error:
                pytest.skip(f"the lab needs the package index: {error.message}")
            return Bisector(tmp_path, capsys, lab)

        yield started
