"""One blob of a registry as a stream that survives broken connections, expired tokens and moved storage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator
from typing import Final

from bisector.artifacts.image.authority import Authority
from bisector.errors import RateLimited, Unavailable, UnknownBuild, Unreadable
from bisector.http import Http, Streamed
from bisector.model import Digest

_FRUITLESS: Final = 3
"""Connections in a row that may break without bringing a byte."""
_BROKEN: Final = 16
_BYTES_A_CONNECTION: Final = 1 << 20
"""Beside the first few broken connections, one is put up with for so many bytes of the blob."""
_TOKENS_IN_A_ROW: Final = 2
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,18})-")


class BlobStream:
    """Reads one blob once, from its first byte to its last.

    Args:
        http: The network.
        authority: The right to read it.
        url: Where the registry has it. It is asked there each time: what it redirects to expires within minutes.
        digest: What it must be.
        size: Its length in bytes.
    """

    def __init__(self, http: Http, authority: Authority, url: str, *, digest: Digest, size: int) -> None:
        self._http = http
        self._authority = authority
        self._url = url
        self._digest = digest
        self._size = size
        self._at = 0
        self._seen = hashlib.sha256()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The content.

        Raises:
            Unreadable: It is not what its digest and size say.
            Unavailable: The registry does not give it, or not without breaking off.
        """
        fruitless = refused = connections = 0
        while self._at < self._size:
            before = self._at
            try:
                async with self._http.stream(self._url, headers=self._headers()) as answer:
                    if answer.status in (401, 403) and refused < _TOKENS_IN_A_ROW:
                        refused += 1
                        if "www-authenticate" in answer.headers:
                            await self._authority.renew(answer.headers["www-authenticate"])
                        continue
                    refused = 0
                    async for piece in self._body(answer):
                        yield piece
                if self._at < self._size:
                    raise self._broken()
            except RateLimited:
                raise
            except Unavailable:
                connections += 1
                fruitless = 0 if self._at > before else fruitless + 1
                if fruitless >= _FRUITLESS or connections > _BROKEN + self._size // _BYTES_A_CONNECTION:
                    raise
        if f"sha256:{self._seen.hexdigest()}" != self._digest:
            raise Unreadable(f"The registry sent something else than {self._digest} (wrong digest)")

    def _headers(self) -> dict[str, str]:
        headers = dict(self._authority.headers)
        if self._at:
            headers["Range"] = f"bytes={self._at}-"
        return headers

    async def _body(self, answer: Streamed) -> AsyncGenerator[bytes, None]:
        skip = self._skip(answer)
        if answer.length is not None and answer.length != self._size - self._at + skip:
            raise self._wrong_length()
        async for whole in answer.chunks:
            piece = whole[skip:]
            skip -= len(whole) - len(piece)
            if len(piece) > self._size - self._at:
                raise self._wrong_length()
            if piece:
                self._at += len(piece)
                self._seen.update(piece)
                yield piece

    def _skip(self, answer: Streamed) -> int:
        """How much of this answer is known already; some caches answer a part's request with the whole."""
        match answer.status:
            case 200:
                return self._at
            case 206:
                part = _CONTENT_RANGE.match(answer.headers.get("content-range", ""))
                if part is None or int(part[1]) != self._at:
                    raise Unreadable(f"The registry sent another part of {self._digest} than it was asked for")
                return 0
            case 404 | 410:
                raise UnknownBuild(f"The registry has {self._digest} no longer")
            case 416:
                raise self._wrong_length()
            case status:
                raise Unavailable(f"The registry answered {status} for {self._digest}")

    def _wrong_length(self) -> Unreadable:
        return Unreadable(f"The registry's {self._digest} is not the {self._size:,} bytes its manifest says")

    def _broken(self) -> Unavailable:
        return Unavailable(f"The registry sent {self._at:,} of the {self._size:,} bytes of {self._digest}")
