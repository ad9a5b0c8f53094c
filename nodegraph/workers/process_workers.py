"""A local process that calls one function within time and memory limits."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_PROGRAM = f"from {__name__} import main; main()"

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_WAITING = 12  # elapsed time per processor time, on a busy machine


@dataclass(eq=False)
class WorkerProcess:
    """A process for a function that may crash, hang, grow or read hostile data.

    The process starts with the first call, and runs until ``close``. If it crashes, the call is
    repeated once in a new process. A call that takes too long is not repeated. Results are plain
    data, so no code from the process is executed. Output of the function is discarded.

    The process does not import the main program, so ``if __name__ == "__main__"`` is not needed.

    Args:
        function: A module's function with one argument, or any other callable that can be pickled.
        seconds: Processor time per call (not on Windows). A call also ends after twelve times as
            many seconds of elapsed time, which includes the start of the process.
        memory_bytes: Memory of the process (not on Windows).
        answer: A function that runs in this process if the called function uses ``ask_caller``.
    """

    function: Callable[[Any], Any]
    seconds: float
    memory_bytes: int
    answer: Callable[[Any], Any] | None = None
    _lock: Any = field(default_factory=threading.Lock, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def call(self, argument: object) -> Any:
        """Return the function's result. Threads wait for each other.

        Raises:
            TimeoutError: If the call takes too long.
            ChildProcessError: If the process ends before it replies.
            RuntimeError: If the function raises.
            TypeError: If the result is not plain data.
        """
        with self._lock:
            for is_last in (False, True):
                process = self._process
                if process is None or not self.is_running:
                    process = self._process = self._start()
                try:
                    kind, value = self._exchange(process, (self.function, argument))
                    while kind == "question":
                        kind, value = self._exchange(process, outcome_of(self.answer, value))
                    return result_of(kind, value)
                except ChildProcessError:
                    if is_last or self._process is not process:  # ended by ``close``
                        raise

    @property
    def is_running(self) -> bool:
        """Whether the process has started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """End the process, even during a call. The next call starts a new process."""
        process = self._process
        self._process = None
        if process is not None:
            end_process(process)

    def _start(self) -> subprocess.Popen[bytes]:
        return start_python(_PROGRAM, str(self.seconds), str(self.memory_bytes))

    def _exchange(self, process: subprocess.Popen[bytes], message: object) -> tuple[str, Any]:
        """Send a message and return the reply."""
        timer = threading.Timer(_WAITING * self.seconds, process.kill)
        timer.daemon = True
        timer.start()
        try:
            send(process.stdin, message)
            replies: Any = process.stdout
            kind, value = PlainUnpickler(replies).load()
        except Exception as error:
            is_late = not timer.is_alive()
            end_process(process)
            if isinstance(error, TypeError):  # the reply is more than plain data
                raise
            status = process.returncode
            if is_late or status == -getattr(signal, "SIGPROF", 0):
                raise TimeoutError(f"it took more than {self.seconds:g} seconds") from None
            ended = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
            raise ChildProcessError(f"the process that worked on it ended {ended}") from None
        finally:
            timer.cancel()
        return kind, value


def start_python(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start Python with pipes and this program's search path.

    The standard library comes first, and the path is set after the start, since a script's folder
    may contain a file with the name of a standard module, such as encodings.py.

    Args:
        program: The program.
        arguments: Its arguments, from ``sys.argv[1]``.
    """
    folders = [folder or os.getcwd() for folder in sys.path]
    standard = os.path.dirname(os.__file__)
    own = (standard, os.path.join(standard, "lib-dynload"))
    folders.sort(key=lambda folder: folder not in own)
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {folders!r}; {program}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**dict.fromkeys(_THREADS, "1"), **os.environ},
        start_new_session=True,  # Ctrl-C interrupts only the program
    )


class PlainUnpickler(pickle.Unpickler):
    """An unpickler for strings, numbers, lists and the like. It executes no code."""

    def find_class(self, module: str, name: str) -> Any:
        """Raise TypeError, since plain data has no classes."""
        raise TypeError(f"a process sent more than plain data: {module}.{name}")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, close its pipes, and wait for its end."""
    process.kill()
    with contextlib.suppress(OSError), process:
        pass  # closes the pipes, and waits


def send(stream: Any, message: object) -> None:
    """Write a pickled message to a pipe."""
    pickle.dump(message, stream)
    stream.flush()


def outcome_of(function: Any, argument: object) -> tuple[str, Any]:
    """Call a function. Return ``"value"`` and its result, or ``"error"`` and a text."""
    try:
        return "value", function(argument)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def result_of(kind: str, value: Any) -> Any:
    """Return the result that ``outcome_of`` recorded.

    Raises:
        RuntimeError: If the function raised an error.
    """
    if kind == "error":
        raise RuntimeError(value)
    return value


# In the process

_pipe: Any = None  # the requests, the replies, and the processor time per call


def ask_caller(question: object) -> Any:
    """Ask the process that called the function, and return its answer.

    Raises:
        RuntimeError: If the caller's ``answer`` raises.
    """
    requests, replies, seconds = _pipe
    _end_after(0)
    send(replies, ("question", question))
    kind, value = pickle.load(requests)
    _end_after(seconds)
    return result_of(kind, value)


def main() -> None:
    """Serve calls until the pipe is closed."""
    seconds = float(sys.argv[1])
    memory_bytes = int(float(sys.argv[2]))
    requests, replies = pipes()
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    global _pipe
    _pipe = requests, replies, seconds
    with contextlib.suppress(EOFError):
        while True:
            function, argument = pickle.load(requests)
            _end_after(seconds)
            outcome = outcome_of(function, argument)
            _end_after(0)
            send(replies, outcome)


def pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes for requests and replies, in a process of ``start_python``.

    Text that the process prints is discarded.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, replies


def _end_after(seconds: float) -> None:
    """End this process after some processor time, even outside Python. If 0, it never ends."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)
