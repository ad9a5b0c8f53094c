"""Call functions in processes of this machine."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Protocol, TypeVar, cast

from ..concurrency import Workers
from ..errors import check_integer
from ..hashing import digest
from ..locking import release_after_fork
from ..models.answer_cache import current_answers
from ..node import Node
from .remote_calls import CallServer, converse, function_to_bytes, plain_loads

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

    def close(self) -> None:
        """End the process, also in the middle of a call."""


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
        self._set_up()
        release_after_fork(self)

    def _set_up(self) -> None:
        self._free = threading.BoundedSemaphore(self.count)
        self._lock = threading.Lock()
        self._idle: list[RemoteWorker] = []
        self._loaded: dict[RemoteWorker, set[str]] = {}  # functions of all processes, by their keys

    def after_fork(self) -> None:
        """Leave the processes to the one that started them."""
        self._set_up()

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


# Python puts the working directory before all else; what a program may import is in PYTHONPATH.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    f"from {__name__} import main; main()"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_END_SECONDS = 10  # that a process has to end by itself

_START_SECONDS = 300  # that a process with limits has to start, and to load its function

_START_CPU_SECONDS = 30  # of processor time, for the same

_WAITING = 12  # times the processor time that a call may take on a busy machine


@dataclass(frozen=True, slots=True)
class Limits:
    """Limit each call, of functions that may crash, hang or grow, or read what may be hostile.

    A process that takes too long or ends is replaced, and the call is made once more where it
    did not take too long. What comes back is plain data, and what is printed is dropped.

    Attributes:
        seconds: How much processor time a call may take (not on Windows). In any case it ends
            after twelve times as long.
        memory_bytes: How much memory a process may take (not on Windows).
    """

    seconds: float
    memory_bytes: int


class ProcessWorkers(RemoteWorkers):
    """Run transforms and embedding models in processes of this machine.

    ``graph.build(..., workers=8)`` makes one and closes it. Choose this to keep the processes,
    and the models that they have loaded, for several builds.

    A process imports what the program has imported, and not the program itself, which needs no
    ``if __name__ == "__main__"``. Libraries that compute in threads of their own get a share of
    the cores, unless ``OMP_NUM_THREADS`` and the like say otherwise. What a transform prints goes
    to stderr.

    Args:
        count: How many processes.
        limits: How long a call may take, and how much memory.

    Raises:
        ValueError: If the number is below 1.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> _ = graph.add(["Tea is a drink.", "Rivers run."])
        >>> graph.create_node_group("word", lambda text: text.split())
        >>> with ProcessWorkers(2) as workers:
        ...     graph.build("word", workers=workers)
        []
    """

    def __init__(self, count: int, limits: Limits | None = None) -> None:
        if limits is None:
            super().__init__(count)
        else:
            super().__init__(count, attempts=2, loads=plain_loads)
        self._limits = limits

    def start(self) -> _Process:
        """Start a process."""
        return _Process(self.count, self._limits)


def as_workers(workers: int | Workers) -> Workers:
    """Return processes of this machine for their number.

    Raises:
        TypeError: If it is neither a number nor something that processes are started by.
        ValueError: If the number is below 1.
    """
    if isinstance(workers, bool) or not isinstance(workers, int | Workers):
        raise TypeError(
            f"workers is how many processes, or what starts them (ProcessWorkers(8), "
            f"nodekin.adapters.engines.ray.RayWorkers()), not {workers!r:.80}"
        )
    return ProcessWorkers(workers) if isinstance(workers, int) else workers


class _Process:
    """A process that a pipe leads to."""

    def __init__(self, count: int, limits: Limits | None) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        share = str(max(1, available_cores() // count))
        arguments = [str(limits.seconds), str(limits.memory_bytes)] if limits else []
        self._limits = limits
        self._seconds = max(_START_SECONDS, _WAITING * limits.seconds) if limits else None
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if limits else None,
            env={**dict.fromkeys(_THREADS, share), **os.environ, "PYTHONPATH": paths},
            # Who interrupts the program from the keyboard interrupts the program alone.
            start_new_session=True,
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)

    def exchange(self, message: bytes) -> bytes:
        """Send a message and return the reply."""
        reply = None
        with (
            _killed_after(self._seconds, self._process) as killed,
            contextlib.suppress(OSError, ValueError),  # it has ended, or was closed
        ):
            _write(self._requests, message)
            reply = _read(self._replies)
        if killed.is_set():
            raise WorkerTimeoutError(f"it took more than {self._seconds:g} seconds")
        if reply is None:
            status = self._end()
            if self._limits and -status == getattr(signal, "SIGPROF", None):
                raise WorkerTimeoutError(f"it took more than {self._limits.seconds:g} seconds")
            raise WorkerEndedError(f"the process that worked on it ended {_how(status)}")
        self._seconds = _WAITING * self._limits.seconds if self._limits else None
        return reply

    def close(self) -> None:
        """End the process."""
        self._end()
        with contextlib.suppress(OSError):
            self._replies.close()

    def _end(self) -> int:
        """Close the pipe, so that the process ends; return its status."""
        if self._limits:  # it may hang
            self._process.kill()
        with contextlib.suppress(OSError):
            self._requests.close()
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


@contextlib.contextmanager
def _killed_after(
    seconds: float | None, process: subprocess.Popen[bytes]
) -> Iterator[threading.Event]:
    """Kill a process where the block takes too long. The event says so."""
    killed = threading.Event()
    if seconds is None:
        yield killed
        return

    def kill() -> None:
        killed.set()
        process.kill()

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield killed
    finally:
        timer.cancel()


def available_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _how(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    name = signal.Signals(-status).name if -status in list(signal.Signals) else f"signal {-status}"
    may = ", as the system sends it where memory runs out" if name == "SIGKILL" else ""
    return f"by {name}{may}"


def _write(stream: IO[bytes] | BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "big"))
    stream.write(message)
    stream.flush()


def _read(stream: IO[bytes] | BinaryIO) -> bytes | None:
    """Return one message, None at the end."""
    size = stream.read(8)
    if len(size) < 8:
        return None
    message = stream.read(int.from_bytes(size, "big"))
    return message if len(message) == int.from_bytes(size, "big") else None


def main() -> None:
    """Serve calls until the pipe is closed, which also ends a call that is running."""
    seconds, memory_bytes = map(float, sys.argv[1:] or (0, 0))
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what a transform prints is no reply
    if memory_bytes:
        _limit_memory(int(memory_bytes))
    messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    received = sent = 0

    def read() -> None:
        nonlocal received
        while (message := _read(requests)) is not None:
            received += 1
            messages.put(message)
        if received > sent:
            os._exit(1)
        messages.put(None)

    def receive() -> bytes | None:
        message = messages.get()
        if seconds:
            cpu_seconds = seconds if sent else max(_START_CPU_SECONDS, seconds)
            _end_after(cpu_seconds, 2 * _WAITING * seconds + _END_SECONDS)
        return message

    def send(message: bytes) -> None:
        nonlocal sent
        _end_after(0, 0)
        _write(replies, message)
        sent += 1

    threading.Thread(target=read, daemon=True).start()
    CallServer(receive, send).serve()


def _limit_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_after(cpu_seconds: float, seconds: float) -> None:
    """End this process after some seconds, also if it hangs outside of Python; 0 is never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds)
