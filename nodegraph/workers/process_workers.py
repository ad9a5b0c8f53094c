"""Processes of this machine that call one function within limits of time and memory."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

from ..errors import check_integer
from ..locking import release_after_fork


class WorkerEndedError(Exception):
    """A process ended before it replied."""


class WorkerTimeoutError(WorkerEndedError):
    """A process was ended because a call took too long."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each call.

    Attributes:
        seconds: Processor time per call (not on Windows). A call also ends after twelve times as
            many seconds of real time.
        memory_bytes: Memory per process (not on Windows).
    """

    seconds: float
    memory_bytes: int


class ProcessWorkers:
    """Processes for a function that may crash, hang, grow or read hostile data.

    Processes start when they are needed, and keep what they have loaded until ``close``. As many
    calls run concurrently as there are threads that call. A process that crashes is replaced and
    the call is repeated once; a call that takes too long is not repeated. Results are plain data:
    nothing that a process sends is executed. Output of the function is dropped.

    A process imports what the program has imported, but not the main program, so that no
    ``if __name__ == "__main__"`` is needed. Numerical libraries get a share of the cores unless
    ``OMP_NUM_THREADS`` and the like are set.

    Args:
        function: A function of a module with one argument, or another object that can be pickled.
        count: The maximum number of processes.
        limits: The limits of each call.
        answer: Called in this process by ``ask_caller`` in the function.

    Raises:
        ValueError: If the count is below 1.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        count: int,
        limits: Limits,
        answer: Callable[[Any], Any] | None = None,
    ) -> None:
        self._function = pickle.dumps(function)
        self._count = check_integer(count, "count", 1)
        self._limits = limits
        self._answer = answer
        self._set_up()
        release_after_fork(self)

    def _set_up(self) -> None:
        self._free = threading.BoundedSemaphore(self._count)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._started: set[_Process] = set()

    def after_fork(self) -> None:
        """Leave the processes to the parent process."""
        self._set_up()

    def call(self, argument: object) -> Any:
        """Return the function's result.

        Raises:
            TimeoutError: If the call takes too long.
            ChildProcessError: If the process ends before it replies.
            RuntimeError: If the function raises.
            UnpicklingError: If the result is more than plain data.
        """
        for is_last in (False, True):
            with self._free:
                worker = self._acquire()
                try:
                    return self._converse(worker, argument)
                except WorkerEndedError as error:
                    with self._lock:
                        was_closed = worker not in self._started
                        self._started.discard(worker)
                    worker.close()
                    if isinstance(error, WorkerTimeoutError):
                        raise TimeoutError(str(error)) from error
                    if was_closed or is_last:
                        raise ChildProcessError(str(error)) from error
                finally:
                    with self._lock:
                        if worker in self._started:
                            self._idle.append(worker)
        raise AssertionError

    def _converse(self, worker: _Process, argument: object) -> Any:
        """Send an argument, answer the function's questions, and return its result."""
        if not worker.has_function:
            _result(plain_loads(worker.exchange(self._function)))
            worker.has_function = True
        reply = plain_loads(worker.exchange(pickle.dumps(argument)))
        while reply[0] == "question":
            try:
                if self._answer is None:
                    raise TypeError("the caller answers no questions")
                message: tuple[str, Any] = ("value", self._answer(reply[1]))
            except Exception as error:
                message = _error_message(error)
            reply = plain_loads(worker.exchange(pickle.dumps(message)))
        return _result(reply)

    def _acquire(self) -> _Process:
        """Return an idle process, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        worker = _Process(self._count, self._limits)
        with self._lock:
            self._started.add(worker)
        return worker

    def close(self) -> None:
        """End the processes, also during calls. The next call starts new processes."""
        with self._lock:
            workers = list(self._started)
            self._started.clear()
            self._idle.clear()
        for worker in workers:
            worker.close()

    def __enter__(self) -> ProcessWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a process sent more than plain data: {module}.{name}")


def plain_loads(data: bytes) -> Any:
    """Return unpickled texts, numbers, lists and the like, without executing anything.

    Raises:
        UnpicklingError: If the data contains anything else.
    """
    return _PlainUnpickler(io.BytesIO(data)).load()


def _error_message(error: BaseException) -> tuple[str, str]:
    return "error", f"{type(error).__name__}: {error}"


def _result(reply: tuple[str, Any]) -> Any:
    kind, value = reply
    if kind == "error":
        raise RuntimeError(value)
    return value


# Python puts the working directory first; PYTHONPATH has what a program may import.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    f"from {__name__} import main; main()"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_END_SECONDS = 10  # for a process to end

_START_SECONDS = 300  # for a process to start and to load its function

_START_CPU_SECONDS = 30  # the same in processor time

_WAITING = 12  # real time per processor time, on a busy machine


class _Process:
    """A process, connected by pipes."""

    def __init__(self, count: int, limits: Limits) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        share = str(max(1, available_cores() // count))
        self.has_function = False
        self._limits = limits
        self._seconds = max(_START_SECONDS, _WAITING * limits.seconds)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(limits.seconds), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**dict.fromkeys(_THREADS, share), **os.environ, "PYTHONPATH": paths},
            # Ctrl-C interrupts the program only.
            start_new_session=True,
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)

    def exchange(self, message: bytes) -> bytes:
        """Send a message and return the reply.

        Raises:
            WorkerEndedError: If the process has ended.
        """
        reply = None
        with (
            _killed_after(self._seconds, self._process) as killed,
            contextlib.suppress(OSError, ValueError),  # the process has ended, or was closed
        ):
            _write(self._requests, message)
            reply = _read(self._replies)
        if killed.is_set():
            raise WorkerTimeoutError(f"it took more than {self._seconds:g} seconds")
        if reply is None:
            status = self._end()
            if -status == getattr(signal, "SIGPROF", None):
                raise WorkerTimeoutError(f"it took more than {self._limits.seconds:g} seconds")
            raise WorkerEndedError(f"the process that worked on it ended {_how(status)}")
        self._seconds = _WAITING * self._limits.seconds
        return reply

    def close(self) -> None:
        """End the process, also during a call."""
        self._end()
        with contextlib.suppress(OSError):
            self._replies.close()

    def _end(self) -> int:
        """Kill the process; return its status."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._requests.close()
        return self._process.wait()


@contextlib.contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[threading.Event]:
    """Kill a process if the block takes too long, and set the event."""
    killed = threading.Event()

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
    """Return the number of cores that this process may use."""
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


# In the process


_exchange: Callable[[tuple[str, Any]], Any] | None = None  # sends a question to the caller


def ask_caller(question: object) -> Any:
    """Return the answer of the process that called the function.

    Raises:
        RuntimeError: If the caller's ``answer`` raises.
    """
    if _exchange is None:
        raise RuntimeError("ask_caller works only in a function that ProcessWorkers call")
    return _exchange(("question", question))


def main() -> None:
    """Serve calls until the pipe is closed, which also ends a running call."""
    seconds, memory_bytes = map(float, sys.argv[1:])
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # printed text is not a reply
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
        cpu_seconds = seconds if sent else max(_START_CPU_SECONDS, seconds)
        _end_after(cpu_seconds, 2 * _WAITING * seconds + _END_SECONDS)
        return message

    def send(reply: tuple[str, Any]) -> None:
        nonlocal sent
        _end_after(0, 0)
        _write(replies, pickle.dumps(reply))
        sent += 1

    def exchange(question: tuple[str, Any]) -> Any:
        send(question)
        answer = receive()
        if answer is None:
            raise EOFError("the process that called has ended")
        return _result(pickle.loads(answer))

    global _exchange
    _exchange = exchange
    threading.Thread(target=read, daemon=True).start()
    function: Callable[[Any], Any] | None = None
    while (message := receive()) is not None:
        try:
            argument = pickle.loads(message)
            if function is None:
                function, value = argument, None
            else:
                value = function(argument)
            send(("value", value))
        except BaseException as error:  # some parsers' errors do not derive from Exception
            send(_error_message(error))


def _limit_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_after(cpu_seconds: float, seconds: float) -> None:
    """End this process after some seconds, even if it hangs outside of Python. 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds)
