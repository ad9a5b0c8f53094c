"""Processes of this machine that call one function within limits of time and memory."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from queue import LifoQueue
from typing import IO, Any, cast
from weakref import WeakSet

from ..errors import check_integer


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

    Processes start on demand, and run until ``close``. Each calling thread uses one process. A
    process that crashes is replaced and the call is repeated once. A call that takes too long is
    not repeated. Results are plain data: no code from a process is executed. Output of the
    function is dropped.

    A process does not import the main program, so that ``if __name__ == "__main__"`` is not
    needed.

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
        check_integer(count, "count", 1)
        self._start = partial(_Process, pickle.dumps(function), limits, answer)
        self._running: WeakSet[_Process] = WeakSet()
        self._free: LifoQueue[_Process | None] = LifoQueue()
        for _ in range(count):
            self._free.put(None)

    def call(self, argument: object) -> Any:
        """Return the function's result.

        Raises:
            TimeoutError: If the call takes too long.
            ChildProcessError: If the process ends before it replies.
            RuntimeError: If the function raises.
            UnpicklingError: If the result is not plain data.
        """
        process = self._free.get()
        try:
            for is_last in (False, True):
                if process is None or process.ended:
                    process = self._start()
                    self._running.add(process)
                try:
                    return process.call(argument)
                except ChildProcessError:
                    if is_last or process not in self._running:  # ended by ``close``
                        raise
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes, also during calls. The next call starts new processes."""
        running = list(self._running)
        self._running.clear()
        for process in running:
            process.close()

    def __enter__(self) -> ProcessWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler of texts, numbers, lists and the like, which executes no code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a process sent more than plain data: {module}.{name}")


def _outcome(function: Any, argument: object) -> bytes:
    """Call a function, and pickle its result or error."""
    try:
        return pickle.dumps(("value", function(argument)))
    except Exception as error:
        return pickle.dumps(("error", f"{type(error).__name__}: {error}"))


def _result(kind: str, value: Any) -> Any:
    if kind == "error":
        raise RuntimeError(value)
    return value


# The working directory is removed from the path, and PYTHONPATH has the path of the program.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    f"from {__name__} import main; main()"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_START_SECONDS = 300  # real time of the first call, which imports the function's modules

_START_CPU_SECONDS = 30

_WAITING = 12  # real time per processor time, on a busy machine


class _Process:
    """A process, connected by pipes."""

    def __init__(self, function: bytes, limits: Limits, answer: Any) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self.ended = False
        self._limits = limits
        self._answer = answer
        self._seconds = max(_START_SECONDS, _WAITING * limits.seconds)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(limits.seconds), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**dict.fromkeys(_THREADS, "1"), **os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C interrupts the program only
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)
        with contextlib.suppress(OSError):  # the process has ended: the first call fails
            _write(self._requests, function)

    def call(self, argument: object) -> Any:
        """Return the function's result, after answers to its questions.

        Raises:
            TimeoutError: If the process was ended because it took too long.
            ChildProcessError: If the process has ended.
            RuntimeError: If the function raises.
        """
        kind, value = self._exchange(pickle.dumps(argument))
        while kind == "question":
            kind, value = self._exchange(_outcome(self._answer, value))
        return _result(kind, value)

    def _exchange(self, message: bytes) -> tuple[str, Any]:
        """Send a message and return the reply."""
        reply = None
        end = time.monotonic() + self._seconds
        timer = threading.Timer(self._seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        with contextlib.suppress(OSError, ValueError):  # the process has ended, or was closed
            _write(self._requests, message)
            reply = _read(self._replies)
        timer.cancel()
        if reply is None:
            status = self._process.wait()
            self.close()
            if status == -getattr(signal, "SIGPROF", 0):
                raise TimeoutError(f"it took more than {self._limits.seconds:g} seconds")
            if time.monotonic() >= end:
                raise TimeoutError(f"it took more than {self._seconds:g} seconds")
            ended = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
            raise ChildProcessError(f"the process that worked on it ended {ended}")
        self._seconds = _WAITING * self._limits.seconds
        kind, value = _PlainUnpickler(io.BytesIO(reply)).load()
        return kind, value

    def close(self) -> None:
        """End the process, also during a call."""
        self.ended = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                pipe.close()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "big") + message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """Return one message, None at the end."""
    size = int.from_bytes(head, "big") if len(head := stream.read(8)) == 8 else -1
    message = stream.read(size) if size >= 0 else b""
    return message if len(message) == size else None


# In the process

_ask: Callable[[object], Any] | None = None


def ask_caller(question: object) -> Any:
    """Return the answer of the process that called the function.

    Raises:
        RuntimeError: If the caller's ``answer`` raises.
    """
    if _ask is None:
        raise RuntimeError("ask_caller works only in a function that ProcessWorkers call")
    return _ask(question)


def main() -> None:
    """Serve calls until the pipe is closed."""
    seconds, memory_bytes = map(float, sys.argv[1:])
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # printed text is not a reply
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_end_with_parent, args=[os.getppid()], daemon=True).start()

    def send(reply: bytes) -> None:
        _end_after(0)
        _write(replies, reply)

    def ask(question: object) -> Any:
        send(pickle.dumps(("question", question)))
        if (answer := _read(requests)) is None:
            raise EOFError("the process that called has ended")
        _end_after(seconds)
        return _result(*pickle.loads(answer))

    global _ask
    _ask = ask
    load = cache(pickle.loads)
    function = _read(requests) or b""
    limit = max(_START_CPU_SECONDS, seconds)
    while (message := _read(requests)) is not None:
        _end_after(limit)
        send(_outcome(lambda call: load(function)(pickle.loads(call)), message))
        limit = seconds


def _end_with_parent(parent: int) -> None:
    """End this process when the program has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _end_after(seconds: float) -> None:
    """End this process after some processor time, even outside of Python. 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)
