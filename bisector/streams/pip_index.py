"""The package index of this machine: the one pip is configured to use."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

_LINE = re.compile(r"(?P<section>[\w:-]+)\.(?P<key>index-url|cert)=(?P<value>.+)")
_SECTIONS = (":env:", "install", "download", "global")
"""Where pip looks, the strongest first (https://pip.pypa.io/en/stable/topics/configuration/)."""
_KEYS = ("index-url", "cert")
_PATIENCE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PipIndex:
    """What pip would ask.

    Attributes:
        url: The simple index, with user and password when pip has them.
        ca_file: The certificates pip is told to trust, if it is told.
    """

    url: str
    ca_file: str | None = None


async def pip_index(environ: Mapping[str, str] | None = None) -> PipIndex:
    """Find out which index pip uses; the public one when pip does not say or is not there. Never raises.

    Args:
        environ: The environment variables to go by instead of those of this process.
    """
    environ = os.environ if environ is None else environ
    url, ca_file = environ.get("PIP_INDEX_URL"), environ.get("PIP_CERT")
    if not url or not ca_file:
        configured = _parsed(await _pip_config_list(environ))
        url, ca_file = url or configured.get("index-url"), ca_file or configured.get("cert")
    if not url:
        # Not at the top: pypi_simple takes a quarter of a second to import.
        from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415

        url = PYPI_SIMPLE_ENDPOINT
    return PipIndex(url=url.strip(), ca_file=ca_file or None)


async def _pip_config_list(environ: Mapping[str, str]) -> str:
    """The output of ``pip config list``, or nothing."""
    with anyio.move_on_after(_PATIENCE):
        try:
            done = await anyio.run_process(
                [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
                env=environ,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        except OSError:
            return ""
        return done.stdout.decode(errors="replace")
    return ""


def _parsed(listing: str) -> Mapping[str, str]:
    """Key → value of the strongest section, from lines such as ``global.index-url='https://…'``."""
    found: dict[tuple[str, str], str] = {}
    for line in listing.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            try:
                value = ast.literal_eval(match["value"])
            except (ValueError, SyntaxError):
                continue
            if isinstance(value, str) and value:
                found[match["section"], match["key"]] = value
    return {key: found[section, key] for section in reversed(_SECTIONS) for key in _KEYS if (section, key) in found}
