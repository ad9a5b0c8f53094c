"""Hold processes that functions are called in, whatever starts them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from ..errors import check_integer
from ..hashing import digest
from ..models.answer_cache import current_answers
from ..node import Node
from .remote_calls import converse, function_to_bytes

T = TypeVar("T")
R = TypeVar("R")


class WorkerEndedError(Exception):
    """A process ended before it replied."""


class RemoteWorker(Protocol):
    """A process that runs a ``CallServer``."""

    def exchange(self, message: bytes) -> bytes:
        """Send a message and return the reply.

        Raises:
            WorkerEndedError: If the process has ended.
        """
        ...

    def close(self) -> None:
        """End the process, also in the middle of a call."""
        ...


class RemoteWorkers(ABC):
    """Call functions in processes, in as many at once as there are threads that call.

    Processes start when they are needed, and keep what they have loaded until ``close``. A
    subclass says how one starts.

    Args:
        count: How many processes there are at most.
        attempts: How often a call is made whose process ends, each time in another process.
    """

    def __init__(self, count: int, attempts: int = 1) -> None:
        self.count = check_integer(count, "workers", 1)
        self._attempts = attempts
        self._free = threading.BoundedSemaphore(self.count)
        self._lock = threading.Lock()
        self._idle: list[_LoadedWorker] = []
        self._started: set[_LoadedWorker] = set()

    @abstractmethod
    def start(self) -> RemoteWorker:
        """Start a process."""

    def send(self, worker: RemoteWorker, key: str, function: bytes) -> None:
        """Let a process load a function."""
        converse(worker.exchange, ("load", key, function))

    def remote(self, function: Callable[[T], R], what: str, instead: str) -> Callable[[T], R]:
        """Return a function that calls another one in a process.

        Args:
            function: The function; a process loads it once.
            what: What it is, for errors.
            instead: What to do where it can't be sent, for errors.

        Raises:
            TypeError: If it can't be sent to another process.
        """
        try:
            pickled = function_to_bytes(function)
        except Exception as error:  # of the object's own methods, too
            raise TypeError(
                f"{what} can't be sent to another process: {type(error).__name__}: {error}; let "
                "it make what can't be sent (a client, a lock, an open file) when it is first "
                f"called, or {instead}"
            ) from error
        key = digest(pickled.hex())

        def call(argument: T) -> R:
            return cast("R", self._call(key, pickled, argument))

        return call

    def _call(self, key: str, function: bytes, argument: Any) -> Any:
        kin = argument.graph if isinstance(argument, Node) else None
        for attempt in range(1, self._attempts + 1):
            try:
                with self._worker() as worker:
                    if key not in worker.loaded:
                        self.send(worker.worker, key, function)
                        worker.loaded.add(key)
                    message = ("call", key, argument)
                    return converse(worker.worker.exchange, message, kin, current_answers())
            except WorkerEndedError as error:
                if attempt == self._attempts:
                    raise ChildProcessError(str(error)) from error
        raise AssertionError

    @contextmanager
    def _worker(self) -> Iterator[_LoadedWorker]:
        """Hold a process that is idle, or a new one; one that ended is not used again."""
        with self._free:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = _LoadedWorker(self.start())
                with self._lock:
                    self._started.add(worker)
            try:
                yield worker
            except WorkerEndedError:
                with self._lock:
                    self._started.discard(worker)
                worker.worker.close()
                raise
            except BaseException:
                self._give_back(worker)
                raise
            else:
                self._give_back(worker)

    def _give_back(self, worker: _LoadedWorker) -> None:
        with self._lock:
            if worker in self._started:  # else the pool was closed meanwhile
                self._idle.append(worker)

    def close(self) -> None:
        """End the processes, also in the middle of calls; the next call starts new ones."""
        with self._lock:
            workers, self._started = self._started, set()
            self._idle.clear()
        for worker in workers:
            worker.worker.close()

    def __enter__(self) -> RemoteWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _LoadedWorker:
    """Know which functions a process has loaded."""

    def __init__(self, worker: RemoteWorker) -> None:
        self.worker = worker
        self.loaded: set[str] = set()
