"""Hold processes that functions are called in, whatever starts them."""

from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
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


class WorkerTimeoutError(WorkerEndedError):
    """A process was ended because a call took too long."""


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
        loads: Reads what a process sends.
    """

    def __init__(
        self, count: int, attempts: int = 1, loads: Callable[[bytes], Any] = pickle.loads
    ) -> None:
        self.count = check_integer(count, "workers", 1)
        self._attempts = attempts
        self._loads = loads
        self._free = threading.BoundedSemaphore(self.count)
        self._lock = threading.Lock()
        self._idle: list[RemoteWorker] = []
        self._loaded: dict[RemoteWorker, set[str]] = {}  # functions of all processes, by their keys

    @abstractmethod
    def start(self) -> RemoteWorker:
        """Start a process."""

    def send(self, worker: RemoteWorker, key: str, function: bytes) -> None:
        """Let a process load a function."""
        converse(worker.exchange, ("load", key, function), loads=self._loads)

    def remote(
        self, function: Callable[[T], R], what: str, instead: str, caller: object = None
    ) -> Callable[[T], R]:
        """Return a function that calls another one in a process.

        Args:
            function: The function. A process loads it once.
            what: What it is, for errors.
            instead: What to do where it can't be sent, for errors.
            caller: Has the methods that the function calls by ``ask_caller``. If the argument is
                a node, it is the node's graph.

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
            graph = argument.graph if isinstance(argument, Node) else caller
            return cast("R", self._call(key, pickled, argument, graph))

        return call

    def _call(self, key: str, function: bytes, argument: object, caller: Any) -> Any:
        for attempt in range(1, self._attempts + 1):
            with self._free:
                worker, loaded = self._acquire()
                try:
                    if key not in loaded:
                        self.send(worker, key, function)
                        loaded.add(key)
                    message = ("call", key, argument)
                    answers = current_answers()
                    return converse(worker.exchange, message, caller, answers, self._loads)
                except WorkerEndedError as error:
                    with self._lock:
                        was_closed = self._loaded.pop(worker, None) is None
                    worker.close()
                    if isinstance(error, WorkerTimeoutError):
                        raise TimeoutError(str(error)) from error
                    if was_closed or attempt == self._attempts:
                        raise ChildProcessError(str(error)) from error
                finally:
                    with self._lock:
                        if worker in self._loaded:
                            self._idle.append(worker)
        raise AssertionError

    def _acquire(self) -> tuple[RemoteWorker, set[str]]:
        """Return a process that is idle, or a new one, with the keys of what it has loaded."""
        with self._lock:
            if self._idle:
                worker = self._idle.pop()
                return worker, self._loaded[worker]
        worker = self.start()
        with self._lock:
            return worker, self._loaded.setdefault(worker, set())

    def close(self) -> None:
        """End the processes, also in the middle of calls. The next call starts new ones."""
        with self._lock:
            workers = list(self._loaded)
            self._loaded.clear()
            self._idle.clear()
        for worker in workers:
            worker.close()

    def __enter__(self) -> RemoteWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
