"""Reads logs with the catalogue that bisector ships with."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from bisector.diagnosis.engine import diagnose
from bisector.diagnosis.signatures import shipped
from bisector.reference import gpus
from bisector.results import Diagnosis

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))["case"]


def read(*pieces: bytes) -> Diagnosis:
    return diagnose(pieces, shipped(), gpus())


def read_lines(*lines: str) -> Diagnosis:
    return read("".join(f"{line}\n" for line in lines).encode())


def ids(diagnosis: Diagnosis) -> list[str]:
    return [cause.id for cause in diagnosis.causes]
