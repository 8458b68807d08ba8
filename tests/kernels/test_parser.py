"""The process that opens libraries: what it tells, and what it survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisector.errors import Unavailable, Unreadable
from bisector.kernels.parser import LibraryParser, Limits
from tests.kernels.elf import deep_gemm, elf, for_archs, template

LIBRARY = for_archs("sm90", "sm120")
DECOYS = b"sm120_bf16_gemm.hpp\0&sm120_decoy_impl<\0" + template("impls/sm120_decoy", "sm120_decoy_impl")
SLOW = elf({".rodata": b"a sixteen bytes\0" * (3 << 20)})
"""Three million strings take seconds to look through."""


@pytest.fixture
async def parser() -> AsyncIterator[LibraryParser]:
    async with LibraryParser() as opened:
        yield opened


def pid(parser: LibraryParser) -> int:
    assert parser._worker is not None
    return parser._worker.process.pid


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_templates_are_found_in_read_only_data_and_nowhere_else(parser: LibraryParser) -> None:
    found = await parser.templates(deep_gemm(template("impls/sm90_x", "sm90_x"), decoys=DECOYS), name="x.so")
    assert found.count == 1
    assert [one.entries for one in found.naming] == [("sm90_x",)]


async def test_a_host_library_has_no_device_code(parser: LibraryParser) -> None:
    assert await parser.targets(LIBRARY, name="x.so") == ()


async def test_one_process_serves_many_libraries(parser: LibraryParser) -> None:
    await parser.templates(LIBRARY, name="x.so")
    first = pid(parser)
    with pytest.raises(Unreadable):
        await parser.templates(b"garbage", name="y.so")
    assert (await parser.templates(LIBRARY, name="x.so")).count == 4
    assert pid(parser) == first


async def test_many_may_ask_at_once(parser: LibraryParser) -> None:
    counts = []

    async def ask(*archs: str) -> None:
        counts.append((len(archs), (await parser.templates(for_archs(*archs), name="x.so")).count))

    async with anyio.create_task_group() as group:
        for archs in (["sm90"], ["sm90", "sm100"], ["sm90", "sm100", "sm120"]) * 3:
            group.start_soon(ask, *archs)
    assert all(templates == 2 * archs for archs, templates in counts)


def with_header(offset: int, value: bytes) -> bytes:
    return LIBRARY[:offset] + value + LIBRARY[offset + len(value) :]


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (b"", "It is not an ELF file."),
        (b"#!/bin/sh\n", "It is not an ELF file."),
        (b"\x7fELF", "Its ELF header is damaged."),
        (LIBRARY[:-1], "It ends before its section table, so it is not complete."),
        (LIBRARY[: len(LIBRARY) // 2], "It ends before its section table, so it is not complete."),
        (with_header(0x3C, b"\xff\xff"), "It ends before its section table, so it is not complete."),
        (with_header(0x28, b"\xff" * 8), "It ends before its section table, so it is not complete."),
        (with_header(0x3C, b"\0\0"), "It has no section table."),
        (elf({".text": b"\x90"}), "It has no read-only data (.rodata)."),
        (elf({".rodata": bytes(65 << 20)}), "Its read-only data has more than 64 MiB."),
        (elf({".rodata": b"".join(b"a = &sm120_op%d;\0" % n for n in range(5000))}), "More than 4096 strings"),
    ],
    ids=["empty", "script", "magic", "last byte", "half", "sections", "table", "none", "no data", "much", "names"],
)
async def test_what_is_no_whole_library_is_unreadable(parser: LibraryParser, library: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        await parser.templates(library, name="vllm/x.so")
    assert f"{caught.value.message}.".startswith(f"vllm/x.so cannot be read. {reason}")


async def test_a_section_beyond_the_end_is_unreadable(parser: LibraryParser) -> None:
    size = (len(LIBRARY) + 1).to_bytes(8, "little")
    table = int.from_bytes(LIBRARY[0x28:0x30], "little")
    library = bytearray(LIBRARY)
    library[table + 2 * 64 + 32 : table + 2 * 64 + 40] = size
    with pytest.raises(Unreadable, match=r"It ends within \.rodata"):
        await parser.templates(bytes(library), name="x.so")


async def test_damaged_device_code_is_unreadable(parser: LibraryParser) -> None:
    with pytest.raises(Unreadable, match="Its device code is damaged at offset 0"):
        await parser.targets(elf({".nv_fatbin": b"x" * 64}), name="x.so")


@pytest.mark.parametrize(
    ("limits", "library", "reason"),
    [
        (Limits(seconds=0.5), SLOW, "it took more than 0.5 s"),
        (Limits(cpu_seconds=1), SLOW, "it needs more than 1 s of processor time"),
        (Limits(memory=160 << 20), elf({".debug_info": bytes(120 << 20)}), "it needs more than 160 MiB of memory"),
    ],
    ids=["wall", "processor", "memory"],
)
async def test_a_library_that_costs_too_much_costs_one_observation(limits: Limits, library: bytes, reason: str) -> None:
    async with LibraryParser(limits) as parser:
        with pytest.raises(Unreadable) as caught:
            await parser.templates(library, name="x.so")
        assert caught.value.message == f"x.so cannot be read: {reason}"
        assert (await parser.templates(LIBRARY, name="x.so")).count == 4


async def killed(parser: LibraryParser, how: signal.Signals) -> None:
    """Have the process die of this signal while it reads."""
    await parser.templates(LIBRARY, name="x.so")
    async with anyio.create_task_group() as group:

        async def kill() -> None:
            await anyio.sleep(0.3)
            os.kill(pid(parser), how)

        group.start_soon(kill)
        try:
            await parser.templates(SLOW, name="x.so")
        except (Unreadable, Unavailable) as error:
            caught = error
    raise caught


async def test_a_crash_is_the_library_s_doing(parser: LibraryParser) -> None:
    with pytest.raises(Unreadable, match=r"it crashes the ELF parser \(exit status -11\)"):
        await killed(parser, signal.SIGSEGV)
    assert (await parser.templates(LIBRARY, name="x.so")).count == 4


async def test_being_killed_is_the_machine_s_doing(parser: LibraryParser) -> None:
    with pytest.raises(Unavailable, match=r"was killed while it read x\.so"):
        await killed(parser, signal.SIGKILL)
    assert (await parser.templates(LIBRARY, name="x.so")).count == 4


async def test_a_process_that_died_in_between_is_replaced(parser: LibraryParser) -> None:
    await parser.templates(LIBRARY, name="x.so")
    os.kill(pid(parser), signal.SIGKILL)
    await anyio.sleep(0.2)
    assert (await parser.templates(LIBRARY, name="x.so")).count == 4


async def test_a_process_that_does_not_start_is_nobody_s_library() -> None:
    async with LibraryParser(Limits(memory=1 << 20)) as starved:
        with pytest.raises(Unavailable, match="does not start") as caught:
            await starved.templates(LIBRARY, name="x.so")
    assert "-m bisector.kernels.worker" in caught.value.hint


async def test_cancellation_leaves_no_process_and_a_parser_that_works(parser: LibraryParser) -> None:
    await parser.templates(LIBRARY, name="x.so")
    process = pid(parser)
    with anyio.move_on_after(0.3) as scope:
        await parser.templates(SLOW, name="x.so")
    assert scope.cancelled_caught
    assert not is_alive(process)
    assert (await parser.templates(LIBRARY, name="x.so")).count == 4


async def test_cancellation_while_it_starts_leaves_no_process() -> None:
    before = children()
    async with LibraryParser() as parser:
        with anyio.move_on_after(0.1) as scope:
            await parser.templates(LIBRARY, name="x.so")
        assert scope.cancelled_caught
        assert children() == before


def children() -> set[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:  # noqa: PTH123
        return set(listed.read().split())


async def test_closing_leaves_no_process() -> None:
    async with LibraryParser() as parser:
        await parser.templates(LIBRARY, name="x.so")
        process = pid(parser)
    assert not is_alive(process)


def test_the_process_ends_with_its_parent_however_that_ended() -> None:
    program = """
import anyio
from bisector.kernels.parser import LibraryParser
from tests.kernels.elf import for_archs

async def main():
    async with LibraryParser() as parser:
        await parser.templates(for_archs("sm90"), name="x.so")
        print(parser._worker.process.pid, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        assert is_alive(process)
        parent.kill()
    until(lambda: not is_alive(process))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


CHANGES = st.lists(st.tuples(st.integers(0, len(LIBRARY) - 1), st.integers(0, 255)), min_size=1, max_size=12)
HEADER_CHANGES = st.lists(st.tuples(st.integers(0, 63), st.sampled_from([0, 1, 127, 255])), min_size=1, max_size=4)


def changed(changes: list[tuple[int, int]]) -> bytes:
    library = bytearray(LIBRARY)
    for place, value in changes:
        library[place] = value
    return bytes(library)


HOSTILE = st.lists(
    st.binary(max_size=400)
    | st.binary(max_size=400).map(b"\x7fELF\x02\x01\x01".__add__)
    | CHANGES.map(changed)
    | HEADER_CHANGES.map(changed),
    min_size=60,
    max_size=60,
)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(HOSTILE)
def test_no_bytes_break_the_parent(libraries: list[bytes]) -> None:
    async def ask() -> None:
        async with LibraryParser(Limits(seconds=5)) as parser:
            for library in libraries:
                for question in (parser.templates, parser.targets):
                    with suppress(Unreadable):
                        await question(library, name="x.so")
            assert (await parser.templates(LIBRARY, name="x.so")).count == 4

    anyio.run(ask)
