"""Who is told, and what waits to be told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bisector.results import Night


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Something to tell a receiver.

    Attributes:
        key: What it is about: a receiver is told it once.
        body: What is kept and sent; the receiver that wrote it understands it.
        says: It in one line, for people.
    """

    key: str
    body: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a receiver is to be told, kept until it was."""

    receiver: str
    key: str
    body: str


class Outbox(Protocol):
    """The memory of what was told, so that nothing is told twice and nothing that is due is forgotten.

    A receiver is known by its name in the configuration.
    """

    async def keys(self, receiver: str) -> Collection[str]:
        """What a receiver was told, or is to be told."""

    async def put(self, receiver: str, drafts: Sequence[Draft], *, sent: bool = False) -> None:
        """Keep them, in this order, all or none; a key that is known already changes nothing. ``sent``: just noted."""

    async def due(self, receiver: str | None = None) -> Sequence[Post]:
        """What a receiver, or any, is still to be told, the oldest first."""

    async def sent(self, post: Post, *, at: datetime) -> None:
        """Note that it was told."""

    async def failed(self, post: Post, reason: str) -> None:
        """Note that it could not be told now."""


class Receiver(Protocol):
    """Somebody or something that is told of changes."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    def drafts(self, night: Night, told: Collection[str], *, always: bool) -> Sequence[Draft]:
        """What it should be told of a night, given the keys of what it knows; ``always``: also that nothing changed."""

    async def send(self, post: Post) -> None:
        """Tell it, within a minute or so; what may have come through before is not told twice, if that can be known.

        Raises:
            ConfigError: Its address or token is missing or wrong.
            Unavailable: It does not answer, or did not take it.
        """

    def check(self) -> None:
        """Find mistakes that can be found without reaching it.

        Raises:
            ConfigError: There is one.
        """

    async def try_out(self) -> str:
        """Reach it without telling any news; what was done, in a phrase. Raises as ``send`` does."""


class Gauge(Protocol):
    """Something that shows how things stand, and forgets how they stood."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    async def show(self, night: Night, *, pending: int) -> None:
        """Show this night, and how many posts are due.

        Raises:
            ConfigError: It cannot be shown as the configuration wants it.
            Unavailable: It cannot be written.
        """

    def check(self) -> None:
        """Find mistakes without writing it. Raises ``ConfigError`` for one."""

    async def try_out(self) -> str:
        """Find out whether it can be written. Raises as ``show`` does."""
