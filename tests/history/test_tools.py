"""The file as other people's tools see it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.history.schema import query
from tests.history.story import write_story

VIEWS = {
    *("latest_verdicts", "losses", "kernel_timeline", "boot_results", "benchmark_trend", "build_timeline"),
    *("run_history", "latest_observations", "kernel_operations"),
}


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    await write_story(path)
    return path


def tool(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_sqlite_utils_shows_the_views(path: Path) -> None:
    shown = {row["view"]: row["count"] for row in tool("sqlite_utils", "views", str(path), "--counts")}
    assert shown.keys() >= VIEWS
    assert all(shown.values())
    (loss,) = tool("sqlite_utils", "rows", str(path), "losses")
    assert (loss["lost_at"], loss["regained_at"]) == ("0.27.0", "0.28.0")


def test_datasette_shows_the_views(path: Path) -> None:
    address = "/history.json"
    shown = tool("datasette", "serve", str(path), "--get", address)
    assert {view["name"] for view in shown["views"]} >= VIEWS
    for view in VIEWS:
        rows = tool("datasette", "serve", str(path), "--get", f"/history/{view}.json?_shape=array")
        assert len(rows) == query(path, f"SELECT count(*) AS rows FROM {view}")[0]["rows"]  # noqa: S608
