"""Secrets, which a configuration need not hold: it can say in which file or variable they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bisector.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def secret(text: str | None, file: str | None, *, what: str) -> str | None:
    """A secret from where the configuration says it is, or ``None`` where it says nothing.

    Args:
        text: It, with ``${NAME}`` for what comes from the environment.
        file: A file that holds it.
        what: What it is for, for messages; the secret itself is in none.

    Raises:
        ConfigError: The file cannot be read, or the environment has no such variable.
    """
    if file is not None:
        try:
            return Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The file {file} with {what} cannot be read", hint="Check the path.") from error
    if text is None:
        return None
    missing = [name for name in _VARIABLE.findall(text) if not os.environ.get(name)]
    if missing:
        raise ConfigError(f"{what} needs {missing[0]}, which the environment does not have", hint=f"Set {missing[0]}.")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)
