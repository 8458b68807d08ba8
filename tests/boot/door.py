"""A door on loopback through which connections are passed on: slowly, or only with a certificate."""

from __future__ import annotations

import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PIECE: Final = 64 * 1024


class Door:
    """Passes connections on.

    Args:
        reach: Opens a connection to what is behind the door.
        admit: Makes of a connection what is read in the clear; an ``OSError`` turns the visitor away.
        rate: So many bytes a second come back, at most.

    Attributes:
        port: Where it listens.
        rate: May be changed; next to nothing makes everybody wait.
    """

    def __init__(
        self,
        reach: Callable[[], socket.socket],
        *,
        admit: Callable[[socket.socket], socket.socket] = lambda visitor: visitor,
        rate: float = math.inf,
    ) -> None:
        self._reach = reach
        self._admit = admit
        self.rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return
            try:
                near = self._admit(visitor)
            except OSError:
                visitor.close()
                continue
            far = self._reach()
            threading.Thread(target=_pass, args=(near, far, lambda: math.inf), daemon=True).start()
            threading.Thread(target=_pass, args=(far, near, lambda: self.rate), daemon=True).start()


def slow_door(to: int, *, rate: int) -> Door:
    """A door to another port of this machine, which answers at so many bytes a second."""
    return Door(lambda: socket.create_connection(("127.0.0.1", to)), rate=rate)


def tls_door(path: str, certificates: Path) -> Door:
    """A door to an engine's socket that asks for a certificate: what ``dockerd --tlsverify`` is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    def engine() -> socket.socket:
        far = socket.socket(socket.AF_UNIX)
        far.connect(path)
        return far

    return Door(engine, admit=lambda visitor: context.wrap_socket(visitor, server_side=True))


def _pass(source: socket.socket, target: socket.socket, rate: Callable[[], float]) -> None:
    with source, target:
        try:
            while piece := source.recv(_PIECE):
                target.sendall(piece)
                time.sleep(len(piece) / rate())
        except OSError:
            return
