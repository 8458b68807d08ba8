"""The logins Docker knows: its configuration file, credential stores and helpers; ``DOCKER_CONFIG`` says where."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Protocol

import anyio.to_thread

from bisector.artifacts.image.reference import DOCKER_HUB

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and a password; never shown."""

    username: str
    password: str = field(repr=False)


class Credentials(Protocol):
    """Knows who we are at a registry."""

    async def login(self, host: str) -> Login | None:
        """The login for this registry, or ``None`` to be nobody."""


class DockerCredentials:
    """What ``docker login`` left behind. A store that fails is like having none, as for ``docker pull``."""

    async def login(self, host: str) -> Login | None:
        """The login for this registry, or ``None`` to be nobody."""
        return await anyio.to_thread.run_sync(_login, host)


class Anonymous:
    """Nobody, whatever Docker knows."""

    async def login(self, host: str) -> Login | None:  # noqa: ARG002 - the port's name for it
        """Nobody."""
        return None


def _login(host: str) -> Login | None:
    import docker.auth  # noqa: PLC0415 - a fifth of a second
    import docker.errors  # noqa: PLC0415

    try:
        known = docker.auth.load_config().resolve_authconfig(None if host == DOCKER_HUB else host)
    except (docker.errors.DockerException, OSError, ValueError, TypeError, KeyError) as exc:
        # Not the text of the error: a helper may print anything.
        _log.warning("Docker's login for %s cannot be read (%s); asking without one", host, type(exc).__name__)
        return None
    if not known:
        return None
    # The file says `username`, a helper says `Username`.
    named = {str(key).lower(): value for key, value in known.items()}
    username, password = named.get("username"), named.get("password")
    return Login(username=str(username), password=str(password)) if username and password else None
