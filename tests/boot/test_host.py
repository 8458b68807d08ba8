from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.boot.host import connect
from bisector.errors import Unavailable, UsageError
from tests.boot.certificates import make_certificates
from tests.boot.door import tls_door
from tests.lab.engine import DockerEngine

# The SDK leaves the socket of a connection that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.parametrize("spelling", ["", "somewhere", "http://host", "context:", "context:none-of-this-name"])
def test_a_spelling_that_names_no_engine(spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with pytest.raises(UsageError):
        connect(spelling)


def test_an_engine_over_tcp_needs_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs certificates"):
        connect("tcp://127.0.0.1:2376")


def test_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        connect(f"unix://{tmp_path}/none.sock")


def test_local_is_what_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/named.sock")
    with pytest.raises(Unavailable, match="local does not answer"):
        connect("local")


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_a_context_of_dockers_own_client(booting_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(booting_engine.environment["DOCKER_CONFIG"])
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")  # without one, the SDK does not look for contexts
    booting_engine.docker("context", "create", "away", "--docker", f"host={booting_engine.host}")
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    host = connect("context:away")
    assert host.local
    assert host.client.ping()
    host.close()


@pytest.mark.docker
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_an_engine_over_tls(booting_engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_certificates(tmp_path)
    door = tls_door(booting_engine.host.removeprefix("unix://"), tmp_path)
    try:
        monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
        host = connect(f"tcp://127.0.0.1:{door.port}")
        assert not host.local
        assert host.client.info()["Driver"] == "overlay2"
        host.close()
        stranger = tmp_path / "stranger"
        stranger.mkdir()
        make_certificates(stranger)
        monkeypatch.setenv("DOCKER_CERT_PATH", str(stranger))
        with pytest.raises(Unavailable):
            connect(f"tcp://127.0.0.1:{door.port}")
    finally:
        door.close()
