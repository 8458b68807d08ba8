"""The command line: parse, run one job, render, exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``bisector`` and leave with its exit code."""
    # Imported here, so that `bisector.cli` can be named without paying for click.
    from bisector.cli.app import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
