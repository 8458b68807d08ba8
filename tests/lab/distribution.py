"""Docker Hub's manners in front of a plain registry: tokens, a pull limit, blobs elsewhere.

Three hosts as in reality, here three ports: the registry's front, the realm that gives tokens, and the storage that
blobs are redirected to, which refuses a request that brings a token along.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode, urlsplit

from .registry import Registry
from .website import Answer, FilePart, Request, Website, as_json, ranged

_SERVICE: Final = "registry.docker.io"
_WINDOW: Final = 21_600  # seconds a pull is remembered
_RELAYED: Final = ("Content-Type", "Docker-Content-Digest", "Docker-Distribution-Api-Version", "Etag", "Link")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    repository: str
    expires: float


class TokenRealm:
    """Gives tokens to anybody for pulling, but to nobody with a wrong password.

    https://docs.docker.com/reference/api/registry/auth/

    Attributes:
        seconds: How long a new token holds.
    """

    def __init__(self, *, seconds: int, accounts: Mapping[str, str]) -> None:
        self.seconds = seconds
        self._accounts = accounts
        self._tokens: dict[str, _Token] = {}
        self.site = Website(self._answer)

    def admits(self, authorization: str | None, repository: str | None) -> bool:
        """Whether a request's ``Authorization`` lets it read the repository."""
        token = self._tokens.get((authorization or "").removeprefix("Bearer "))
        if token is None or token.expires <= time.monotonic():
            return False
        return repository in {None, token.repository}

    def challenge(self, repository: str | None, *, expired: bool) -> str:
        """What ``WWW-Authenticate`` says to who was not admitted."""
        parameters = {"realm": f"{self.site.url}/token", "service": _SERVICE}
        if repository:
            parameters["scope"] = f"repository:{repository}:pull"
        if expired:
            parameters["error"] = "invalid_token"
        return "Bearer " + ",".join(f'{name}="{value}"' for name, value in parameters.items())

    def revoke(self) -> None:
        """Let all tokens expire at once."""
        self._tokens.clear()

    def _answer(self, request: Request) -> Answer:
        if request.path != "/token":
            return Answer(status=404)
        authorization = request.headers.get("authorization")
        if authorization is not None and not self._knows(authorization):
            return as_json({"details": "incorrect username or password"}, status=401)
        scope = re.fullmatch(r"repository:([^:]+):[a-z,*]+", request.query.get("scope", ""))
        token = secrets.token_urlsafe(48)
        self._tokens[token] = _Token(repository=scope[1] if scope else "", expires=time.monotonic() + self.seconds)
        issued = datetime.now(UTC).isoformat()
        return as_json({"token": token, "access_token": token, "expires_in": self.seconds, "issued_at": issued})

    def _knows(self, authorization: str) -> bool:
        try:
            user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self._accounts.get(user) == password


class BlobStorage:
    """Hands out blobs by signed addresses that expire, to requests without ``Authorization`` only.

    Attributes:
        seconds: How long an address holds.
        cut_every: Bytes after which every transfer breaks off, or ``None``.
    """

    def __init__(self, registry: Registry) -> None:
        self.seconds = 300
        self.cut_every: int | None = None
        self._registry = registry
        self._secret = secrets.token_hex()
        self.site = Website(self._answer)

    def address(self, digest: str) -> str:
        """Where a blob can be had for a while."""
        path = f"/registry-v2/docker/registry/v2/blobs/{digest.replace(':', '/')}/data"
        expires = str(int(time.time()) + self.seconds)
        return f"{self.site.url}{path}?{urlencode({'expires': expires, 'signature': self._sign(path, expires)})}"

    def _sign(self, path: str, expires: str) -> str:
        return hashlib.sha256(f"{path} {expires} {self._secret}".encode()).hexdigest()

    def _answer(self, request: Request) -> Answer:
        expires = request.query.get("expires", "0")
        if "authorization" in request.headers:
            return _refusal(400, "InvalidArgument", "Only one auth mechanism allowed")
        if request.query.get("signature") != self._sign(request.path, expires):
            return _refusal(403, "SignatureDoesNotMatch", "The request signature does not match")
        if float(expires) < time.time():
            return _refusal(403, "AccessDenied", "Request has expired")
        digest = "sha256:" + request.path.split("/")[-2]
        path = self._registry.blob(digest)
        answer = ranged(
            request,
            path.stat().st_size,
            lambda start, stop: FilePart(path=path, start=start, stop=stop),
            {"Content-Type": "application/octet-stream", "ETag": f'"{digest}"'},
        )
        return Answer(status=answer.status, headers=answer.headers, body=answer.body, cut_after=self.cut_every)


class Front:
    """The registry as the world sees it.

    Attributes:
        pulls_left: How many manifests may still be got; asking with HEAD costs nothing.
    """

    def __init__(self, registry: Registry, realm: TokenRealm, storage: BlobStorage, *, pull_limit: int) -> None:
        self._registry = registry
        self._realm = realm
        self._storage = storage
        self._limit = pull_limit
        self.pulls_left = pull_limit
        self.site = Website(self._answer)

    def _answer(self, request: Request) -> Answer:
        named = re.fullmatch(r"/v2/(.+)/(manifests|blobs|tags)/([^/]+)", request.path)
        repository = named[1] if named else None
        authorization = request.headers.get("authorization")
        if not self._realm.admits(authorization, repository):
            challenge = self._realm.challenge(repository, expired=authorization is not None)
            return _error(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": challenge})
        if named and named[2] == "manifests":
            return self._manifest(request)
        if named and named[2] == "blobs" and self._registry.blob(named[3]).exists():
            return Answer(status=307, headers={"Location": self._storage.address(named[3])})
        return self._relay(request)

    def _manifest(self, request: Request) -> Answer:
        if request.method == "GET":
            if self.pulls_left <= 0:
                message = (
                    "You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit"
                )
                return _error(429, "TOOMANYREQUESTS", message, self._limits())
            self.pulls_left -= 1
        answer = self._relay(request)
        return Answer(status=answer.status, headers={**answer.headers, **self._limits()}, body=answer.body)

    def _limits(self) -> dict[str, str]:
        return {
            "ratelimit-limit": f"{self._limit};w={_WINDOW}",
            "ratelimit-remaining": f"{self.pulls_left};w={_WINDOW}",
            "docker-ratelimit-source": "127.0.0.1",
        }

    def _relay(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self._registry.url).netloc, timeout=30)
        try:
            query = f"?{urlencode(request.query)}" if request.query else ""
            accept = {"Accept": request.headers["accept"]} if "accept" in request.headers else {}
            connection.request(request.method, request.path + query, headers=accept)
            response = connection.getresponse()
            body = response.read()
            headers = {name: value for name in _RELAYED if (value := response.getheader(name))}
            if request.method == "HEAD":
                headers["Content-Length"] = response.getheader("Content-Length", "0")
            return Answer(status=response.status, headers=headers, body=body)
        finally:
            connection.close()


def _error(status: int, code: str, message: str, headers: Mapping[str, str]) -> Answer:
    return as_json({"errors": [{"code": code, "message": message, "detail": None}]}, status=status, headers=headers)


def _refusal(status: int, code: str, message: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Answer(status=status, headers={"Content-Type": "application/xml"}, body=body.encode())
