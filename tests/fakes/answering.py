"""What a command line answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from bisector.cli.app import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """Run bisector's command line in this process."""
    code = run(arguments)
    out, err = capsys.readouterr()
    return Answer(exit_code=code, out=out, err=err)
