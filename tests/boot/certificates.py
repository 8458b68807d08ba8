"""Certificates for an engine that asks for one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

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
