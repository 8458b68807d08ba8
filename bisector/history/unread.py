"""What nobody has read yet, and what nobody could."""

from __future__ import annotations

from datetime import datetime

import aiosqlite

from bisector.history.codec import encode_time
from bisector.history.database import Values
from bisector.model import Build, Verdict

_GIVE_UP = """
INSERT INTO untestable_builds (build_id, reason, tried_at, expires_at)
SELECT builds.id, :reason, :now, :expires_at
FROM builds
JOIN streams ON streams.id = builds.stream_id
WHERE streams.source = :source AND builds.name = :name AND builds.platform = :platform
    AND (:digest IS NULL OR builds.digest = :digest)
ORDER BY builds.last_seen_at DESC, builds.id DESC
LIMIT 1
ON CONFLICT (build_id) DO UPDATE SET
    reason = excluded.reason, tried_at = excluded.tried_at, expires_at = excluded.expires_at
"""

UNREAD = """
SELECT wanted.key
FROM json_each(:wanted) AS wanted
LEFT JOIN builds ON builds.id = (
    SELECT known.id
    FROM builds AS known
    JOIN streams ON streams.id = known.stream_id
    WHERE streams.source = json_extract(wanted.value, '$.source')
        AND known.name = json_extract(wanted.value, '$.id')
        AND known.platform = json_extract(wanted.value, '$.platform')
        AND coalesce(json_extract(wanted.value, '$.digest') = known.digest, TRUE)
    ORDER BY known.last_seen_at DESC, known.id DESC
    LIMIT 1
)
WHERE NOT EXISTS (
    SELECT *
    FROM observations
    WHERE observations.digest = coalesce(json_extract(wanted.value, '$.digest'), builds.digest)
        AND observations.probe_version >= :version AND (observations.depth = :depth OR observations.depth = 'kernels')
) AND NOT EXISTS (
    SELECT *
    FROM untestable_builds AS given_up
    WHERE given_up.build_id = builds.id AND coalesce(given_up.expires_at > :now, TRUE)
)
ORDER BY wanted.key
"""
"""For ``wanted``, a JSON array of ``{id, source, platform, digest}``: the places in it of those not read yet."""


async def give_up(connection: aiosqlite.Connection, build: Build, verdict: Verdict, *, now: datetime) -> None:
    """Note why a build that was met cannot be looked at."""
    values: Values = {
        "source": build.source,
        "name": build.id,
        "platform": build.platform,
        "digest": build.digest,
        "reason": verdict.reason,
        "now": encode_time(now),
        "expires_at": encode_time(verdict.expires_at) if verdict.expires_at else None,
    }
    await connection.execute(_GIVE_UP, values)
