"""The forms of a night's report, and where they go. Imported only when a command runs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from bisector.errors import UsageError
from bisector.ports import Records
from bisector.report import console as people
from bisector.report.markdown import markdown
from bisector.report.night.page import page
from bisector.report.night_parts import night_parts
from bisector.report.phrases import count, safe
from bisector.report.plain.envelope import encode
from bisector.report.plain.night import night_document
from bisector.results import Filters, Night, Rows, Subject

Measured: TypeAlias = Mapping[str, Rows]
"""The boots and benchmarks that a report shows."""


async def measured_of(records: Records) -> Measured:
    """What the history knows of boots and benchmarks."""
    return {
        "boots": await records.table(Subject.BOOTS, Filters()),
        "benchmarks": await records.table(Subject.BENCHMARKS, Filters()),
    }


def rendered(form: str, night: Night, measured: Measured, *, to_terminal: bool = True) -> str:
    """The report in one of its forms."""
    match form:
        case "markdown":
            return markdown(night, **measured)
        case "html":
            from bisector.report.html import html  # noqa: PLC0415 - draws plots, which only the page needs

            return html(night, **measured)
        case "json":
            return f"{encode(night_document(night, **measured))}\n"
        case _:
            text = StringIO()
            colours = to_terminal and sys.stdout.isatty()
            people.show(
                night_parts(page(night, **measured)), Console(file=text, force_terminal=colours, highlight=False)
            )
            return text.getvalue()


def write(file: Path | None, text: str) -> None:
    """Replace a file as a whole: whoever reads it meanwhile reads the old one or the new one. ``None``: stdout.

    Raises:
        UsageError: It cannot be written there.
    """
    if file is None:
        sys.stdout.write(text)
        return
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, prefix=".", delete=False) as new:
            new.write(text)
        Path(new.name).chmod(0o666 & ~_umask())
        Path(new.name).replace(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", hint="Check the path.") from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def summary(night: Night, *, rehearsal: bool) -> str:
    """One line for the log."""
    failed = [stage.name for stage in night.stages if not stage.ok]
    read = sum(len(stream.harvest.read) for stream in night.streams)
    new = sum(len(stream.harvest.new) for stream in night.streams)
    posts = [f"{stage.name}: {stage.says}" for stage in night.stages if stage.name.startswith("post ")]
    parts = [
        f"nightly{' (dry run)' if rehearsal else ''} {night.at:%Y-%m-%dT%H:%M:%SZ}",
        f"{count(len(night.streams), 'stream')}, {new} new, {read} read",
        "; ".join(news.sentence for news in night.news) or "no news",
        *posts,
        f"failed: {', '.join(failed)}" if failed else "all well",
        f"{night.cost.seconds:.1f} s",
    ]
    return " | ".join(safe(part) for part in parts)
