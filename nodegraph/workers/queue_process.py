"""Run functions in a separate process, one after another."""

from __future__ import annotations

import contextlib
import io
import pickle
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from .process_workers import (
    PlainUnpickler,
    outcome_of,
    pipes,
    result_of,
    send,
    start_python,
)

_PROGRAM = f"from {__name__} import main; main()"

_PIPE_BYTES = 1 << 20  # the largest size that Linux allows to all users


class QueueProcess:
    """A separate process that runs functions in the order in which they are submitted.

    Time and memory are not limited. Several calls can be queued in the process, so that it does not
    have to wait for the next call. Results must be plain data, so that no code from the process is
    executed.
    """

    def __init__(self) -> None:
        self._process = start_python(_PROGRAM, buffer_bytes=0)
        self._requests: Any = self._process.stdin
        replies: Any = self._process.stdout
        self._replies = io.BufferedReader(replies)
        _widen(self._requests)
        _widen(replies)
        self._waiting: deque[Future[Any]] = deque()
        self._lock = threading.Lock()
        threading.Thread(target=self._receive, name="nodekin building", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """True if the process has not ended."""
        return self._process.poll() is None

    @property
    def num_waiting(self) -> int:
        """The number of calls that have not returned a result yet."""
        return len(self._waiting)

    def submit(self, function: Callable[[Any], Any], argument: object) -> Future[Any]:
        """Submit a call of a function, and return a future for its result.

        The future raises ChildProcessError if the process ends before the call is finished, and
        RuntimeError if the function raises an error.

        Raises:
            OSError: If the process has ended.
            pickle.PicklingError: If the function or the argument cannot be pickled.
        """
        try:
            request = pickle.dumps((function, argument))
        except Exception as error:
            raise pickle.PicklingError(f"{type(error).__name__}: {error}") from error
        future: Future[Any] = Future()
        with self._lock:
            try:
                self._waiting.append(future)
                self._write(request)
            except ValueError as error:  # The pipe was closed by ``close``.
                raise BrokenPipeError("the process has ended") from error
            except BaseException:
                # The process may have received a part of the request. It would read the next
                # request as the rest of this one.
                self._process.kill()
                raise
        return future

    def _write(self, request: bytes) -> None:
        rest = memoryview(request)
        while rest:
            written = self._requests.write(rest)  # After a signal, only a part may be written.
            rest = rest[written:]

    def close(self) -> None:
        """Stop the process, and wait until it has ended."""
        self._process.kill()
        # This waits until the receiving thread has read to the end of the pipe.
        self._replies.close()
        with self._lock:
            self._requests.close()
        self._process.wait()

    def leave_to_parent(self) -> None:
        """Close the pipes in a forked child, since the process belongs to the parent process.

        The thread that reads replies exists only in the parent process, and it usually held the
        lock of the reader during the fork. The child can therefore not close the reader, but it can
        detach the pipe from the reader without the lock.
        """
        with contextlib.suppress(ValueError):  # The reader was closed before.
            self._replies.detach().close()
        self._requests.close()
        # Only the parent process can ask for the real exit status.
        self._process.returncode = 0

    def _receive(self) -> None:
        try:
            while True:
                self._receive_one()
        except Exception:  # The pipe has ended, or the reply is not plain data.
            self.close()
            with self._lock:  # Later calls will find the closed pipe.
                waiting = [*self._waiting]
                self._waiting.clear()
            for future in waiting:
                future.set_exception(ChildProcessError("the process has ended"))

    def _receive_one(self) -> None:
        """Wait for a reply, and set the result of its future.

        No reference to the result is kept while the thread waits for the next reply.
        """
        kind, value = PlainUnpickler(self._replies).load()
        future = self._waiting.popleft()
        try:
            future.set_result(result_of(kind, value))
        except RuntimeError as error:
            future.set_exception(error)


def _widen(pipe: Any) -> None:
    """Increase the size of a pipe on Linux, so that most messages fit into it without waiting."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def main() -> None:
    """Process calls until the pipe is closed."""
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
