"""Tests on the real index share one history, so that the whole folder reads each wheel once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from bisector.cli.app import run
from bisector.errors import BisectorError
from bisector.http import Http
from bisector.streams.pip_index import pip_index


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.online)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


Ask = Callable[..., Answer]


@pytest.fixture(scope="session")
def shared_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def reachable() -> None:
        index = await pip_index()
        async with Http(ca_file=index.ca_file) as http:
            await http.get(f"{index.url}/vllm/", limit=10**8)

    try:
        anyio.run(reachable)
    except BisectorError as error:
        pytest.skip(f"the package index does not answer: {error.message}")
    return tmp_path_factory.mktemp("online") / "history.db"


@pytest.fixture
def ask(shared_db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a command line of bisector against the shared history, or against another one."""
    monkeypatch.setenv("COLUMNS", "80")

    def asked(*arguments: str, db: Path = shared_db) -> Answer:
        code = run(["--db", str(db), *arguments])
        out, err = capsys.readouterr()
        return Answer(exit_code=code, out=out, err=err)

    return asked
