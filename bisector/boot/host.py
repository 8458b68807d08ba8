"""Which engine a ``--host`` means: the local one, one over SSH or TLS, or a context of Docker's own client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import docker
import docker.errors
import requests.exceptions
from docker.context import ContextAPI
from docker.tls import TLSConfig

from bisector.errors import BisectorError, Unavailable, UsageError

LOCAL: Final = "local"
_LOCAL_SOCKET: Final = "unix:///var/run/docker.sock"
_PATIENCE: Final = 60  # seconds an engine may take to answer; streams have none


def connect(spelling: str) -> docker.DockerClient:
    """A client of the engine that a spelling means; blocks.

    ``local`` is what ``DOCKER_HOST`` names, or this machine's socket; ``ssh://USER@HOST`` and ``tcp://HOST:2376`` with
    the certificates of ``DOCKER_CERT_PATH`` are engines elsewhere; ``context:NAME`` is one that
    ``docker context ls`` lists.

    Raises:
        UsageError: The spelling means no engine.
        Unavailable: The engine does not answer.
    """
    with translated(spelling):
        client = _client(spelling)
        client.ping()
        return client


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


def _client(spelling: str) -> docker.DockerClient:
    if spelling == LOCAL:
        return _at(os.environ.get("DOCKER_HOST") or _LOCAL_SOCKET)
    kind, separator, rest = spelling.partition(":")
    if kind == "context" and rest:
        context: Any = ContextAPI.get_context(rest)
        if context is None:
            raise UsageError(f"Docker knows no context {rest!r}", hint="`docker context ls` lists them.")
        return _at(context.Host, tls=context.TLSConfig or None)
    if separator and kind in {"unix", "ssh", "tcp"}:
        return _at(spelling)
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


def _at(address: str, *, tls: TLSConfig | None = None) -> docker.DockerClient:
    options: dict[str, Any] = {"base_url": address, "timeout": _PATIENCE}
    if address.startswith("ssh://"):
        # The system's own ssh knows its agents, jump hosts and known hosts; a library would have to be taught them.
        options["use_ssh_client"] = True
    elif address.startswith("tcp://"):
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
