"""Which engine a ``--host`` means: the local one, one over SSH or TLS, or a context of Docker's own client."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
import docker.errors
import requests.exceptions
from docker.context import ContextAPI
from docker.tls import TLSConfig

from bisector.boot.tunnel import Tunnel
from bisector.errors import BisectorError, Unavailable, UsageError

LOCAL: Final = "local"
_LOCAL_SOCKET: Final = "unix:///var/run/docker.sock"
_PATIENCE: Final = 60  # seconds an engine may take to answer; streams have none


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine with an engine, to be closed.

    Attributes:
        client: Speaks to the engine.
        name: How the history knows the machine: this one by its name, others as they were spelled.
        local: It is this machine.
        tunnel: What leads there.
    """

    client: docker.DockerClient
    name: str
    local: bool
    tunnel: Tunnel | None = None

    def close(self) -> None:
        """Let go of it."""
        self.client.close()
        if self.tunnel is not None:
            self.tunnel.close()


def connect(spelling: str) -> Host:
    """The machine that a spelling means; blocks.

    ``local`` is what ``DOCKER_HOST`` names, or this machine's socket; ``ssh://USER@HOST`` and ``tcp://HOST:2376`` with
    the certificates of ``DOCKER_CERT_PATH`` are engines elsewhere; ``context:NAME`` is one that
    ``docker context ls`` lists.

    Raises:
        UsageError: The spelling means no engine.
        Unavailable: The engine does not answer.
    """
    with translated(spelling):
        address, tls = _address(spelling)
    tunnel = Tunnel(address) if address.startswith("ssh://") else None
    try:
        with translated(spelling):
            client = _at(f"unix://{tunnel.path}" if tunnel else address, tls=tls)
            client.ping()
    except BaseException as error:
        if tunnel is not None:
            said = tunnel.said
            tunnel.close()
            if said and isinstance(error, Unavailable):
                raise Unavailable(f"{error.message}; ssh says: {said}", hint=error.hint) from error
        raise
    local = address.startswith("unix://")
    return Host(client=client, name=socket.gethostname() if local else spelling, local=local, tunnel=tunnel)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn what the SDK and what it is made of raise into sentences about the engine."""
    try:
        yield
    except BisectorError:
        raise
    except docker.errors.TLSParameterError as error:
        raise UsageError(f"The certificates for {where} cannot be used: {error}") from error
    except docker.errors.APIError as error:
        raise Unavailable(f"The engine {where} refuses: {explanation(error)}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise Unavailable(
            f"The engine {where} does not answer: {error}", hint="Check that it runs and that you may use it."
        ) from error


def explanation(error: docker.errors.APIError) -> str:
    """What the engine said, in one line."""
    text = error.explanation or str(error)
    return " ".join(str(text).split())


def _address(spelling: str) -> tuple[str, TLSConfig | None]:
    if spelling == LOCAL:
        return os.environ.get("DOCKER_HOST") or _LOCAL_SOCKET, None
    kind, separator, rest = spelling.partition(":")
    if kind == "context" and rest:
        context: Any = ContextAPI.get_context(rest)
        if context is None:
            raise UsageError(f"Docker knows no context {rest!r}", hint="`docker context ls` lists them.")
        return context.Host, context.TLSConfig or None
    if separator and kind in {"unix", "ssh", "tcp"}:
        return spelling, None
    raise UsageError(
        f"{spelling!r} names no engine", hint="Write local, ssh://USER@HOST, tcp://HOST:2376 or context:NAME."
    )


class _Api(docker.APIClient):
    """Docker's API, reached with the engine's own certificates and past the web's proxies.

    Left to itself, ``requests`` would put ``REQUESTS_CA_BUNDLE`` in place of the authority that was given
    (https://github.com/psf/requests/issues/3829).
    """

    @property
    def trust_env(self) -> bool:
        """Never."""
        return False

    @trust_env.setter
    def trust_env(self, _: bool) -> None:
        """Let ``requests`` set it, in vain."""


def _at(address: str, *, tls: TLSConfig | None) -> docker.DockerClient:
    options: dict[str, Any] = {"base_url": address, "timeout": _PATIENCE}
    if address.startswith("tcp://"):
        options["tls"] = tls or _certificates(address)
    client = docker.DockerClient.__new__(docker.DockerClient)
    client.api = _Api(**options)
    return client


def _certificates(address: str) -> TLSConfig:
    folder = Path(os.environ.get("DOCKER_CERT_PATH") or Path.home() / ".docker")
    certificate, key, authority = (folder / name for name in ("cert.pem", "key.pem", "ca.pem"))
    if not authority.exists():
        # Whoever reaches an engine over plain TCP owns the machine: nothing here speaks to one.
        raise UsageError(
            f"{address} needs certificates, and {folder} has no ca.pem",
            hint="Set DOCKER_CERT_PATH, or use ssh://USER@HOST.",
        )
    return TLSConfig(client_cert=(str(certificate), str(key)), ca_cert=str(authority), verify=True)
