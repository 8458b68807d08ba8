# The files here are small and the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from bisector.errors import HistoryUnavailable
from bisector.history.faults import translated
from bisector.history.migrate import APPLICATION_ID
from bisector.history.store import History
from bisector.history.transaction import BUSY_SECONDS
from tests.fakes.clock import SteppingClock
from tests.history.observing import a_build, an_observation
from tests.history.schema import make_history, query

NOBODY = 65534
BUILD, OBSERVATION = a_build("1.0", "sha256:one"), an_observation("sha256:one", "bf16_gemm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


async def refusal(path: Path) -> HistoryUnavailable:
    """The error of opening it; the message must name the file."""
    with pytest.raises(HistoryUnavailable) as caught:
        async with History.open(path, SteppingClock()):
            pass
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 4
    return caught.value


async def written(path: Path) -> Path:
    async with History.open(path, SteppingClock()) as history:
        await history.record(OBSERVATION, BUILD)
    return path


@contextmanager
def without_privileges() -> Iterator[None]:
    """Whatever the tests run as, file permissions count here."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(me)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that anybody may enter; pytest's own is private."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


# --- files that are made, or are not histories -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["history.db", "a/new/directory/history.db", "odd name?#%&.db", "b\udcffytes.db"])
async def test_the_file_and_its_directories_are_made(tmp_path: Path, name: str) -> None:
    path = await written(tmp_path / name)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    async with History.open(path, SteppingClock()) as history:
        assert history.writable
        assert await history.known([BUILD]) == {"1.0": OBSERVATION}


async def test_an_empty_file_becomes_a_history(path: Path) -> None:
    path.touch()
    await written(path)
    assert query(path, "PRAGMA application_id") == [{"application_id": APPLICATION_ID}]


async def test_a_link_to_a_history_is_that_history(tmp_path: Path, path: Path) -> None:
    await written(path)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    async with History.open(link, SteppingClock()) as history:
        assert await history.known([BUILD]) == {"1.0": OBSERVATION}


async def test_a_directory_is_refused_with_a_name_to_use(tmp_path: Path) -> None:
    error = await refusal(tmp_path)
    assert "is a directory" in error.message
    assert str(tmp_path / "history.db") in error.hint


async def test_a_path_through_a_file_is_refused(path: Path) -> None:
    path.write_text("a file")
    await refusal(path / "history.db")


@pytest.mark.parametrize("content", [b"vllm==0.27.0\n" * 100, b"\x00" * 4096, b"xy"])
async def test_a_file_that_is_not_a_database_is_refused_and_kept(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    error = await refusal(path)
    assert "is not a database" in error.message
    assert path.read_bytes() == content


async def test_the_database_of_another_program_is_refused_and_kept(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    error = await refusal(path)
    assert "another program" in error.message
    assert path.read_bytes() == before


@pytest.mark.parametrize("fresh", [True, False])
async def test_a_history_of_a_newer_version_is_refused_and_kept(path: Path, *, fresh: bool) -> None:
    if not fresh:
        make_history(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    error = await refusal(path)
    assert "version 999" in error.message
    assert "Upgrade bisector" in error.hint
    assert "--db" in error.hint
    assert path.read_bytes() == before


async def test_damage_is_told_and_nothing_is_written_over_it(path: Path) -> None:
    await written(path)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))
    before = path.read_bytes()
    error = await refusal(path)
    assert "is damaged" in error.message
    assert path.read_bytes() == before


async def test_damage_that_is_met_later_is_told_then(path: Path) -> None:
    await written(path)
    size = int(query(path, "PRAGMA page_size")[0]["page_size"])
    roots = query(path, "SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'observations' AND rootpage > 0")
    with path.open("r+b") as file:
        for root in roots:
            file.seek((root["rootpage"] - 1) * size)
            file.write(b"\xff" * size)
    async with History.open(path, SteppingClock()) as history:
        with pytest.raises(HistoryUnavailable, match="is damaged"):
            await history.known([BUILD])


# --- files that may only be read, and disks that are full ------------------------------------------------------------


@pytest.mark.parametrize(("file_mode", "directory_mode"), [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555)])
async def test_a_history_that_may_only_be_read_answers_and_refuses_to_write(
    public: Path, file_mode: int, directory_mode: int
) -> None:
    path = await written(public / "history.db")
    path.chmod(file_mode)
    public.chmod(directory_mode)
    with without_privileges():
        async with History.open(path, SteppingClock()) as history:
            assert not history.writable
            assert await history.known([BUILD]) == {"1.0": OBSERVATION}
            for write in (history.record(OBSERVATION, BUILD), history.see([BUILD])):
                with pytest.raises(HistoryUnavailable, match="can only be read"):
                    await write


async def test_a_reader_without_permission_sees_what_a_running_writer_wrote(public: Path) -> None:
    path = public / "history.db"
    async with History.open(path, SteppingClock()) as writer:
        await writer.record(OBSERVATION, BUILD)
        with without_privileges():
            async with History.open(path, SteppingClock()) as reader:
                assert not reader.writable
                assert await reader.known([BUILD]) == {"1.0": OBSERVATION}


async def test_an_old_history_that_may_only_be_read_is_refused(public: Path) -> None:
    path = public / "history.db"
    make_history(path, 0)
    public.chmod(0o555)
    with without_privileges():
        error = await refusal(path)
    assert "must be upgraded" in error.message


async def test_a_history_that_may_not_even_be_read_is_refused(public: Path) -> None:
    path = await written(public / "history.db")
    path.chmod(0o000)
    with without_privileges():
        await refusal(path)


async def test_a_directory_where_nothing_can_be_made_is_refused(public: Path) -> None:
    with without_privileges():
        await refusal(public / "history.db")
        await refusal(public / "new" / "history.db")


async def test_a_full_disk_is_told_and_what_was_recorded_stays(path: Path) -> None:
    big = an_observation("sha256:big", *(f"op{number}" for number in range(5000)))
    async with History.open(path, SteppingClock()) as history:
        await history.record(OBSERVATION, BUILD)
        # SQLite's own limit gives the same error as a disk without room.
        await history.database._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(HistoryUnavailable, match="the disk is full"):
            await history.record(big, None)
        assert await history.known([BUILD]) == {"1.0": OBSERVATION}
        await history.database._connection.execute("PRAGMA max_page_count = 1000000")
        await history.record(big, None)
    assert query(path, "SELECT count(*) AS rows FROM observations") == [{"rows": 2}]


# --- others at the same file, and interruption -----------------------------------------------------------------------


@contextmanager
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program in the middle of a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


async def test_a_write_waits_longer_than_sqlite_does_and_reads_go_on(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history, History.open(path, SteppingClock()) as reader:
        with held(path) as other:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(history.record, OBSERVATION, BUILD)
                await anyio.sleep(BUSY_SECONDS + 0.5)
                assert await reader.known([BUILD]) == {}
                other.execute("COMMIT")
            assert await reader.known([BUILD]) == {"1.0": OBSERVATION}


def test_a_lock_that_is_never_freed_is_told_as_another_program(path: Path) -> None:
    make_history(path, 1)
    with (
        held(path),
        closing(sqlite3.connect(path, timeout=0)) as connection,
        pytest.raises(HistoryUnavailable, match="is held by another program"),
        translated(path),
    ):
        connection.execute("BEGIN IMMEDIATE")


async def test_a_cancelled_write_changes_nothing_and_the_next_one_works(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        with held(path) as other:
            with anyio.move_on_after(0.1) as scope:
                await history.record(OBSERVATION, BUILD)
            assert scope.cancelled_caught
            other.execute("ROLLBACK")
        assert await history.known([BUILD]) == {}
        await history.record(OBSERVATION, BUILD)
        assert await history.known([BUILD]) == {"1.0": OBSERVATION}


async def test_tasks_take_turns_at_one_history(path: Path) -> None:
    async with History.open(path, SteppingClock()) as history:
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(history.record, an_observation(f"sha256:{number}"), a_build(f"1.{number}"))
                tasks.start_soon(history.known, [a_build(f"1.{number}")])
        assert len(await history.known([a_build(f"1.{number}") for number in range(30)])) == 30


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_no_thread_outlives_an_interruption(path: Path, seconds: float) -> None:
    async with History.open(path, SteppingClock()):
        pass  # so that anyio's own worker thread is there before the count
    before = set(threading.enumerate())
    with anyio.move_on_after(seconds):
        async with History.open(path, SteppingClock()) as history:
            while True:
                await history.record(OBSERVATION, BUILD)
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


async def test_no_thread_outlives_a_refusal(path: Path) -> None:
    path.write_text("not a database")
    await refusal(path)
    before = set(threading.enumerate())
    await refusal(path)
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()
