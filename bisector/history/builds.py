"""Builds in the history: met again, pushed again, or never seen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import aiosqlite
import msgspec

from bisector.history.codec import decode_places, decode_time, encode_places, encode_strings, encode_time
from bisector.history.database import Row, Value, Values
from bisector.model import Build, Digest, Location, Mark, Platform, RemoteImage

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
    stream_id, name, platform, spec, digest, commit_id, published_at, pin, marks, places,
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
    :commit_id, :published_at, :pin, :marks, :places, :now, :now, :listed
)
ON CONFLICT (stream_id, name, platform, coalesce(digest, '')) DO UPDATE SET
    spec = excluded.spec,
    commit_id = coalesce(excluded.commit_id, commit_id),
    published_at = coalesce(excluded.published_at, published_at),
    pin = coalesce(excluded.pin, pin),
    marks = excluded.marks,
    places = excluded.places,
    last_seen_at = max(last_seen_at, excluded.last_seen_at),
    last_listed_at = coalesce(excluded.last_listed_at, last_listed_at)
"""


_ARRANGE = """
UPDATE builds SET ordered_at = :ordered_at
WHERE stream_id = (SELECT id FROM streams WHERE source = :source) AND name = :name AND platform = :platform
    AND ordered_at IS NOT :ordered_at
"""

REMEMBERED = """
SELECT
    timeline.build, timeline.source, builds.spec, timeline.platform, timeline.digest, timeline.published_at,
    builds.commit_id, builds.pin, builds.marks, builds.places, timeline.state = 'gone'
FROM build_timeline AS timeline
JOIN builds ON builds.id = timeline.build_id
WHERE timeline.source = :source AND timeline.platform = :platform AND timeline.state <> 'superseded'
ORDER BY timeline.sort_key, timeline.build_id
"""
"""The columns that :func:`rebuilt` takes."""


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
            "marks": encode_strings(tuple(mark for mark in build.marks if mark is not Mark.GONE)),
            "places": encode_places(build),
            "now": met,
            "listed": met if listed else None,
        }
        for build in builds
    ]
    await connection.executemany(_MEET_STREAM, rows)
    await connection.executemany(_LEARN_DIGEST, rows)
    await connection.executemany(_MEET_BUILD, rows)


async def arrange(connection: aiosqlite.Connection, builds: Sequence[Build]) -> None:
    """Give each build a moment to be ordered by: its own, unless that is not before the next one's."""
    rows: list[Values] = []
    following: datetime | None = None
    for build in reversed(builds):
        own = build.published_at
        if following is not None and (own is None or own >= following):
            own = following - timedelta(microseconds=1)
        following = own
        rows.append(
            {
                "source": build.source,
                "name": build.id,
                "platform": build.platform,
                "ordered_at": encode_time(own) if own else None,
            }
        )
    await connection.executemany(_ARRANGE, rows)


def rebuilt(row: Row) -> Build:
    """The build as its stream last told it; see :meth:`~bisector.ports.Catalogue.remembered`."""
    name, source, spec, platform, digest, published_at, commit, pin, marks, places, gone = map(_text, row)
    where = decode_places(places)
    content = Digest(digest) if digest else None
    return Build(
        id=str(name),
        source=str(source),
        spec=str(spec),
        platform=Platform(str(platform)),
        location=_by_digest(where.location, content) if gone == "1" else where.location,
        witness=where.witness,
        elsewhere=where.elsewhere,
        digest=content,
        published_at=decode_time(published_at) if published_at else None,
        commit=commit,
        pin=pin,
        marks=(*msgspec.json.decode(marks or "[]", type=tuple[Mark, ...]), *([Mark.GONE] if gone == "1" else [])),
    )


def _text(value: Value) -> str | None:
    return None if value is None else str(value)


def _by_digest(location: Location | None, digest: Digest | None) -> Location | None:
    """A registry forgets a tag long before what it named."""
    if isinstance(location, RemoteImage) and digest:
        return replace(location, reference=digest)
    return location
