"""Turning the pages of a listing without being led elsewhere."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from bisector.errors import Unreadable
from bisector.http import host_of

_NEXT = re.compile(r"""<([^<>]*)>\s*(?:;[^,<>]*?)?;\s*rel\s*=\s*"?next"?(?:[\s;,]|$)""")


def continues(url: str, following: str) -> str:
    """The address of the page after ``url``, which must be on the same server.

    Raises:
        Unreadable: It is somewhere else.
    """
    try:
        address = urljoin(url, following)
        same = _server(address) == _server(url)
    except ValueError:  # no address at all, such as http://[
        address, same = following, False
    if not same:
        raise Unreadable(
            f"{host_of(url)} sends to {host_of(address)} for the next page of its listing",
            hint="Name the address the server itself uses, if there is a proxy or mirror between.",
        )
    return address


def next_link(header: str) -> str | None:
    """The target of ``rel="next"`` in a Link header (RFC 8288), if there is one."""
    found = _NEXT.search(header)
    return found[1] if found else None


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
