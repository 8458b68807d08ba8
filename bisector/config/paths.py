"""Where the configuration and the history are, when nobody says."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def default_config_path() -> Path:
    """Where the configuration is looked for when no ``--config`` names it."""
    return platformdirs.user_config_path("bisector") / "config.toml"


def default_history_path() -> Path:
    """Where the history is kept when no ``--db`` names it; ``STATE_DIRECTORY`` is systemd's."""
    return platformdirs.user_state_path("bisector") / "history.db"
