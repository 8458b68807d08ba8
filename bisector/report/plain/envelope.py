"""What is the same around every answer: its head, the shape of an error, times and costs, and the line it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bisector.errors import BisectorError
from bisector.model import Cost

SCHEMA_VERSION = 1

Document = dict[str, Any]

_OBEYED = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters beyond those JSON itself escapes, and marks that turn the direction of writing."""


def encode(document: Mapping[str, Any]) -> str:
    """One JSON object, one line; what a terminal might obey is spelled out, as JSON allows it to be."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(document).decode())


def head(command: str) -> Document:
    """What every answer begins with."""
    return {"schema_version": SCHEMA_VERSION, "command": command, "ok": True}


def error_document(failure: BisectorError) -> Document:
    """The one shape of an error."""
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": False,
        "error": failure.message,
        "hint": failure.hint,
        "exit_code": failure.exit_code,
    }


def timestamp(moment: datetime | None) -> str | None:
    """``2026-08-10T06:00:00Z``: UTC, to the second."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else None


def cost_fields(cost: Cost) -> Document:
    """What an answer cost: builds, probes, bytes, seconds."""
    return msgspec.to_builtins(cost)  # type: ignore[no-any-return]
