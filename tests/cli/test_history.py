"""Asking the history, on the little index and without any network."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.fakes.index import Index

FIND = ("find-regression", "--arch", "sm120", "--source", "pypi:vllm")


@pytest.fixture
def filled(bisector: CommandLine) -> CommandLine:
    bisector("harvest", "--source", "pypi:vllm")
    bisector(*FIND)
    return bisector


def test_the_loss_is_told_without_the_network(filled: CommandLine, index: Index) -> None:
    asked = len(index.seen)
    losses = filled("history", "losses", "--arch", "RTX 5090", "--json").json["rows"]
    assert [(loss["last_good"], loss["lost_at"], loss["regained_at"]) for loss in losses] == [
        ("0.26.0", "0.27.0", "0.28.0")
    ]
    found = filled("find-regression", "--arch", "sm120", "--source", "history:pypi:vllm", "--json")
    assert found.exit_code == 1
    assert (found.json["last_good"]["id"], found.json["first_bad"]["id"]) == ("0.26.0", "0.27.0")
    assert len(index.seen) == asked


@pytest.mark.parametrize("subject", ["builds", "kernels", "losses", "runs"])
def test_each_table_has_three_forms(filled: CommandLine, subject: str) -> None:
    rows = filled("history", subject, "--json").json["rows"]
    assert rows
    table = list(csv.DictReader(io.StringIO(filled("history", subject, "--csv").out)))
    assert [list(row) for row in table] == [list(row) for row in rows]
    people = filled("history", subject)
    assert people.exit_code == 0
    assert max(map(len, people.out.splitlines())) <= 80


@pytest.mark.parametrize("subject", ["boots", "benchmarks"])
def test_an_empty_table_says_so(filled: CommandLine, subject: str) -> None:
    answer = filled("history", subject)
    assert (answer.exit_code, answer.out) == (0, "The history has nothing to show here.\n")


def test_filters_people_think_in(filled: CommandLine) -> None:
    assert {row["build"] for row in filled("history", "builds", "--build", "0.27.*", "--json").json["rows"]} == {
        "0.27.0",
        "0.27.1",
    }
    recent = filled("history", "builds", "--since", "2026-08-11", "--json").json["rows"]
    assert {row["build"] for row in recent} == {"0.27.1", "0.28.0"}
    assert filled("history", "builds", "--since", "soon").exit_code == 2
    with_op = filled("history", "kernels", "--op", "bf16_gemm", "--arch", "sm120", "--json").json["rows"]
    assert {row["build"] for row in with_op} >= {"0.26.0", "0.28.0"}


def test_sql_reads_and_cannot_write(filled: CommandLine) -> None:
    answer = filled("history", "sql", "SELECT count(*) AS n FROM builds", "--json")
    assert answer.json["rows"] == [{"n": 6}]
    for query in ("DELETE FROM builds", "ATTACH 'x.db' AS x", "SELECT 1; SELECT 2", "nonsense", ""):
        refused = filled("history", "sql", query, "--json")
        assert refused.exit_code == 2, query
        assert refused.json["ok"] is False
    assert filled("history", "sql", "SELECT count(*) AS n FROM builds", "--json").json["rows"] == [{"n": 6}]


def test_a_search_is_retold_step_by_step(filled: CommandLine) -> None:
    run = filled("history", "runs", "--json").json["rows"][0]["run"]
    told = filled("history", "show", run)
    assert "Which build lost sm120?" in told.out
    assert "0.27.0" in told.out
    steps = filled("history", "show", run, "--json").json["run"]["steps"]
    assert {step["build"] for step in steps} >= {"0.26.0", "0.27.0"}
    assert filled("history", "show", "no-such-run").exit_code == 2


def test_a_run_is_gone_on_with(filled: CommandLine) -> None:
    run = filled("history", "runs", "--json").json["rows"][0]["run"]
    resumed = filled("find-regression", "--resume", run, "--json")
    assert resumed.exit_code == 1
    assert resumed.json["last_good"]["id"] == "0.26.0"
    assert resumed.json["run"] != run
    rows = filled("history", "runs", "--json").json["rows"]
    assert run in {row["resumes"] for row in rows}
    assert filled("find-regression", "--resume", "nothing").exit_code == 2


def test_a_ledger_moves_between_machines_without_losing_or_doubling(filled: CommandLine, tmp_path: Path) -> None:
    exported = tmp_path / "ledger.ndjson"
    assert filled("history", "export", str(exported)).exit_code == 0
    assert all(json.loads(line) for line in exported.read_text().splitlines())
    assert filled("history", "export", str(exported)).exit_code == 2  # nothing is overwritten
    elsewhere = tmp_path / "elsewhere.db"
    for _ in range(2):
        assert filled("--db", str(elsewhere), "history", "import", str(exported)).exit_code == 0
    with sqlite3.connect(elsewhere) as connection:
        counts = connection.execute("SELECT (SELECT count(*) FROM builds), (SELECT count(*) FROM observations)")
        assert counts.fetchone() == (6, 6)
    assert filled("history", "import", str(tmp_path / "nowhere.ndjson")).exit_code == 2


def test_prune_says_what_it_would_free_before_it_does(filled: CommandLine) -> None:
    assert "Nothing was deleted" in filled("history", "prune", "--older-than", "1d").out
    assert filled("history", "prune", "--older-than", "1d", "--json").json["done"] is False
    assert "Deleted" in filled("history", "prune", "--older-than", "1d", "--yes").out
    assert filled("history", "losses", "--json").json["rows"]
