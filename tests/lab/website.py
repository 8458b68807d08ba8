"""A small web server on loopback: threads of the standard library around one function from request to answer."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked: ``path`` as it was sent, header names in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """The bytes of a file from ``start`` up to ``stop``."""

    path: Path
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client is told.

    Attributes:
        status: The status code.
        headers: Beyond ``Content-Length``, which follows from the body unless it is given.
        body: Left out where the client asked with HEAD.
        cut_after: Bytes of the body after which the connection breaks.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | FilePart = b""
    cut_after: int | None = None


def as_json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """The value as a JSON answer."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Answer(status=status, headers={"Content-Type": "application/json", **(headers or {})}, body=body)


def ranged(
    request: Request, size: int, part: Callable[[int, int], bytes | FilePart], headers: Mapping[str, str]
) -> Answer:
    """A file, or the one range of it the client asked for; several ranges at once get the whole (RFC 9110, 14.2)."""
    headers = {"Accept-Ranges": "bytes", **headers}
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    unchanged = request.headers.get("if-range", headers.get("ETag")) == headers.get("ETag")
    if not asked or asked[0] == "bytes=-" or not unchanged:
        return Answer(headers=headers, body=part(0, size))
    if not asked[1]:
        start, stop = max(0, size - int(asked[2])), size
    else:
        start, stop = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
    if start >= stop:
        return Answer(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    span = {"Content-Range": f"bytes {start}-{stop - 1}/{size}"}
    return Answer(status=206, headers={**headers, **span}, body=part(start, stop))


class Website:
    """A server on a free port of 127.0.0.1, running from its making until ``close``.

    Attributes:
        url: Where it is, without a slash at the end.
        requests: The newest thousands of requests, oldest first.
    """

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self._answer = answer
        self._interruptions: list[Answer] = []
        self._lock = Lock()
        self.requests: deque[Request] = deque(maxlen=10_000)
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def interrupt(self, answer: Answer, *, times: int = 1) -> None:
        """Give this answer to the next requests, whatever they are."""
        with self._lock:
            self._interruptions += [answer] * times

    def respond(self, request: Request) -> Answer:
        """Note the request and answer it."""
        with self._lock:
            self.requests.append(request)
            if self._interruptions:
                return self._interruptions.pop(0)
        return self._answer(request)

    def close(self) -> None:
        """Stop listening and end the connections there are."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that left early, as readers of images do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    daemon_threads = True

    def __init__(self, site: Website) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.site = site
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in tuple(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was quicker


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "lab"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = 60
    server: _Server

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=target.path,
            query=dict(parse_qsl(target.query, keep_blank_values=True)),
            headers={name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers},
            body=self.rfile.read(int(self.headers.get("Content-Length", "0"))),
        )
        try:
            self._send(self.server.site.respond(request))
        except ConnectionError:
            self.close_connection = True  # a client that has read enough hangs up, and may

    do_HEAD = do_POST = do_PATCH = do_GET  # noqa: N815 - the library's names

    def _send(self, answer: Answer) -> None:
        body = answer.body
        size = len(body) if isinstance(body, bytes) else body.stop - body.start
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(size), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if answer.cut_after is not None and answer.cut_after < size:
            size, self.close_connection = answer.cut_after, True
        if isinstance(body, bytes):
            self.wfile.write(body[:size])
        elif size:
            with body.path.open("rb") as file:
                self.connection.sendfile(file, body.start, size)

    def log_message(self, *_: object) -> None:
        """Keep quiet: ``Website.requests`` remembers."""
