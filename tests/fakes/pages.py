"""A web server on loopback that says what a test put on its pages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came in."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


def as_json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Page:
    return Page(status=status, body=json.dumps(value).encode(), headers=headers or {})


class Pages:
    """A server.

    Attributes:
        at: Path → what is there: a page, or what makes one of a request. Elsewhere is 404.
        asked: Every request so far.
    """

    def __init__(self) -> None:
        self.at: dict[str, Page | Callable[[Asked], Page]] = {}
        self.asked: list[Asked] = []
        self.url = ""

    def answer(self, asked: Asked) -> Page:
        self.asked.append(asked)
        there = self.at.get(asked.path, Page(status=404, body=b"{}"))
        return there if isinstance(there, Page) else there(asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    disable_nagle_algorithm = True
    pages: ClassVar[Pages]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        page = self.pages.answer(Asked(path=target.path, query=dict(parse_qsl(target.query)), headers=headers))
        self.send_response(page.status)
        for name, value in {"Content-Length": str(len(page.body)), **page.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(page.body)
        except ConnectionError:
            self.close_connection = True  # a client that has read enough may hang up


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def serving() -> Iterator[Pages]:
    """Pages on 127.0.0.1 until the end."""
    pages = Pages()
    with _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"pages": pages})) as server:
        pages.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield pages
        finally:
            server.shutdown()
            thread.join()
