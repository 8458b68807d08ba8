"""A registry on a real socket that behaves, or misbehaves as told."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.fakes.images import Image, digest

SECRET = "s3cr3t-t0k3n"  # noqa: S105 - what must be found in no message
_RANGE = re.compile(r"bytes=(\d+)-\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back.

    Attributes:
        status: The status.
        headers: Beside Content-Length, which is sent unless given here as empty.
        body: The body.
        cut: Hang up after so many bytes of the body.
        endless: Go on sending behind the body, for ever.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    endless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]


class Registry:
    """One repository, ``vllm/vllm-openai``.

    Attributes:
        tags: Tag → digest.
        blobs: Manifests and blobs by digest.
        tokens: How many requests a token is good for; ``None`` when none is needed.
        login: ``user:password`` that the token server wants, base64 as in the header.
        cut_every: Hang up after so many bytes of each blob's answer.
        ranges: Whether parts of blobs are given.
        redirect: Where blobs are: the address of another registry.
        trouble: What to answer to the next requests, one for each; ``None`` answers as usual.
        change: Changes any answer.
        seen: Every request.
    """

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}
        self.blobs: dict[str, bytes] = {}
        self.tokens: int | None = None
        self.login: str | None = None
        self.cut_every: int | None = None
        self.ranges = True
        self.redirect: str | None = None
        self.trouble: deque[Answer | None] = deque()
        self.change: Callable[[Request, Answer], Answer] = lambda _, answer: answer
        self.seen: list[Request] = []
        self.port = 0
        self._left: dict[str, int] = {}
        self._issued = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def push(self, made: Image, *tags: str) -> None:
        self.blobs.update(made.blobs)
        self.tags.update(dict.fromkeys(tags, made.digest))

    def asked(self, part: str) -> list[Request]:
        return [request for request in self.seen if part in request.path]

    def answer(self, request: Request) -> Answer:
        if self.trouble and (special := self.trouble.popleft()) is not None:
            return special
        path = request.path.partition("?")[0]
        if path == "/token":
            return self._token(request)
        if self.tokens is not None and not self._allowed(request.headers.get("authorization", "")):
            realm = f'Bearer realm="http://{self.host}/token",service="lab",scope="repository:vllm/vllm-openai:pull"'
            return Answer(status=401, headers={"WWW-Authenticate": realm}, body=b"{}")
        if "/tags/list" in path:
            return self._tags(request)
        name = path.rpartition("/")[2]
        content = self.blobs.get(self.tags.get(name, name))
        if content is None:
            return Answer(status=404, body=b"{}")
        if "/manifests/" in path:
            kind = json.loads(content).get("mediaType", "application/json")
            headers = {"Content-Type": kind, "Docker-Content-Digest": digest(content)}
            limits = {"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "76;w=21600"}
            return Answer(headers=headers | limits, body=content)
        if self.redirect is not None:
            return Answer(status=307, headers={"Location": f"{self.redirect}{path}?signature={SECRET}"})
        return self._part(request, content)

    def _part(self, request: Request, content: bytes) -> Answer:
        asked = _RANGE.match(request.headers.get("range", ""))
        if asked and self.ranges:
            first = int(asked[1])
            span = {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
            return Answer(status=206, headers=span, body=content[first:], cut=self.cut_every)
        return Answer(body=content, cut=self.cut_every)

    def _tags(self, request: Request) -> Answer:
        last = re.search(r"last=([^&]*)", request.path)
        after = sorted(tag for tag in self.tags if last is None or tag > last[1])
        headers = {}
        if len(after) > 2:
            headers["Link"] = f'</v2/vllm/vllm-openai/tags/list?n=2&last={after[1]}>; rel="next"'
        return Answer(headers=headers, body=json.dumps({"name": "vllm/vllm-openai", "tags": after[:2]}).encode())

    def _token(self, request: Request) -> Answer:
        if self.login is not None and request.headers.get("authorization") != f"Basic {self.login}":
            return Answer(status=401, body=b"{}")
        self._issued += 1
        token = f"{SECRET}-{self._issued}"
        self._left[f"Bearer {token}"] = self.tokens or 0
        return Answer(body=json.dumps({"token": token, "expires_in": 60}).encode())

    def _allowed(self, header: str) -> bool:
        self._left[header] = self._left.get(header, 0) - 1
        return self._left[header] >= 0


@asynccontextmanager
async def serving(registry: Registry) -> AsyncIterator[Registry]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) is not None:
                registry.seen.append(request)
                answer = registry.change(request, registry.answer(request))
                if not await _send(writer, answer, head=request.method == "HEAD"):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    registry.port = server.sockets[0].getsockname()[1]
    try:
        yield registry
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method=method, path=path, headers=headers)


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, head: bool) -> bool:
    """Send it; whether the connection may be used again."""
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in headers.items() if value)]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if head:
        return True
    writer.write(answer.body if answer.cut is None else answer.body[: answer.cut])
    await writer.drain()
    while answer.endless:
        writer.write(bytes(1 << 16))
        await writer.drain()
    return bool(headers["Content-Length"]) and (answer.cut is None or answer.cut >= len(answer.body))
