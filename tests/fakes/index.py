"""A simple index and its wheels, on a real socket, with everything that can go wrong with one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, TypeAlias

from packaging.utils import canonicalize_name

JSON = "application/vnd.pypi.simple.v1+json"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Answer with this status instead."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Announce the right length, send so many bytes of the body, then hang up."""

    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Send the client elsewhere, with a body of this size that nobody needs."""

    to: str
    body: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer 206 or 200 with exactly this."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Trouble: TypeAlias = Refuse | Cut | Redirect | Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A file as the index lists it."""

    content: bytes
    uploaded: str | None = None
    yanked: bool = False
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it came in, and the port of the connection it came on."""

    client: int
    path: str
    headers: Mapping[str, str]


class Index:
    """An index of one machine: projects under ``/simple/``, files under ``/files/``.

    Attributes:
        ranges: Whether parts of files are given.
        suffixes: Whether ``bytes=-N`` is understood.
        html: Speak HTML only.
        hashes: Whether files are listed with their SHA-256.
        sizes: Whether files are listed with their size and upload time.
        login: ``user:password`` to ask for.
        trouble: What to do with the next requests, one for each, before behaving again.
        seen: Every request so far.
        sent: Bytes of bodies written.
    """

    def __init__(self) -> None:
        self.ranges = True
        self.suffixes = True
        self.html = False
        self.hashes = True
        self.sizes = True
        self.login: str | None = None
        self.trouble: deque[Trouble] = deque()
        self.seen: list[Seen] = []
        self.sent = 0
        self.files: dict[str, Listed] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple"

    def file_url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/files/{name}"

    def add(
        self,
        name: str,
        content: bytes,
        *,
        uploaded: str | None = None,
        yanked: bool = False,
        size: int | None = None,
    ) -> str:
        """List a file; returns its address."""
        self.files[name] = Listed(content=content, uploaded=uploaded, yanked=yanked, size=size)
        return self.file_url(name)

    def asked_ranges(self) -> list[str]:
        return [seen.headers["range"] for seen in self.seen if "range" in seen.headers]

    def page(self, project: str, accept: str) -> tuple[str, bytes] | None:
        files = {name: file for name, file in self.files.items() if canonicalize_name(name.split("-")[0]) == project}
        if not files:
            return None
        if self.html or JSON not in accept:
            return "text/html; charset=utf-8", self._html(files)
        listed = [self._described(name, file) for name, file in files.items()]
        return JSON, json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": listed}).encode()

    def _described(self, name: str, file: Listed) -> dict[str, object]:
        described: dict[str, object] = {"filename": name, "url": f"../../files/{name}", "hashes": {}}
        if self.hashes:
            described["hashes"] = {"sha256": hashlib.sha256(file.content).hexdigest()}
        if self.sizes:
            described["size"] = len(file.content) if file.size is None else file.size
            if file.uploaded:
                described["upload-time"] = file.uploaded
        return described | {"yanked": file.yanked}

    def _html(self, files: Mapping[str, Listed]) -> bytes:
        links = []
        for name, file in files.items():
            fragment = f"#sha256={hashlib.sha256(file.content).hexdigest()}" if self.hashes else ""
            yanked = ' data-yanked=""' if file.yanked else ""
            links.append(f'<a href="../../files/{name}{fragment}"{yanked}>{name}</a>')
        return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    index: ClassVar[Index]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has in the standard library
        pass

    def do_GET(self) -> None:
        index = self.index
        index.seen.append(
            Seen(client=self.client_address[1], path=self.path, headers={k.lower(): v for k, v in self.headers.items()})
        )
        trouble = index.trouble.popleft() if index.trouble else None
        match trouble:
            case Refuse(status=status, headers=headers):
                self._answer(status, b"no", headers)
            case Redirect(to=to, body=size):
                self._answer(302, b" " * size, {"Location": to})
            case Reply(status=status, body=body, headers=headers):
                self._answer(status, body, headers)
            case Cut(after=after):
                self._behave(cut_after=after)
            case None:
                self._behave()

    def _behave(self, cut_after: int | None = None) -> None:
        index = self.index
        if index.login is not None:
            expected = "Basic " + base64.b64encode(index.login.encode()).decode()
            if self.headers.get("Authorization") != expected:
                self._answer(401, b"who are you?", {"WWW-Authenticate": "Basic"})
                return
        _, kind, name = (self.path.rstrip("/") + "//").split("/")[:3]
        if kind == "simple" and (page := index.page(name, self.headers.get("Accept", ""))):
            self._answer(200, page[1], {"Content-Type": page[0]}, cut_after)
        elif kind == "files" and name in index.files:
            self._file(index.files[name].content, cut_after)
        else:
            self._answer(404, b"no such thing")

    def _file(self, content: bytes, cut_after: int | None) -> None:
        asked = _RANGE.match(self.headers.get("Range", "")) if self.index.ranges else None
        if asked is None or (not asked[1] and not self.index.suffixes):
            self._answer(200, content, {}, cut_after)
            return
        size = len(content)
        first = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
        last = min(size, int(asked[2]) + 1 if asked[1] and asked[2] else size) - 1
        if first > last:
            self._answer(416, b"", {"Content-Range": f"bytes */{size}"})
        else:
            self._answer(206, content[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{size}"}, cut_after)

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, cut_after: int | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in {
            "Date": self.date_time_string(),
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        part = body if cut_after is None else body[:cut_after]
        for start in range(0, len(part), 1 << 16):
            try:
                self.wfile.write(part[start : start + (1 << 16)])
            except OSError:
                # The client has seen enough.
                self.close_connection = True
                return
            self.index.sent += len(part[start : start + (1 << 16)])
        if cut_after is not None:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        # A client that hangs up early is part of the tests.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def serving() -> Iterator[Index]:
    """An index that answers on 127.0.0.1 until the end."""
    index = Index()
    handler = type("Handler", (_Handler,), {"index": index})
    with _Server(("127.0.0.1", 0), handler) as server:
        index.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
