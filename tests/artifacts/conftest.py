from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.engine import DockerEngine, why_none


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    reason = why_none()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="engine-") as folder:
        try:
            engine = DockerEngine(Path(folder))
        except RuntimeError as error:
            pytest.skip(str(error))
        try:
            yield engine
        finally:
            engine.close()


@pytest.fixture
def the_engine(engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerEngine]:
    """The engine that ``docker.from_env()`` finds; nothing is left in it by a test."""
    for name in ("DOCKER_HOST", "DOCKER_CONFIG"):
        monkeypatch.setenv(name, engine.environment[name])
    for name in ("DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield engine
    assert not engine.docker("ps", "--all", "--quiet")
    images = engine.docker("images", "--quiet", "--no-trunc").decode().split()
    if images:
        engine.docker("rmi", "--force", *dict.fromkeys(images))
