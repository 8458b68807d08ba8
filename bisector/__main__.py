"""``python -m bisector``."""

from bisector.cli import main

main()
