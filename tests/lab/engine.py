"""A Docker engine as a process of its own: private socket, private storage, no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROGRAM: Final = "dockerd"
_PATIENCE: Final = 30.0  # seconds it may take to answer


def why_none() -> str | None:
    """Why no engine can be started here, if so."""
    if os.geteuid() != 0:
        return "a Docker engine of its own needs root"
    missing = [program for program in (PROGRAM, "docker") if shutil.which(program) is None]
    return f"{' and '.join(missing)} is not installed" if missing else None


class DockerEngine:
    """An engine with overlay2 in a folder of its own; nothing of it is left behind.

    Args:
        folder: Where everything of it lies.
        bridge: The bridge its containers are connected to, which must be there; without one they have no network.

    Attributes:
        host: What to set ``DOCKER_HOST`` to.

    Raises:
        RuntimeError: It does not come up; the end of its log says why.
    """

    def __init__(self, folder: Path, *, bridge: str = "none") -> None:
        self._folder = folder
        self._storage = folder / "storage"
        self.host = f"unix://{folder / 'docker.sock'}"
        if len(str(folder / "docker.sock")) > 100:  # Linux takes 108 bytes
            raise RuntimeError(f"{folder} is too long a path for a socket")
        command = [PROGRAM, "--host", self.host, "--storage-driver=overlay2", f"--bridge={bridge}", "--iptables=false"]
        command += ["--data-root", str(self._storage), "--exec-root", str(folder / "run")]
        command += ["--pidfile", str(folder / "docker.pid"), "--config-file", str(folder / "daemon.json")]
        (folder / "daemon.json").write_text("{}")
        with (folder / "docker.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of a program that is to speak to it, and to know no login."""
        return {**os.environ, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self._folder / "config")}

    def docker(self, *arguments: str, given: bytes | None = None) -> bytes:
        """Docker's own client; what it printed.

        Raises:
            subprocess.CalledProcessError: It failed; its ``stderr`` says why.
        """
        command = ["docker", *arguments]
        return subprocess.run(command, env=self.environment, input=given, check=True, capture_output=True).stdout

    def close(self) -> None:
        """End it, and remove what it stored."""
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._storage, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                self.docker("version")
            except subprocess.CalledProcessError:
                time.sleep(0.1)
            else:
                return
        log = (self._folder / "docker.log").read_text()
        raise RuntimeError(f"dockerd did not come up: {log[-1000:]}")
