"""Builds in the history: met again, pushed again, or never seen before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import aiosqlite

from bisector.history.codec import encode_strings, encode_time
from bisector.history.database import Values
from bisector.model import Build, Digest

_MEET_STREAM = """
INSERT INTO streams (source, first_seen_at, last_listed_at)
VALUES (:source, :now, :listed)
ON CONFLICT (source) DO UPDATE SET last_listed_at = coalesce(excluded.last_listed_at, last_listed_at)
"""

_LEARN_DIGEST = """
UPDATE builds SET digest = :digest
WHERE stream_id = (SELECT id FROM streams WHERE source = :source) AND name = :name AND platform = :platform
    AND digest IS NULL AND :digest IS NOT NULL
"""

_MEET_BUILD = """
INSERT INTO builds (
    stream_id, name, platform, spec, digest, commit_id, published_at, pin, marks,
    first_seen_at, last_seen_at, last_listed_at
)
VALUES (
    (SELECT id FROM streams WHERE source = :source), :name, :platform, :spec,
    coalesce(:digest, (
        SELECT known.digest
        FROM builds AS known
        JOIN streams ON streams.id = known.stream_id
        WHERE streams.source = :source AND known.name = :name AND known.platform = :platform
        ORDER BY known.last_seen_at DESC, known.id DESC
        LIMIT 1
    )),
    :commit_id, :published_at, :pin, :marks, :now, :now, :listed
)
ON CONFLICT (stream_id, name, platform, coalesce(digest, '')) DO UPDATE SET
    spec = excluded.spec,
    commit_id = coalesce(excluded.commit_id, commit_id),
    published_at = coalesce(excluded.published_at, published_at),
    pin = coalesce(excluded.pin, pin),
    marks = excluded.marks,
    last_seen_at = max(last_seen_at, excluded.last_seen_at),
    last_listed_at = coalesce(excluded.last_listed_at, last_listed_at)
"""


async def meet(
    connection: aiosqlite.Connection,
    builds: Sequence[Build],
    *,
    now: datetime,
    listed: bool,
    seen_in: Digest | None = None,
) -> None:
    """Note that these builds were listed by their stream, or that one of them was read.

    A row is a name with one content. A build of a known name and another digest is a new row: it was pushed again. A
    build without a digest means the row of its name that was met last; that row learns its digest from the stream or
    from a reading (``seen_in``), whichever tells it first. What a stream no longer says of a build is kept.
    """
    met = encode_time(now)
    rows: list[Values] = [
        {
            "source": build.source,
            "name": build.id,
            "platform": build.platform,
            "spec": build.spec,
            "digest": build.digest or seen_in,
            "commit_id": build.commit,
            "published_at": encode_time(build.published_at) if build.published_at else None,
            "pin": build.pin,
            "marks": encode_strings(build.marks),
            "now": met,
            "listed": met if listed else None,
        }
        for build in builds
    ]
    await connection.executemany(_MEET_STREAM, rows)
    await connection.executemany(_LEARN_DIGEST, rows)
    await connection.executemany(_MEET_BUILD, rows)
