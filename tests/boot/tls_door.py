"""A TLS door on loopback that asks for a certificate, before an engine's socket: what ``dockerd --tlsverify`` is."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Final

_PIECE: Final = 64 * 1024
_OPENSSL: Final = "/usr/bin/openssl"


def make_certificates(folder: Path) -> None:
    """``ca.pem``, and ``cert.pem`` with ``key.pem`` that it signed, for 127.0.0.1 and for whoever shows it."""
    subject = ["-subj", "/CN=127.0.0.1", "-days", "2"]
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    authority = ["-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2"]
    _openssl(folder, "req", "-x509", *new_key, *authority)
    extensions = ["-addext", "subjectAltName=IP:127.0.0.1", "-CA", "ca.pem", "-CAkey", "ca-key.pem"]
    _openssl(folder, "req", "-x509", *new_key, "-keyout", "key.pem", "-out", "cert.pem", *subject, *extensions)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run([_OPENSSL, *arguments], cwd=folder, check=True, capture_output=True)


class TlsDoor:
    """Passes connections with a certificate on to a socket.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, path: str, certificates: Path) -> None:
        self._path = path
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        self._context.load_verify_locations(certificates / "ca.pem")
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            try:
                near = self._context.wrap_socket(plain, server_side=True)
            except OSError:
                plain.close()  # nobody without a certificate comes in
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._path)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with source, target:
            try:
                while piece := source.recv(_PIECE):
                    target.sendall(piece)
            except OSError:
                return
