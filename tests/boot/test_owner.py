from __future__ import annotations

import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from bisector.boot.owner import Owner, lives, owner_in

NOW = datetime.now(UTC)
A_DAY = timedelta(days=1)


def owner(*, machine: str | None = None, pid: int | None = None, since: datetime = NOW) -> Owner:
    return Owner(
        machine=machine or socket.gethostname(), pid=pid or os.getpid(), since=since, until=since + timedelta(hours=2)
    )


def test_labels_tell_the_owner_again() -> None:
    assert owner_in(owner().labels) == owner()


@pytest.mark.parametrize("labels", [{}, {"io.bisector.pid": "x"}, owner().labels | {"io.bisector.since": "today"}])
def test_labels_that_name_nobody(labels: dict[str, str]) -> None:
    assert owner_in(labels) is None


def test_a_process_that_runs_is_not_gone() -> None:
    assert not owner().is_gone(NOW + A_DAY)


def test_a_process_that_ended_is_gone() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        child.wait()
    assert owner(pid=child.pid).is_gone(NOW)


def test_a_process_that_was_killed_and_not_yet_waited_for_is_gone() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        assert lives(child.pid, datetime.now(UTC))
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not lives(child.pid, datetime.now(UTC))


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        assert owner(pid=child.pid, since=NOW - A_DAY).is_gone(NOW)
        child.kill()


def test_an_owner_elsewhere_is_believed_for_its_time() -> None:
    elsewhere = owner(machine="elsewhere.invalid")
    assert not elsewhere.is_gone(NOW)
    assert elsewhere.is_gone(NOW + A_DAY)
