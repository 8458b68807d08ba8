"""A Docker engine for boots: private, with a bridge of its own, and stand-in images in it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.boot.sshd import SshServer, why_no_sshd
from tests.boot.stand_in.image import import_stand_in
from tests.lab.engine import DockerEngine, why_none

_IP = shutil.which("ip")


@contextmanager
def _bridge() -> Iterator[str]:
    number = secrets.randbelow(250)
    name = f"bisector{number}"
    for arguments in (
        ("link", "add", name, "type", "bridge"),
        ("addr", "add", f"172.30.{number}.1/24", "dev", name),
        ("link", "set", name, "up"),
    ):
        subprocess.run([str(_IP), *arguments], check=True, capture_output=True)
    try:
        yield name
    finally:
        subprocess.run([str(_IP), "link", "del", name], check=False, capture_output=True)


@contextmanager
def _engine() -> Iterator[DockerEngine]:
    if reason := why_none() or (None if _IP else "ip is not installed"):
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="boots-"))
    try:
        with _bridge() as bridge:
            engine = DockerEngine(folder, bridge=bridge)
            try:
                yield engine
            finally:
                engine.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def booting_engine() -> Iterator[DockerEngine]:
    """An engine whose containers have a network."""
    with _engine() as engine:
        yield engine


@pytest.fixture
def empty_engine() -> Iterator[DockerEngine]:
    """Another one, which has no image yet."""
    with _engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def stand_in(booting_engine: DockerEngine) -> DockerEngine:
    """The same, with the stand-in image."""
    os.environ.setdefault("DOCKER_BUILDKIT", "0")
    import_stand_in(booting_engine)
    return booting_engine


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    """An SSH server, which the ``ssh`` that is found first may enter."""
    if reason := why_no_sshd():
        pytest.skip(reason)
    folder = tmp_path / "sshd"
    folder.mkdir()
    server = SshServer(folder)
    monkeypatch.setenv("PATH", f"{server.path}:{os.environ['PATH']}")
    yield server
    server.close()
