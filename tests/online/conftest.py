"""Tests on the real index share one history, so that the whole folder reads each wheel once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from bisector.errors import BisectorError
from bisector.http import Http
from bisector.streams.pip_index import pip_index
from tests.fakes.answering import Answer, answered


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.online)


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
        return answered(capsys, "--db", str(db), *arguments)

    return asked
