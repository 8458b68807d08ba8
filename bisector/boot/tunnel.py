"""The socket of an engine on another machine, brought here by the system's own ssh.

That ssh knows its agents, jump hosts and known hosts; a library would have to be taught them. Docker's SDK would start
one for every request.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Final

from bisector.errors import Unavailable, UsageError

_ADDRESS: Final = re.compile(
    r"ssh://(?:(?P<user>[^@:/?#]+)@)?(?P<host>[^@:/?#\[\]]+|\[[\da-fA-F:.%]+\])(?::(?P<port>\d{1,5}))?"
    r"(?P<socket>/[^/?#][^?#]*)?/?"
)
_SOCKET: Final = "/var/run/docker.sock"
_PATIENCE: Final = 30.0  # seconds until the other side answers
_READY: Final = b"bisector-is-through"
# Of the other side's shell no more is asked than this. It ends when our end of its input does, however that happens,
# and takes the tunnel with it: nothing is left behind by a process that is killed.
_THERE: Final = f"echo {_READY.decode()}; exec cat"
_OPTIONS: Final = (
    "BatchMode=yes",  # a question would come from the middle of a report, and cron has nobody to answer
    "ConnectTimeout=10",
    "ControlPath=none",  # a shared connection would keep the tunnel open after us
    "ExitOnForwardFailure=yes",
    "ServerAliveInterval=15",
)


class Tunnel:
    """A socket here that leads to one there, until it is closed. Blocks while it is dug.

    Args:
        address: ``ssh://[USER@]HOST[:PORT][/SOCKET]``; the socket is Docker's usual one unless it is given.

    Attributes:
        path: The socket here.

    Raises:
        UsageError: The address is none.
        Unavailable: ssh does not get there; its own words are in the message.
    """

    def __init__(self, address: str) -> None:
        there = _ADDRESS.fullmatch(address)
        if there is None:
            raise UsageError(
                f"{address!r} is no address", hint="Write ssh://USER@HOST, or ssh://USER@HOST:PORT/SOCKET."
            )
        self._address = address
        self._folder = Path(tempfile.mkdtemp(prefix="bisector-"))
        self.path = self._folder / "socket"
        self._log = self._folder / "log"
        self._options = _options(there)
        self._process = self._start(["-L", f"{self.path}:{there['socket'] or _SOCKET}", *self._options, _THERE])
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def said(self) -> str:
        """The last thing ssh complained of, if any."""
        with suppress(OSError):
            lines = self._log.read_text(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def close(self) -> None:
        """Close it; nothing is left of it on either side."""
        self._process.terminate()
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            try:
                # In a session of its own, so that Ctrl-C leaves it open for what is still to be removed there.
                return subprocess.Popen(  # noqa: S603 - no shell, and the address is one word
                    ["ssh", *arguments],  # noqa: S607 - whichever the user's own is
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                shutil.rmtree(self._folder)
                raise Unavailable("ssh is not installed", hint="Install the OpenSSH client.") from error

    def _wait(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        timer = Timer(_PATIENCE, self._process.kill)
        timer.start()
        try:
            # What a login script prints comes before.
            if not any(line.strip() == _READY for line in self._process.stdout):
                self._process.wait()
                raise Unavailable(
                    f"ssh does not get through to {self._address}: {self.said or 'it took too long'}",
                    hint=f"`ssh {shlex.join(self._options)} true` must work without a question.",
                )
        finally:
            timer.cancel()


def _options(there: re.Match[str]) -> Sequence[str]:
    """Everything up to the host's name."""
    options = [word for option in _OPTIONS for word in ("-o", option)]
    port = ["-p", there["port"]] if there["port"] else []
    user = ["-l", there["user"]] if there["user"] else []
    return ["-T", "-a", "-x", *options, *port, *user, "--", there["host"].strip("[]")]
