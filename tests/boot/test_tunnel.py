from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bisector.boot.host import connect
from bisector.boot.tunnel import Tunnel
from bisector.errors import Unavailable, UsageError
from tests.boot.sshd import SshServer


def test_an_address_without_a_socket_may_end_in_a_slash(sshd: SshServer) -> None:
    Tunnel(f"{sshd.address}/").close()


@pytest.mark.parametrize("address", ["ssh://", "ssh:///x", "ssh://h:port", "ssh://u:secret@h", "ssh://h?x", "http://h"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is no address"):
        Tunnel(address)


@pytest.mark.usefixtures("sshd")
def test_a_host_cannot_be_an_option_of_ssh(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        Tunnel(f"ssh://-oProxyCommand=touch${{IFS}}{tmp_path}/harm")
    assert not (tmp_path / "harm").exists()


def test_without_ssh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="ssh is not installed"):
        connect("ssh://somewhere")


def test_a_host_that_is_not_known_is_not_trusted(sshd: SshServer) -> None:
    sshd.forget()
    with pytest.raises(Unavailable, match="Host key verification failed") as raised:
        connect(sshd.address)
    assert "must work without a question" in str(raised.value.hint)


def test_a_machine_without_an_engine(sshd: SshServer, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"does not answer.*; ssh says: .*open failed"):
        connect(f"{sshd.address}{tmp_path}/none.sock")
    assert_left(sshd)


def test_nothing_is_left_of_a_tunnel_that_is_closed(sshd: SshServer) -> None:
    tunnel = Tunnel(sshd.address)
    assert tunnel.path.is_socket()
    assert sshd.sessions() == 1
    tunnel.close()
    assert not tunnel.path.parent.exists()
    assert_left(sshd)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_tunnel_whose_owner_is_stopped(sshd: SshServer, stop: signal.Signals) -> None:
    program = "import sys, time; from bisector.boot.tunnel import Tunnel; t = Tunnel(sys.argv[1]); print(flush=True)"
    owner = subprocess.Popen(
        [sys.executable, "-c", f"{program}; time.sleep(60)", sshd.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        assert sshd.sessions() == 1
        owner.send_signal(stop)
    assert_left(sshd)


def assert_left(sshd: SshServer) -> None:
    """No session, or in a moment."""
    for _ in range(100):
        if sshd.sessions() == 0:
            return
        time.sleep(0.05)
    pytest.fail("a session is left")
