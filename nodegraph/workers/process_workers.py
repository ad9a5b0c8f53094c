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
from typing import IO, Any, cast

from ..errors import check_integer
from ..locking import release_after_fork


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
    process that crashes is replaced and the call is repeated once; a call that takes too long is
    not repeated. Results are plain data: nothing that a process sends is executed. Output of the
    function is dropped.

    A process does not import the main program, so that ``if __name__ == "__main__"`` is not
    needed. Numerical libraries get a share of the cores unless
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
        with self._free:
            try:
                return self._attempt(argument)
            except _CrashError:
                return self._attempt(argument)

    def _attempt(self, argument: object) -> Any:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Process(self._function, self._count, self._limits)
            with self._lock:
                self._started.add(worker)
        try:
            kind, value = worker.exchange(pickle.dumps(argument))
            while kind == "question":
                kind, value = worker.exchange(pickle.dumps(self._answered(value)))
            return _result((kind, value))
        except _CrashError as error:
            if worker not in self._started:  # ended by ``close``
                raise ChildProcessError(str(error)) from error
            raise
        finally:
            with self._lock:
                if worker.ended:
                    self._started.discard(worker)
                elif worker in self._started:
                    self._idle.append(worker)

    def _answered(self, question: object) -> tuple[str, Any]:
        try:
            if self._answer is None:
                raise TypeError("the caller answers no questions")
            return "value", self._answer(question)
        except Exception as error:
            return _error_message(error)

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


class _CrashError(ChildProcessError):
    """A process ended before it replied."""


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler of texts, numbers, lists and the like, which executes nothing."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a process sent more than plain data: {module}.{name}")


def _error_message(error: BaseException) -> tuple[str, str]:
    return "error", f"{type(error).__name__}: {error}"


def _result(reply: tuple[str, Any]) -> Any:
    kind, value = reply
    if kind == "error":
        raise RuntimeError(value)
    return value


# The working directory is removed from the path, and PYTHONPATH has the path of the program.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    f"from {__name__} import main; main()"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_START_SECONDS = 300  # for the first call, which loads the function

_START_CPU_SECONDS = 30  # the same in processor time

_WAITING = 12  # real time per processor time, on a busy machine


class _Process:
    """A process, connected by pipes."""

    def __init__(self, function: bytes, count: int, limits: Limits) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        share = str(max(1, available_cores() // count))
        self.ended = False
        self._limits = limits
        self._seconds = max(_START_SECONDS, _WAITING * limits.seconds)
        self._function: bytes | None = function
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(limits.seconds), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**dict.fromkeys(_THREADS, share), **os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C interrupts the program only
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)

    def exchange(self, message: bytes) -> Any:
        """Send a message and return the reply.

        Raises:
            TimeoutError: If the process was ended because it took too long.
            _CrashError: If the process has ended.
        """
        reply = None
        begun, seconds = time.monotonic(), self._seconds
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            if self._function is not None:
                _write(self._requests, self._function)
                self._function = None
            _write(self._requests, message)
            reply = _read(self._replies)
        except (OSError, ValueError):  # the process has ended, or was closed
            pass
        finally:
            timer.cancel()
        if reply is not None:
            self._seconds = _WAITING * self._limits.seconds
            return _PlainUnpickler(io.BytesIO(reply)).load()
        status = self._process.wait()
        self.close()
        if -status == getattr(signal, "SIGPROF", None):
            raise TimeoutError(f"it took more than {self._limits.seconds:g} seconds")
        if time.monotonic() - begun >= seconds:
            raise TimeoutError(f"it took more than {seconds:g} seconds")
        raise _CrashError(f"the process that worked on it ended {_how(status)}")

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


def _how(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    name = signal.Signals(-status).name if -status in list(signal.Signals) else f"signal {-status}"
    may = ", as the system sends it where memory runs out" if name == "SIGKILL" else ""
    return f"by {name}{may}"


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "big"))
    stream.write(message)
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
        return _result(pickle.loads(answer))

    global _ask
    _ask = ask
    function: Callable[[Any], Any] | None = None
    pickled = _read(requests)
    while pickled and (message := _read(requests)) is not None:
        _end_after(seconds if function else max(_START_CPU_SECONDS, seconds))
        try:
            function = function or pickle.loads(pickled)
            reply = pickle.dumps(("value", function(pickle.loads(message))))
        except BaseException as error:  # some parsers' errors do not derive from Exception
            reply = pickle.dumps(_error_message(error))
        send(reply)


def _end_with_parent(parent: int) -> None:
    """End this process when the program has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _end_after(seconds: float) -> None:
    """End this process after some processor time, even outside of Python. 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)
