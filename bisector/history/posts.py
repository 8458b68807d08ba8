"""The outbox: what people and machines are to be told, kept until they were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from bisector.history.codec import encode_time
from bisector.history.database import Database
from bisector.ports import Clock, Draft, Post

_PUT = """
INSERT INTO posts (receiver, key, body, created_at, sent_at) VALUES (:receiver, :key, :body, :now, :sent_at)
ON CONFLICT (receiver, key) DO NOTHING
"""

_DUE = """
SELECT receiver, key, body
FROM posts
WHERE sent_at IS NULL AND (:receiver IS NULL OR receiver = :receiver)
ORDER BY id
"""

_SENT = """
UPDATE posts SET sent_at = :at, attempts = attempts + 1, last_error = NULL
WHERE receiver = :receiver AND key = :key AND sent_at IS NULL
"""

_FAILED = """
UPDATE posts SET attempts = attempts + 1, last_error = :reason
WHERE receiver = :receiver AND key = :key AND sent_at IS NULL
"""


class Posts:
    """An ``Outbox`` in the history file. Every method raises ``HistoryUnavailable`` when that cannot be used."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def keys(self, receiver: str) -> Collection[str]:
        """What a receiver was told, or is to be told."""
        rows = await self._database.fetch("SELECT key FROM posts WHERE receiver = :receiver", {"receiver": receiver})
        return frozenset(str(key) for (key,) in rows)

    async def put(self, receiver: str, drafts: Sequence[Draft], *, sent: bool = False) -> None:
        """Keep them, in this order, all or none; a key that is known already changes nothing. ``sent``: just noted."""
        if not drafts:
            return
        async with self._database.writing() as connection:
            now = encode_time(self._clock.now())
            rows = [
                {
                    "receiver": receiver,
                    "key": draft.key,
                    "body": draft.body,
                    "now": now,
                    "sent_at": now if sent else None,
                }
                for draft in drafts
            ]
            await connection.executemany(_PUT, rows)

    async def due(self, receiver: str | None = None) -> Sequence[Post]:
        """What a receiver, or any, is still to be told, the oldest first."""
        rows = await self._database.fetch(_DUE, {"receiver": receiver})
        return [Post(receiver=str(to), key=str(key), body=str(body)) for to, key, body in rows]

    async def sent(self, post: Post, *, at: datetime) -> None:
        """Note that it was told."""
        async with self._database.writing() as connection:
            values = {"receiver": post.receiver, "key": post.key, "at": encode_time(at)}
            await connection.execute(_SENT, values)

    async def failed(self, post: Post, reason: str) -> None:
        """Note that it could not be told now."""
        async with self._database.writing() as connection:
            values = {"receiver": post.receiver, "key": post.key, "reason": reason}
            await connection.execute(_FAILED, values)
