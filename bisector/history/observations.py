"""Observations in the history: stored once, found by content."""

from __future__ import annotations

from datetime import datetime

import aiosqlite

from bisector.history.codec import decode, encode, encode_strings, encode_time
from bisector.model import Observation

_EXISTING = "SELECT id, document FROM observations WHERE digest = ? AND depth = ? AND probe_version = ?"

_INSERT = """
INSERT INTO observations (
    digest, depth, probe_version, evidence, observed_at, deep_gemm_status, deep_gemm_version, vllm_version, commit_id,
    gate_capabilities, gate_families, gate_readable, document
)
VALUES (
    :digest, :depth, :probe_version, :evidence, :observed_at, :deep_gemm_status, :deep_gemm_version, :vllm_version,
    :commit_id, :gate_capabilities, :gate_families, :gate_readable, :document
)
"""

# The document is the truth and these rows repeat it: what it names twice is one row.
_INSERT_KERNEL = """
INSERT INTO kernels (observation_id, arch, op, units, entries) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_INSERT_PACKAGE = "INSERT INTO packages (observation_id, name, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"

DEEP_ENOUGH = """
SELECT document
FROM observations
WHERE digest = :digest AND probe_version >= :version AND (depth = :depth OR depth = 'kernels')
ORDER BY probe_version DESC, depth = 'kernels' DESC
"""
"""The newest reading first. ``kernels`` is the deepest there is, so it answers for both depths."""

WANTED = """
WITH wanted AS (
    SELECT
        key AS place,
        json_extract(value, '$.id') AS id,
        coalesce(json_extract(value, '$.digest'), (
            SELECT builds.digest
            FROM builds
            JOIN streams ON streams.id = builds.stream_id
            WHERE streams.source = json_extract(value, '$.source') AND builds.name = json_extract(value, '$.id')
                AND builds.platform = json_extract(value, '$.platform')
            ORDER BY builds.last_seen_at DESC, builds.id DESC
            LIMIT 1
        )) AS digest
    FROM json_each(:wanted)
)
"""
"""Place, id and digest of each build in the JSON array ``:wanted``; where it names no digest, the last one known."""

DEEPEST_OF_BUILDS = f"""{WANTED}SELECT wanted.id, observations.document
FROM wanted
JOIN observations ON observations.digest = wanted.digest
ORDER BY wanted.place, observations.depth = 'kernels' DESC, observations.probe_version DESC
"""  # noqa: S608 - put together of constants
"""For ``wanted``, a JSON array of ``{id, source, platform, digest}``; the deepest and then newest reading first."""


async def store(connection: aiosqlite.Connection, observation: Observation, *, now: datetime) -> None:
    """Insert it, unless the same reading of the same content is there and can be understood.

    Raises:
        Unreadable: It cannot be written down.
    """
    document = encode(observation)
    identity = (observation.digest, observation.depth, observation.probe_version)
    for number, existing in await connection.execute_fetchall(_EXISTING, identity):
        if decode(existing) is not None:
            return
        await connection.execute("DELETE FROM observations WHERE id = ?", (number,))
    gate = observation.gate
    cursor = await connection.execute(
        _INSERT,
        {
            "digest": observation.digest,
            "depth": observation.depth,
            "probe_version": observation.probe_version,
            "evidence": observation.evidence,
            "observed_at": encode_time(now),
            "deep_gemm_status": observation.deep_gemm.status,
            "deep_gemm_version": observation.deep_gemm.version,
            "vllm_version": observation.provenance.version,
            "commit_id": observation.provenance.commit,
            "gate_capabilities": encode_strings(gate.capabilities) if gate else None,
            "gate_families": encode_strings(gate.families) if gate else None,
            "gate_readable": gate.readable if gate else None,
            "document": document,
        },
    )
    await store_parts(connection, cursor.lastrowid, observation)


async def store_parts(connection: aiosqlite.Connection, number: int | None, observation: Observation) -> None:
    """Insert the rows that repeat parts of a document that was inserted under this number."""
    kernels = [
        (number, arch, kernel.op, encode_strings(kernel.units), encode_strings(kernel.entries))
        for arch, operations in observation.kernels.items()
        for kernel in operations
    ]
    await connection.executemany(_INSERT_KERNEL, kernels)
    packages = [(number, package.name, package.version) for package in observation.packages]
    await connection.executemany(_INSERT_PACKAGE, packages)
