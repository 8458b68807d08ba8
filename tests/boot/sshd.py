"""A real SSH server on loopback, and an ``ssh`` that may enter it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from getpass import getuser
from pathlib import Path
from typing import Final

from tests.lab.engine import DockerEngine

SSHD: Final = "/usr/sbin/sshd"
_KEYGEN: Final = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f")
_SERVER: Final = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
_CLIENT: Final = """
Host *
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile none
"""


def why_no_sshd() -> str | None:
    """Why no server can be started here, if so."""
    if os.geteuid() != 0:
        return "an SSH server needs root"
    missing = [program for program in (SSHD, "ssh", "ssh-keygen") if shutil.which(program) is None]
    return f"{' and '.join(missing)} is not installed" if missing else None


class SshServer:
    """The server.

    Args:
        folder: Where its keys lie.

    Attributes:
        address: How to enter it.
        path: What to put before ``PATH``: there lies an ``ssh`` that has a key for it and knows it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        self.address = f"ssh://{getuser()}@127.0.0.1:{port}"
        for name in ("host", "user"):
            subprocess.run([*_KEYGEN, str(folder / name)], check=True)
        key = (folder / "host.pub").read_text().split()
        (folder / "known").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
        (folder / "server").write_text(_SERVER.format(folder=folder, port=port))
        (folder / "client").write_text(_CLIENT.format(folder=folder))
        self.path = folder / "bin"
        self.path.mkdir()
        # ssh takes its configuration from the home of the account, whatever HOME says.
        (self.path / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/client "$@"\n')
        (self.path / "ssh").chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "server")], stderr=log)
        self._wait(port)

    def to(self, engine: DockerEngine) -> str:
        """The address of an engine behind it."""
        return self.address + engine.host.removeprefix("unix://")

    def forget(self) -> None:
        """Make it a server that the client does not know."""
        (self._folder / "known").write_text("")

    def sessions(self) -> int:
        """How many are open."""
        process = self._process.pid
        return len(Path(f"/proc/{process}/task/{process}/children").read_text().split())

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()

    def _wait(self, port: int) -> None:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError((self._folder / "log").read_text())
