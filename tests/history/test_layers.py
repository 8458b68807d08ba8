from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bisector.artifacts.image.memory import LayerMemory
from bisector.artifacts.image.record import LayerRecord
from bisector.history.database import Database, open_database
from bisector.history.layers import LARGEST_RECORD, Layers
from bisector.model import Digest
from tests.fakes.clock import SteppingClock

ONE, TWO = Digest("sha256:" + "1" * 64), Digest("sha256:" + "2" * 64)
RECORD = LayerRecord(
    listed={"usr/lib/a.so": 12, "usr/lib/\udcff".encode("utf-8", "replace").decode(): 0},
    contents={"usr/lib/a.so": bytes(range(256)) * 4},
    hardlinks={"b": "a"},
    symlinks={"lib": "usr/lib"},
    others=frozenset({"dev/null"}),
    directories=frozenset({"", "usr", "usr/lib"}),
    whiteouts=frozenset({"gone"}),
    opaque=frozenset({"opt"}),
    complete=False,
    read=2**40,
    verified=False,
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "history.db") as database:
        yield database


@pytest.fixture
def layers(database: Database) -> LayerMemory:
    return Layers(database, SteppingClock(), LayerRecord)


async def test_a_record_comes_back_exactly_as_it_was(layers: LayerMemory) -> None:
    await layers.put(ONE, "deepgemm", RECORD)
    await layers.put(TWO, "deepgemm", LayerRecord())
    assert await layers.get(ONE, "deepgemm") == RECORD
    assert await layers.get(TWO, "deepgemm") == LayerRecord()


async def test_layers_and_searches_are_not_confused(layers: LayerMemory) -> None:
    await layers.put(ONE, "deepgemm", RECORD)
    assert await layers.get(TWO, "deepgemm") is None
    assert await layers.get(ONE, "packages") is None


async def test_a_verified_record_is_not_replaced_by_one_that_is_not(layers: LayerMemory) -> None:
    verified = replace(RECORD, verified=True, complete=True)
    for record, kept in ((RECORD, RECORD), (verified, verified), (RECORD, verified)):
        await layers.put(ONE, "deepgemm", record)
        assert await layers.get(ONE, "deepgemm") == kept


async def test_who_wants_a_verified_record_is_given_no_other(layers: LayerMemory) -> None:
    await layers.put(ONE, "deepgemm", RECORD)
    assert await layers.get(ONE, "deepgemm", verified=True) is None
    await layers.put(ONE, "deepgemm", replace(RECORD, verified=True))
    assert await layers.get(ONE, "deepgemm", verified=True) == replace(RECORD, verified=True)


async def test_a_record_too_large_is_not_kept(layers: LayerMemory) -> None:
    await layers.put(ONE, "deepgemm", replace(RECORD, contents={"a": bytes(LARGEST_RECORD)}))
    assert await layers.get(ONE, "deepgemm") is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRecord:
    """As another version of bisector may understand layers."""

    verified: bool
    needed: int = field()


async def test_a_record_of_another_shape_is_as_if_not_there(layers: LayerMemory, database: Database) -> None:
    newer = Layers(database, SteppingClock(), NewerRecord)
    await layers.put(ONE, "deepgemm", RECORD)
    assert await newer.get(ONE, "deepgemm") is None
    await newer.put(ONE, "deepgemm", NewerRecord(verified=False, needed=1))
    assert await newer.get(ONE, "deepgemm") == NewerRecord(verified=False, needed=1)


async def test_a_damaged_record_is_as_if_not_there(layers: LayerMemory, database: Database) -> None:
    await layers.put(ONE, "deepgemm", RECORD)
    async with database.writing() as connection:
        await connection.execute("UPDATE layers SET record = X'00'")
    assert await layers.get(ONE, "deepgemm") is None
