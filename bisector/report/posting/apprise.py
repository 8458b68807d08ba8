"""Chat, mail and webhooks, by any address that apprise knows: https://appriseit.com/services/."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import anyio
from anyio import to_thread

from bisector.errors import ConfigError, Unavailable
from bisector.ports import Draft, Post
from bisector.report.posting.message import harmless, message
from bisector.results import Night

PATIENCE: Final = 60.0
"""Seconds after which a receiver that trickles is given up."""

_STATUS = re.compile(r"\berror=(\d{3})\b")


class AppriseReceiver:
    """A chat, a mailbox or a webhook.

    Args:
        name: What the configuration calls it.
        address: Gives the address, which is a secret: it is in no message and no log.
        patience: How long one post may take, in seconds.
    """

    def __init__(self, name: str, address: Callable[[], str], *, patience: float = PATIENCE) -> None:
        self.name = name
        self._address = address
        self._patience = patience

    def drafts(self, night: Night, told: Collection[str], *, always: bool) -> Sequence[Draft]:
        """One message with all the news it does not know; ``always``: one a day at least."""
        known = {key for keys in told for key in keys.split("\n")}
        news = [one for one in night.news if one.key not in known]
        today = f"night:{night.at:%Y-%m-%d}"
        if not news and (not always or today in known):
            return ()
        body = message(night, news)
        key = "\n".join([*(one.key for one in news), *([today] if always else [])])
        return [Draft(key=key, body=body, says=body.partition("\n")[0])]

    async def send(self, post: Post) -> None:
        """Send a message; it may come twice if this process dies before it learns that the first came through."""
        title, _, text = post.body.partition("\n\n")
        await self._notify(title, text)

    def check(self) -> None:
        """Whether there is an address, and apprise knows its kind."""
        _box(self.name, self._address())

    async def try_out(self) -> str:
        """Send a message that says it is a trial."""
        await self._notify("bisector: a trial post", f"{harmless(self.name)} is reached; no news.")
        return "sent a trial post"

    async def _notify(self, title: str, text: str) -> None:
        address = self._address()
        try:
            with anyio.fail_after(self._patience):
                await to_thread.run_sync(_notify, self.name, address, title, text, abandon_on_cancel=True)
        except TimeoutError as error:
            raise Unavailable(f"{self.name} is too slow: no answer in {self._patience:.0f} s") from error


def _notify(name: str, address: str, title: str, text: str) -> None:
    apprise, box = _library(), _box(name, address)
    with apprise.LogCapture(level=apprise.logging.WARNING) as log:
        try:
            done = box.notify(body=text, title=title, body_format=apprise.NotifyFormat.TEXT)
        except Exception as error:  # whatever one of its hundred services does must not stop the others
            raise Unavailable(f"{name} did not take the post ({type(error).__name__})") from error
        told = log.getvalue()
    if not done:
        # Apprise's own words may hold the address; a status does not.
        status = _STATUS.findall(told)
        answered = f" (it answered {status[-1]})" if status else ""
        raise Unavailable(f"{name} did not take the post{answered}", hint="Check its address, and that it answers.")


def _box(name: str, address: str) -> Any:
    apprise = _library()
    box = apprise.Apprise()
    # What apprise has to say about an address may repeat it.
    with apprise.LogCapture(level=apprise.logging.CRITICAL):
        known = box.add(address)
    if not known:
        raise ConfigError(
            f"The address of {name} is none that apprise knows",
            hint="See https://appriseit.com/services/ for how each is written.",
        )
    return box


def _library() -> Any:
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ConfigError(
            "Posting to chat and mail needs apprise, which is not installed",
            hint="Install it: pip install 'bisector[notify]'.",
        ) from error
    return apprise
