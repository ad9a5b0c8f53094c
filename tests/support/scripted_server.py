"""An HTTP server on loopback that speaks OpenAI's protocol as a test scripts it, also badly."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedServer(ThreadingHTTPServer):
    """Answer every request with JSON that ``answer`` makes, unless the script says otherwise.

    Attributes:
        asked: The requests so far, and ``paths`` and ``headers`` of each.
        statuses: What the next answers are, before they are good; 0 drops the connection.
        error: What an answer that is not good says.
        raw: Bytes in place of the answer.
        silent: Whether it takes requests and answers none while it serves.
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
        """The address clients are given."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, body: dict[str, Any]) -> Any:
        """Return the answer to a request; an iterator is sent as a stream of events."""
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
        with contextlib.suppress(ConnectionError):  # who asked has gone
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
        """Stay silent."""


class ChatServer(ScriptedServer):
    """Answer /v1/chat/completions.

    Attributes:
        text: What the model says, or a function from the prompt to that.
        message: Fields of the message, in place of the text.
        finish: Why the answer ends.
        pieces: How many pieces of a stream are sent; None for all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.text: str | Callable[[str], str] = "Tea is a drink."
        self.message: dict[str, Any] = {}
        self.finish = "stop"
        self.pieces: int | None = None

    @property
    def prompts(self) -> list[str]:
        """What the user said last in each request."""
        return [body["messages"][-1]["content"] for body in self.asked]

    def answer(self, body: dict[str, Any]) -> Any:
        """Return what the model says, as a stream where that is asked for."""
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


def drop(server: ChatServer) -> None:
    """Close the connection instead of answering."""
    server.statuses = [0] * 50


def too_many(server: ChatServer) -> None:
    """Say that there are too many requests."""
    server.statuses = [429] * 50


def broken(server: ChatServer) -> None:
    """Say that something is broken."""
    server.statuses = [500] * 50


def half_json(server: ChatServer) -> None:
    """Send the beginning of an answer."""
    server.raw = b'{"choices": [{"mess'


def no_message(server: ChatServer) -> None:
    """Send an answer without a message."""
    server.raw = b'{"choices": []}'


def cut_off(server: ChatServer) -> None:
    """Send an answer that was too long."""
    server.finish = "length"


def empty(server: ChatServer) -> None:
    """Send an empty answer."""
    server.text = ""


BREAKDOWNS = (drop, too_many, broken, half_json, no_message, cut_off, empty)
"""Ways in which no answer can be had."""


@contextlib.contextmanager
def serving(server: ScriptedServer) -> Iterator[Any]:
    """Run a server in a thread until the block ends."""
    with server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
