"""What every test stands on: settings of this machine do not reach it, and a slow machine fails nothing."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("bisector", deadline=None)
settings.load_profile("bisector")

# A shell has its background jobs ignore Ctrl-C, and whatever they start ignores it too: some tests send one.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BISECTOR_") and "_TEST_" not in name]:
        monkeypatch.delenv(name)
