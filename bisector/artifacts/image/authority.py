"""Tokens for one repository: what a registry's challenge asks for, and getting it again when it expires.

https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from bisector.artifacts.image.credentials import Credentials, Login
from bisector.artifacts.image.reference import is_loopback
from bisector.errors import Unavailable, Unreadable
from bisector.http import Http, host_of

_LONGEST_TOKEN: Final = 1 << 18
_OK: Final = 200
_PARAMETER: Final = re.compile(r'([a-z]+)="([^"]*)"', re.IGNORECASE)
_SAFE_TOKEN: Final = re.compile(r"[\x21-\x7e]+\Z")


class _Token(msgspec.Struct, frozen=True):
    token: str | None = None
    access_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What a registry wants to see.

    Attributes:
        scheme: ``bearer`` or ``basic``.
        realm: Where tokens are given out.
        service: Who the token is for; left out by some.
        scope: What it allows; left out by some.
    """

    scheme: str
    realm: str = ""
    service: str = ""
    scope: str = ""


class Authority:
    """Gets and renews the right to read one repository.

    Args:
        http: The network.
        host: The registry.
        repository: The repository.
        credentials: Who we are; nobody is tried last.
    """

    def __init__(self, http: Http, host: str, repository: str, credentials: Credentials) -> None:
        self._http = http
        self._host = host
        self._repository = repository
        self._credentials = credentials
        self._challenge: Challenge | None = None
        self._header: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """What to send along."""
        return {} if self._header is None else {"Authorization": self._header}

    async def renew(self, www_authenticate: str) -> None:
        """Obtain the right again, after an answer 401 with this challenge.

        The first challenge ever seen is answered, whatever later ones say: nvcr.io points to a place for expired
        tokens that turns everybody anonymous away (NVIDIA/nvidia-container-toolkit#1945).

        Raises:
            Unavailable: It is not given.
        """
        self._header = None
        challenge = self._challenge = self._challenge or parse_challenge(www_authenticate)
        login = await self._credentials.login(self._host)
        if challenge.scheme == "basic":
            if login is None:
                raise self._denied()
            self._header = _basic(login)
            return
        realm = urlsplit(challenge.realm)
        if realm.scheme != "https" and not (realm.scheme == "http" and is_loopback(realm.hostname or "")):
            raise Unreadable(f"{self._host} sends for its tokens to an address that is not encrypted")
        for who in (login, None) if login is not None else (None,):
            token = await self._ask(challenge, who)
            if token is not None:
                self._header = f"Bearer {token}"
                return
        raise self._denied()

    async def _ask(self, challenge: Challenge, login: Login | None) -> str | None:
        wanted = {"scope": challenge.scope or f"repository:{self._repository}:pull"}
        if challenge.service:
            wanted = {"service": challenge.service, **wanted}
        url = f"{challenge.realm}{'&' if '?' in challenge.realm else '?'}{urlencode(wanted)}"
        headers = {} if login is None else {"Authorization": _basic(login)}
        reply = await self._http.get(url, headers=headers, limit=_LONGEST_TOKEN)
        if reply.status != _OK:
            return None
        try:
            answer = msgspec.json.decode(reply.body, type=_Token)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise Unavailable(f"{host_of(challenge.realm)} gave out a token that cannot be read") from exc
        token = answer.token or answer.access_token or ""
        return token if _SAFE_TOKEN.match(token) else None

    def _denied(self) -> Unavailable:
        return Unavailable(
            f"{self._host} does not let {self._repository} be read",
            hint=f"Check the name; if it is private, run `docker login {self._host}`.",
        )


def parse_challenge(header: str) -> Challenge:
    """Understand ``WWW-Authenticate``; of several challenges the one for a token.

    Raises:
        Unreadable: None of them is known.
    """
    bearer = re.search(r"\bBearer\s+(.*)", header, re.IGNORECASE | re.DOTALL)
    if bearer:
        given = {name.lower(): value for name, value in _PARAMETER.findall(bearer[1])}
        if given.get("realm"):
            return Challenge(
                scheme="bearer",
                realm=given["realm"],
                service=given.get("service", ""),
                scope=given.get("scope", ""),
            )
    if re.match(r"\s*Basic\b", header, re.IGNORECASE):
        return Challenge(scheme="basic")
    raise Unreadable("The registry asks for a login of a kind that bisector does not know")


def _basic(login: Login) -> str:
    return "Basic " + base64.b64encode(f"{login.username}:{login.password}".encode()).decode("ascii")
