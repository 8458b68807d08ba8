"""One repository of a registry, over the OCI distribution API.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md. What Docker Hub, ghcr.io, quay.io,
public.ecr.aws and nvcr.io do differently is all in the challenges they send, which are answered as they come.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from bisector.artifacts.image.authority import Authority
from bisector.artifacts.image.blob import BlobStream
from bisector.artifacts.image.credentials import Anonymous, Credentials
from bisector.artifacts.image.manifest import LONGEST_MANIFEST, MANIFEST_TYPES
from bisector.artifacts.image.reference import ImageReference, is_digest, registry_base
from bisector.errors import Unavailable, UnknownBuild, Unreadable
from bisector.http import Http, Reply
from bisector.model import Digest, RateLimit

_OK: Final = 200
_NOT_THERE: Final = frozenset({404, 410})
_LONGEST_TAGS_PAGE: Final = 16 << 20
_MOST_PAGES: Final = 1000
_ACCEPT: Final = {"Accept": ", ".join(MANIFEST_TYPES)}
_NEXT: Final = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?', re.IGNORECASE)
_LIMIT: Final = re.compile(r"(\d{1,12})(?:;w=(\d{1,9}))?\Z")


class _Tags(msgspec.Struct, frozen=True):
    tags: list[str] | None = None


class RegistryClient:
    """Reads one repository. The ``BlobSource`` of images in it.

    Args:
        http: The network.
        host: The registry as people write it: ``docker.io``, ``127.0.0.1:5000``.
        repository: The repository: ``vllm/vllm-openai``.
        base: The address of its API where it is not the usual one: a mirror.
        credentials: Who we are.
    """

    def __init__(
        self,
        http: Http,
        host: str,
        repository: str,
        *,
        base: str | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._http = http
        self._name = f"{host}/{repository}"
        self._url = f"{(base or registry_base(host)).rstrip('/')}/v2/{repository}"
        self._authority = Authority(http, host, repository, credentials or Anonymous())
        self._manifests: dict[Digest, bytes] = {}
        self.rate_limit: RateLimit | None = None

    async def resolve(self, reference: ImageReference) -> Digest:
        """The digest a reference stands for; a tag is looked up by HEAD, which no registry counts as a pull.

        Raises:
            UnknownBuild: There is no such tag.
            Unavailable: The registry does not answer, or not us.
        """
        if reference.digest is not None:
            return reference.digest
        url = f"{self._url}/manifests/{reference.tag}"
        reply = await self._ask(url, head=True)
        digest = reply.headers.get("docker-content-digest", "")
        if reply.status == _OK and is_digest(digest):
            return Digest(digest)
        # Either that may be left out in an answer to HEAD, or HEAD is not understood.
        reply = await self._ask(url)
        self._expect_ok(reply, str(reference.tag))
        found = Digest(f"sha256:{hashlib.sha256(reply.body).hexdigest()}")
        self._manifests[found] = reply.body
        return found

    async def manifest(self, digest: Digest) -> bytes:
        """A manifest or an index, checked against its digest; asked for once."""
        if digest not in self._manifests:
            reply = await self._ask(f"{self._url}/manifests/{digest}")
            self._expect_ok(reply, digest)
            if f"sha256:{hashlib.sha256(reply.body).hexdigest()}" != digest:
                raise Unreadable(f"{self._name} sent another manifest than {digest} (wrong digest)")
            self._manifests[digest] = reply.body
        return self._manifests[digest]

    @asynccontextmanager
    async def blob(self, digest: Digest, size: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """A layer or a configuration, piece by piece; checked once it was read to its end."""
        stream = BlobStream(self._http, self._authority, f"{self._url}/blobs/{digest}", digest=digest, size=size)
        async with aclosing(stream.pieces()) as pieces:
            yield pieces

    async def tags(self) -> list[str]:
        """Every tag, in the registry's order, which means nothing.

        Raises:
            UnknownBuild: There is no such repository.
            Unavailable: The registry does not answer, or its list has no end.
        """
        found: dict[str, None] = {}
        url = f"{self._url}/tags/list?n=1000"
        for _ in range(_MOST_PAGES):
            reply = await self._ask(url, limit=_LONGEST_TAGS_PAGE)
            self._expect_ok(reply, "list of tags")
            try:
                page = msgspec.json.decode(reply.body, type=_Tags)
            except (msgspec.DecodeError, UnicodeDecodeError) as exc:
                raise Unreadable(f"{self._name} sent a list of tags that cannot be understood") from exc
            found.update(dict.fromkeys(page.tags or ()))
            following = _NEXT.search(reply.headers.get("link", ""))
            if following is None:
                return list(found)
            url = self._within(urljoin(url, following[1]))
        raise Unavailable(f"{self._name} has a list of tags without an end")

    def _within(self, url: str) -> str:
        """The next page, when it belongs to the same server: what follows is sent our token."""
        if urlsplit(url)[:2] != urlsplit(self._url)[:2]:
            raise Unreadable(f"{self._name} continues its list of tags on another server")
        return url

    async def _ask(self, url: str, *, head: bool = False, limit: int = LONGEST_MANIFEST) -> Reply:
        """An answer, after getting a token for it if need be."""
        reply = await self._once(url, head=head, limit=limit)
        if reply.status == 401:  # noqa: PLR2004 - as everybody calls it
            await self._authority.renew(reply.headers.get("www-authenticate", ""))
            reply = await self._once(url, head=head, limit=limit)
        return reply

    async def _once(self, url: str, *, head: bool, limit: int) -> Reply:
        headers = {**_ACCEPT, **self._authority.headers}
        if head:
            reply = await self._http.head(url, headers=headers)
        else:
            reply = await self._http.get(url, headers=headers, limit=limit)
        self.rate_limit = _rate_limit(reply.headers) or self.rate_limit
        return reply

    def _expect_ok(self, reply: Reply, what: str) -> None:
        if reply.status in _NOT_THERE:
            raise UnknownBuild(f"{self._name} has no {what}")
        if reply.status != _OK:
            raise Unavailable(
                f"{self._name} answered {reply.status} for its {what}",
                hint="Check the name; if it is private, run `docker login` for its registry.",
            )


def _rate_limit(headers: Mapping[str, str]) -> RateLimit | None:
    """``ratelimit-limit: 100;w=21600`` and ``ratelimit-remaining: 76;w=21600``; no headers, no limit."""
    limit = _LIMIT.match(headers.get("ratelimit-limit", ""))
    remaining = _LIMIT.match(headers.get("ratelimit-remaining", ""))
    if limit is None or remaining is None:
        return None
    window = limit[2] or remaining[2]
    return RateLimit(limit=int(limit[1]), remaining=int(remaining[1]), window=int(window) if window else None)
