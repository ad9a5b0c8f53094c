"""Call functions in processes of this machine."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from ..concurrency import Workers
from .remote_calls import CallServer, plain_loads
from .remote_workers import RemoteWorkers, WorkerEndedError, WorkerTimeoutError

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
