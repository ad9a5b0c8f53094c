"""Let callers that want the same thing at the same time wait for the one that gets it."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from concurrent.futures import Future
from typing import Generic, TypeVar

from ..locking import is_reading_graph, mutex, release_after_fork

K = TypeVar("K", bound=Hashable)

V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Let the first caller of a key work, and the others wait for its result.

    Threads wait for threads. Tasks wait for threads and for tasks of their own event loop: a
    thread that waited for a task could be the one that the task's loop runs in. A thread that
    reads a graph waits for nobody, as the other one may need that graph.
    """

    def __init__(self) -> None:
        self._lock = mutex()
        self._pending: dict[tuple[object, K], tuple[int, Future[V | None]]] = {}
        release_after_fork(self)

    def after_fork(self) -> None:
        """Forget what threads work on that are not in this process."""
        self._pending.clear()

    def claim(
        self, keys: Iterable[K], loop: object = None
    ) -> tuple[list[K], dict[K, Future[V | None]]]:
        """Return the keys that the caller is to work on, and the results of others to wait for.

        The caller calls ``resolve``, and ``release`` in any case. A result of None says that the
        other caller failed.

        Args:
            keys: The keys.
            loop: The event loop of the caller. None for a thread.
        """
        thread = threading.get_ident()
        waits = loop is not None or not is_reading_graph()
        claimed: list[K] = []
        others: dict[K, Future[V | None]] = {}
        with self._lock:
            for key in dict.fromkeys(keys):
                if waits and (other := self._other(key, loop, thread)) is not None:
                    others[key] = other
                    continue
                claimed.append(key)
                if (loop, key) not in self._pending:
                    future: Future[V | None] = Future()
                    future.set_running_or_notify_cancel()  # who stops waiting cancels no other
                    self._pending[loop, key] = thread, future
        return claimed, others

    def _other(self, key: K, loop: object, thread: int) -> Future[V | None] | None:
        """Return the result of another caller: waiting for oneself would not end."""
        for of in dict.fromkeys((loop, None)):
            owner, future = self._pending.get((of, key), (thread, None))
            if future is not None and (of is not None or owner != thread):
                return future
        return None

    def resolve(self, results: Mapping[K, V | None], loop: object = None) -> None:
        """Pass results to those who wait for them."""
        with self._lock:
            for key, result in results.items():
                future = self._own(key, loop)
                if future is not None and not future.done():
                    future.set_result(result)

    def release(self, keys: Iterable[K], loop: object = None) -> None:
        """Give up keys. Those who still wait for one get None."""
        keys = list(keys)
        self.resolve(dict.fromkeys(keys), loop)
        with self._lock:
            for key in keys:
                if self._own(key, loop) is not None:
                    del self._pending[loop, key]

    def _own(self, key: K, loop: object) -> Future[V | None] | None:
        """Return the future result of a key that the caller has claimed."""
        owner, future = self._pending.get((loop, key), (None, None))
        return future if loop is not None or owner == threading.get_ident() else None
