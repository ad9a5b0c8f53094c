"""A local process that calls functions one after the other."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from .process_workers import (
    PlainUnpickler,
    end_process,
    outcome_of,
    pipes,
    result_of,
    send,
    start_python,
)

_PROGRAM = f"from {__name__} import main; main()"


class QueueProcess:
    """A process for nodekin's functions, without limits. It runs calls in the order of arrival.

    Several calls can wait in the process, so that it need not wait for this process. Results are
    plain data, so no code from the process is executed.
    """

    def __init__(self) -> None:
        self._process = start_python(_PROGRAM)
        self._waiting: deque[Future[Any]] = deque()
        self._lock = threading.Lock()
        threading.Thread(target=self._receive, name="nodekin building", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def num_waiting(self) -> int:
        """The number of calls that have no result yet."""
        return len(self._waiting)

    def submit(self, function: Callable[[Any], Any], argument: object) -> Future[Any]:
        """Call a function after the earlier calls.

        The returned result raises ChildProcessError if the process ends first, and RuntimeError if
        the function raises an error.

        Raises:
            OSError: If the process has ended.
        """
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append(future)
            try:
                send(self._process.stdin, (function, argument))
            except ValueError as error:  # the pipe was closed by ``close``
                raise BrokenPipeError("the process has ended") from error
        return future

    def close(self) -> None:
        """End the process."""
        end_process(self._process)

    def _receive(self) -> None:
        replies: Any = self._process.stdout
        try:
            while True:
                kind, value = PlainUnpickler(replies).load()
                future = self._waiting.popleft()
                try:
                    future.set_result(result_of(kind, value))
                except RuntimeError as error:
                    future.set_exception(error)
        except Exception:  # the end of the pipe, or a reply that is not plain data
            self.close()
            with self._lock:  # later calls find the closed pipe
                waiting = [*self._waiting]
                self._waiting.clear()
            for future in waiting:
                future.set_exception(ChildProcessError("the process has ended"))


def main() -> None:
    """Serve calls until the pipe is closed."""
    requests, replies = pipes()
    waiting: SimpleQueue[tuple[Any, Any] | None] = SimpleQueue()

    def receive() -> None:
        try:
            while True:
                waiting.put(pickle.load(requests))
        finally:
            waiting.put(None)

    threading.Thread(target=receive, daemon=True).start()
    while (call := waiting.get()) is not None:
        function, argument = call
        send(replies, outcome_of(function, argument))
