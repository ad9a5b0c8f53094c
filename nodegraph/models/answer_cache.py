"""Keep a model's answers by its name and the prompt, and ask for each once at a time."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

from ..locking import is_reading_graph
from ..memory_store import as_store
from ..store import NodeStore
from .embedder_adapters import in_thread

_KIND = "answers"


class Answers(Protocol):
    """What knows the answers of models: an ``AnswerCache``, or who asks one elsewhere."""

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        """Return the answer that is stored, or that of a call."""
        ...


class AnswerCache:
    """Keep answers in a store. Who asks what another one is asking waits for its answer.

    Threads wait for threads. Tasks wait for threads and for tasks of their own event loop: a
    thread that waited for a task could be the one that the task's loop runs in.

    Args:
        store: Where the answers are: a store, or the path of a file. None for memory.
    """

    def __init__(self, store: str | Path | NodeStore | None = None) -> None:
        self._store = as_store(store)
        self._closes_store = not isinstance(store, NodeStore)
        self._lock = threading.Lock()
        self._pending: dict[tuple[object, str], tuple[int, Future[Any]]] = {}

    def get(self, key: str) -> Any:
        """Return a stored answer, or None."""
        stored = self._store.get_values(_KIND, [key]).get(key)
        return None if stored is None else json.loads(stored)

    def put(self, key: str, answer: Any) -> None:
        """Store an answer, of any type that JSON has."""
        self._store.put_values(_KIND, {key: json.dumps(answer).encode()})

    def clear(self) -> None:
        """Delete all answers."""
        self._store.delete_values(_KIND)

    def close(self) -> None:
        """Close the file, if there is one of its own. The next use opens it again."""
        if self._closes_store:
            self._store.close()

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        """Return the answer that is stored, or that another thread gets now, or that of a call.

        What a call raises is raised. Those who waited for it call themselves.
        """
        while (other := self._claim(key, None)) is not None:
            if (answer := other.result()) is not None:
                return answer
        answer = None
        try:
            if (answer := self.get(key)) is not None:
                return answer
            answer = call()
            self._resolve(key, None, answer)
            self.put(key, answer)
        finally:
            self._release(key, None, answer)
        return answer

    async def aask(self, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Async version of ``ask``."""
        import asyncio

        loop = asyncio.get_running_loop()
        while (other := self._claim(key, loop)) is not None:
            if (answer := await asyncio.wrap_future(other)) is not None:
                return answer
        answer = None
        try:
            if (answer := await in_thread(self.get, key)) is not None:
                return answer
            answer = await call()
            self._resolve(key, loop, answer)
            await in_thread(self.put, key, answer)
        finally:
            self._release(key, loop, answer)
        return answer

    def _claim(self, key: str, loop: object) -> Future[Any] | None:
        """Return the future answer that another one asks for. None if the caller is to ask."""
        thread = threading.get_ident()
        with self._lock:
            for of in dict.fromkeys((loop, None)):
                owner, future = self._pending.get((of, key), (thread, None))
                # Waiting for oneself, or for who waits for this thread's graph, would not end.
                if future is not None and (of is not None or owner != thread):
                    return None if loop is None and is_reading_graph() else future
            if (loop, key) not in self._pending:
                new: Future[Any] = Future()
                new.set_running_or_notify_cancel()  # who stops waiting cancels no other
                self._pending[loop, key] = thread, new
        return None

    def _resolve(self, key: str, loop: object, answer: Any) -> None:
        """Give an answer, or None, to those who wait."""
        with self._lock:
            owner, future = self._pending.get((loop, key), (None, None))
            own = loop is not None or owner == threading.get_ident()
            if own and future is not None and not future.done():
                future.set_result(answer)

    def _release(self, key: str, loop: object, answer: Any) -> None:
        self._resolve(key, loop, answer)
        with self._lock:
            owner, future = self._pending.get((loop, key), (None, None))
            own = loop is not None or owner == threading.get_ident()
            if own and future is not None and future.done():
                del self._pending[loop, key]


def answer_key(model: str, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
    """Return the key of the answer of a model to a prompt."""
    request = json.dumps([model, prompt, schema], sort_keys=True, default=str)
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


_current: ContextVar[Answers | None] = ContextVar("answers", default=None)


def current_answers() -> Answers | None:
    """Return the cache of the graph whose transform this is. None elsewhere."""
    return _current.get()


@contextmanager
def keep_answers(cache: Answers) -> Iterator[None]:
    """Let transforms that ask models in the block keep their answers in a graph's cache."""
    token = _current.set(cache)
    try:
        yield
    finally:
        _current.reset(token)


def cached_answer(model: str, prompt: str, call: Callable[[], str]) -> str:
    """Return the graph's answer to a prompt, in a transform. Elsewhere that of the call."""
    cache = _current.get()
    if cache is None:
        return call()
    answer: str = cache.ask(answer_key(model, prompt), call)
    return answer
