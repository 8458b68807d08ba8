"""A TCP door on loopback through which little comes at a time."""

from __future__ import annotations

import socket
import threading
import time
from typing import Final

_PIECE: Final = 64 * 1024


class SlowDoor:
    """Passes connections on to another port of this machine, and answers back at so many bytes a second.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, to: int, *, rate: int) -> None:
        self._to = to
        self._rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._pass, args=(near, far, 0), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, self._rate), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, rate: int) -> None:
        with source, target:
            try:
                while piece := source.recv(_PIECE):
                    target.sendall(piece)
                    time.sleep(len(piece) / rate if rate else 0)
            except OSError:
                return
