"""A process of this machine that calls one function within limits of time and memory."""

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
from typing import Any

# The path of the calling program is set after the start of Python: the folder of a script may have
# a file with the name of a standard module, such as encodings.py.
_PROGRAM = f"import sys; sys.path[:] = sys.argv[3:]; from {__name__} import main; main()"

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_WAITING = 12  # real time per processor time, on a busy machine


@dataclass(eq=False)
class WorkerProcess:
    """A process for a function that may crash, hang, grow or read hostile data.

    The process starts with the first call, and runs until ``close``. If it crashes, the call is
    repeated once in a new process. A call that takes too long is not repeated. Results are plain
    data: no code from the process is executed. Output of the function is dropped.

    The process does not import the main program, so that ``if __name__ == "__main__"`` is not
    needed.

    Args:
        function: A function of a module with one argument, or another object that can be pickled.
        seconds: Processor time per call (not on Windows). A call also ends after twelve times as
            many seconds of real time, which include the start of the process. 0 means no limit.
        memory_bytes: Memory of the process (not on Windows). 0 means no limit.
        answer: Called in this process by ``ask_caller`` in the function.
    """

    function: Callable[[Any], Any]
    seconds: float = 0
    memory_bytes: int = 0
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
                        kind, value = self._exchange(process, _outcome(self.answer, value))
                    return _result(kind, value)
                except ChildProcessError:
                    if is_last or self._process is not process:  # ended by ``close``
                        raise

    @property
    def is_running(self) -> bool:
        """Whether the process has started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """End the process, also during a call. The next call starts a new process."""
        process = self._process
        self._process = None
        if process is not None:
            _end(process)

    def _start(self) -> subprocess.Popen[bytes]:
        limits = [str(self.seconds), str(self.memory_bytes)]
        paths = [path or os.getcwd() for path in sys.path]
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *limits, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**dict.fromkeys(_THREADS, "1"), **os.environ},
            start_new_session=True,  # Ctrl-C interrupts the program only
        )

    def _exchange(self, process: subprocess.Popen[bytes], message: object) -> tuple[str, Any]:
        """Send a message and return the reply."""
        timer = threading.Timer(_WAITING * self.seconds, process.kill)
        timer.daemon = True
        if self.seconds:
            timer.start()
        try:
            _send(process.stdin, message)
            replies: Any = process.stdout
            kind, value = _PlainUnpickler(replies).load()
        except Exception as error:
            is_late = self.seconds > 0 and not timer.is_alive()
            _end(process)
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


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler of texts, numbers, lists and the like, which executes no code."""

    def find_class(self, module: str, name: str) -> Any:
        raise TypeError(f"a process sent more than plain data: {module}.{name}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(OSError), process:
        pass  # closes the pipes, and waits


def _send(stream: Any, message: object) -> None:
    pickle.dump(message, stream)
    stream.flush()


def _outcome(function: Any, argument: object) -> tuple[str, Any]:
    try:
        return "value", function(argument)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _result(kind: str, value: Any) -> Any:
    if kind == "error":
        raise RuntimeError(value)
    return value


# In the process

_pipe: Any = None  # the requests, the replies, and the processor time per call


def ask_caller(question: object) -> Any:
    """Return the answer of the process that called the function.

    Raises:
        RuntimeError: If the caller's ``answer`` raises.
    """
    requests, replies, seconds = _pipe
    _end_after(0)
    _send(replies, ("question", question))
    kind, value = pickle.load(requests)
    _end_after(seconds)
    return _result(kind, value)


def main() -> None:
    """Serve calls until the pipe is closed."""
    seconds = float(sys.argv[1])
    memory_bytes = int(float(sys.argv[2]))
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # printed text is not a reply
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    global _pipe
    _pipe = requests, replies, seconds
    with contextlib.suppress(EOFError):
        while True:
            function, argument = pickle.load(requests)
            _end_after(seconds)
            outcome = _outcome(function, argument)
            _end_after(0)
            _send(replies, outcome)


def _end_after(seconds: float) -> None:
    """End this process after some processor time, even outside of Python. 0 means never."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)
