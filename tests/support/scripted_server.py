"""A local HTTP server for the OpenAI protocol, with scripted answers and failures."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedServer(ThreadingHTTPServer):
    """An HTTP server that responds to each request with the JSON that ``answer`` returns.

    Attributes:
        asked: The requests that were received, including ``paths`` and ``headers``.
        statuses: The HTTP statuses of the next responses. 0 means that the connection is dropped.
        error: The error message that is sent with these statuses.
        raw: Bytes that are sent instead of an answer.
        silent: Whether the server does not respond to any requests.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[Any] = []
        self.statuses: list[int] = []
        self.error = "not now"
        self.raw: bytes | None = None
        self.silent = False
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, body: dict[str, Any]) -> Any:
        """Return the answer to a request.

        If it is an iterator, it is sent as a stream of events.
        """
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.asked.append(body)
        server.paths.append(self.path)
        server.headers.append(self.headers)
        if server.silent:
            server.ended.wait()
            self.close_connection = True
            return
        status = server.statuses.pop(0) if server.statuses else 200
        if status == 0:
            self.close_connection = True
            return
        if status != 200:
            self._reply(status, {"error": {"message": server.error}})
            return
        answer = server.answer(body)
        if isinstance(answer, Iterator):
            self._stream(answer)
        else:
            self._reply(status, answer if server.raw is None else server.raw)

    def _reply(self, status: int, answer: Any) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        with contextlib.suppress(ConnectionError):  # the client has disconnected
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(data)

    def _stream(self, events: Iterator[Any]) -> None:
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in events:
                said = event if isinstance(event, str) else json.dumps(event)
                self.wfile.write(f"data: {said}\n\n".encode())
                self.wfile.flush()

    def log_message(self, *args: object) -> None:
        """Do not log anything."""


class ChatServer(ScriptedServer):
    """A server with the endpoint ``/v1/chat/completions``.

    Attributes:
        text: The answer, or a function that takes the prompt and returns the answer.
        message: Additional fields of the message.
        finish: The finish reason of the answer.
        pieces: The number of pieces to send when streaming. If None, all pieces are sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.text: str | Callable[[str], str] = "Tea is a drink."
        self.message: dict[str, Any] = {}
        self.finish = "stop"
        self.pieces: int | None = None

    @property
    def prompts(self) -> list[str]:
        """The last user message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]

    def answer(self, body: dict[str, Any]) -> Any:
        """Return the answer, as a stream if the request asks for one."""
        text = self.text
        if callable(text):
            text = text(body["messages"][-1]["content"])
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        head = {"id": "1", "created": 0, "model": body["model"]}
        if body.get("stream"):
            return self._events({**head, "object": "chat.completion.chunk"}, text, usage)
        message = {"role": "assistant", "content": text, **self.message}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def _events(self, head: dict[str, Any], text: str, usage: dict[str, int]) -> Iterator[Any]:
        first, *rest = text.split(" ")
        deltas = [{"content": word} for word in (first, *(f" {word}" for word in rest))]
        events = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            for delta in deltas
        ]
        end = {"index": 0, "delta": {}, "finish_reason": self.finish}
        events += [{**head, "choices": [end]}, {**head, "choices": [], "usage": usage}]
        yield from events[: self.pieces]
        if self.pieces is None:
            yield "[DONE]"


def broken(server: ChatServer) -> None:
    """Make the server respond with an internal error."""
    server.statuses = [500] * 50


def drop(server: ChatServer) -> None:
    server.statuses = [0] * 50


def too_many(server: ChatServer) -> None:
    server.statuses = [429] * 50


def half_json(server: ChatServer) -> None:
    server.raw = b'{"choices": [{"mess'


def no_message(server: ChatServer) -> None:
    server.raw = b'{"choices": []}'


def cut_off(server: ChatServer) -> None:
    server.finish = "length"


def empty(server: ChatServer) -> None:
    server.text = ""


BREAKDOWNS = (drop, too_many, broken, half_json, no_message, cut_off, empty)
"""Functions that make a server fail in different ways."""


@contextlib.contextmanager
def serving(server: ScriptedServer) -> Iterator[Any]:
    """Run a server in a thread until the end of the ``with`` block."""
    with server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
