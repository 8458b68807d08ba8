"""Brings a history file to the newest schema, one numbered SQL file at a time, each in a transaction of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

import aiosqlite

from bisector.history.transaction import transaction

APPLICATION_ID = 0x62736374
"""``PRAGMA application_id`` of every history file since the first migration; spells "bsct"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema; ``number`` is the ``PRAGMA user_version`` it leads to."""

    number: int
    name: str
    sql: str

    def statements(self) -> Iterator[str]:
        """Its statements one by one: a script run as a whole would end the transaction around it."""
        statement = ""
        for line in self.sql.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration there is, in order, read from ``migrations/NNNN_name.sql``; blocks while reading."""
    folder = resources.files("bisector.history") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(
        Migration(number=int(file.name.split("_")[0]), name=file.name, sql=file.read_text(encoding="utf-8"))
        for file in files
    )


async def upgrade(connection: aiosqlite.Connection, steps: tuple[Migration, ...]) -> None:
    """Apply the steps that are still missing. Foreign keys must be off, so that a step may rebuild a table.

    Two processes may do this at once: whoever comes second finds the step done.
    """
    for step in steps:
        async with transaction(connection):
            if await version(connection) >= step.number:
                continue
            for statement in step.statements():
                await connection.execute(statement)
            broken = await connection.execute_fetchall("PRAGMA foreign_key_check")
            if list(broken):
                raise sqlite3.IntegrityError(f"migration {step.name} leaves rows that point nowhere")
            await connection.execute(f"PRAGMA user_version = {step.number}")


async def version(connection: aiosqlite.Connection) -> int:
    """The number of the last migration applied; 0 in a fresh file."""
    ((number,),) = await connection.execute_fetchall("PRAGMA user_version")
    return int(number)
