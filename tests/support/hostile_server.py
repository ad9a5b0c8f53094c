"""A local server that answers requests too late, endlessly or not at all."""

from __future__ import annotations

import contextlib
import itertools
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"Content-Type: application/json\r\n"
EVENTS = OK + b"Content-Type: text/event-stream\r\n\r\n"


def delta(text: str) -> bytes:
    """Return a server-sent event that contains a piece of an answer."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    head = {"id": "1", "created": 0, "model": "m", "object": "chat.completion.chunk"}
    return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()


def _status(status: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _forever(part: bytes, before: bytes = b"") -> Callable[[str], Iterator[bytes]]:
    return lambda url: itertools.chain([before], itertools.repeat(part))


def _once(*parts: bytes) -> Callable[[str], Iterator[bytes]]:
    return lambda url: iter(parts)


def _redirects(url: str) -> Iterator[bytes]:
    yield _status("307 Temporary Redirect", f"Location: {url}/elsewhere")


WAYS: Mapping[str, Callable[[str], Iterator[bytes]]] = {
    "says nothing": _once(),
    "drips headers": _forever(b"X-Header: a\r\n", OK),
    "says nothing after the headers": _once(JSON + b"Content-Length: 20\r\n\r\n"),
    "drips chunks": _forever(b"1\r\n \r\n", JSON + b"Transfer-Encoding: chunked\r\n\r\n"),
    "drips JSON": _forever(b"[", JSON + b'Content-Length: 1000000000\r\n\r\n{"data": '),
    "sends comments": _forever(b": still there\n\n", EVENTS),
    "never ends its answer": _forever(delta("tea "), EVENTS),
    "begins an answer and stops": _once(EVENTS + delta("Tea is ")),
    "wants to be tried again in 50 seconds": _once(
        _status("429 Too Many Requests", "Retry-After: 50")
    ),
    "redirects to another server": _redirects,
    "speaks another language": _once(b"220 mail ESMTP\r\n"),
}
"""Ways in which a server can fail.

Each function takes the URL of another server and returns bytes.
"""


class HostileServer(socketserver.ThreadingTCPServer):
    """A server that fails in one of the ways in ``WAYS``.

    It stops when ``released`` is set or the client disconnects. Redirects lead to the URL
    ``elsewhere``.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, way: str, elsewhere: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way = way
        self.elsewhere = elsewhere
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client has disconnected


class _Handler(socketserver.StreamRequestHandler):
    server: HostileServer

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.rfile.read(length)
        for part in WAYS[self.server.way](self.server.elsewhere):
            if self.server.released.wait(0.002):
                return
            self.wfile.write(part)
        self.server.released.wait()


@contextlib.contextmanager
def hostile(way: str, elsewhere: str = "") -> Iterator[HostileServer]:
    """Run a server in a thread until the end of the ``with`` block."""
    with HostileServer(way, elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
