"""Run a function in a separate process with limits on time and memory."""

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

_WAITING = 12  # maximum ratio of elapsed time to CPU time, for a busy machine


@dataclass(eq=False)
class WorkerProcess:
    """Runs a function in a separate process, because it may crash, hang or process untrusted data.

    The process starts with the first call and runs until ``close`` is called. If it crashes, the
    call is repeated once in a new process. A call that takes too long is not repeated. Results must
    be plain data, so that no code from the process is executed. The output that the function prints
    is discarded.

    Unlike with ``multiprocessing``, the main program is not imported, so ``if __name__ ==
    "__main__"`` is not needed.

    Args:
        function: A function with one argument that is defined in a module, or any other callable
            that can be pickled.
        seconds: The maximum CPU time per call (not enforced on Windows). The elapsed time,
            including the start of the process, is limited to twelve times this value.
        memory_bytes: The maximum memory of the process in bytes (not enforced on Windows).
        answer: A function that is called in the current process if the function uses
            ``ask_caller``.
    """

    function: Callable[[Any], Any]
    seconds: float
    memory_bytes: int
    answer: Callable[[Any], Any] | None = None
    _lock: Any = field(default_factory=threading.Lock, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def call(self, argument: object) -> Any:
        """Call the function in the process and return its result.

        Calls from several threads are queued.

        Raises:
            TimeoutError: If the call exceeds the time limit.
            ChildProcessError: If the process ends before it returns a result.
            RuntimeError: If the function raises an error.
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
                    # The process was stopped by ``close``.
                    if is_last or self._process is not process:
                        raise

    @property
    def is_running(self) -> bool:
        """True if the process has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """Stop the process, even during a call. The next call starts a new process."""
        process = self._process
        self._process = None
        if process is not None:
            end_process(process)

    def _start(self) -> subprocess.Popen[bytes]:
        return start_python(_PROGRAM, str(self.seconds), str(self.memory_bytes))

    def _exchange(self, process: subprocess.Popen[bytes], message: object) -> tuple[str, Any]:
        """Send a message to the process and return its reply."""
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
            if isinstance(error, TypeError):  # The reply does not consist of plain data.
                raise
            status = process.returncode
            if is_late or status == -getattr(signal, "SIGPROF", 0):
                raise TimeoutError(f"it took more than {self.seconds:g} seconds") from None
            ended = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
            raise ChildProcessError(f"the process that worked on it ended {ended}") from None
        finally:
            timer.cancel()
        return kind, value


def start_python(program: str, *arguments: str, buffer_bytes: int = -1) -> subprocess.Popen[bytes]:
    """Start a Python process with pipes for communication and the search path of this program.

    The search path is set after the process has started, and the standard library comes first,
    because the folder of a script may contain a file with the name of a standard module, such as
    encodings.py.

    Args:
        program: The source code of the program.
        arguments: The command-line arguments, which start at ``sys.argv[1]``.
        buffer_bytes: The size of the buffers for the pipes. With 0, the pipes have no buffers and
            no locks. With -1, the buffers have Python's default size.
    """
    folders = [folder or os.getcwd() for folder in sys.path]
    standard = os.path.dirname(os.__file__)
    own = (standard, os.path.join(standard, "lib-dynload"))
    folders.sort(key=lambda folder: folder not in own)
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {folders!r}; {program}", *arguments],
        bufsize=buffer_bytes,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**dict.fromkeys(_THREADS, "1"), **os.environ},
        start_new_session=True,  # Ctrl-C interrupts only the main program.
    )


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that accepts only plain data such as strings, numbers and lists.

    It does not execute any code from the pickled data.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Reject every class by raising TypeError, since plain data does not contain classes."""
        raise TypeError(f"a process sent more than plain data: {module}.{name}")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, close its pipes, and wait until it has ended."""
    process.kill()
    with contextlib.suppress(OSError), process:
        pass  # This closes the pipes and waits.


def send(stream: Any, message: object) -> None:
    """Pickle a message and write it to a pipe."""
    pickle.dump(message, stream)
    stream.flush()


def outcome_of(function: Any, argument: object) -> tuple[str, Any]:
    """Call a function, and return its result or its error in a form that can be sent to a process.

    Returns:
        ``"value"`` and the result, or ``"error"`` and a description of the error.
    """
    try:
        return "value", function(argument)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def result_of(kind: str, value: Any) -> Any:
    """Return the result of a call that was recorded with ``outcome_of``.

    Raises:
        RuntimeError: If the function raised an error.
    """
    if kind == "error":
        raise RuntimeError(value)
    return value


# The following functions run in the worker process.

_pipe: Any = None  # pipes for requests and replies, and the CPU time per call


def ask_caller(question: object) -> Any:
    """Send a question to the process that called the function, and return its answer.

    Raises:
        RuntimeError: If the function ``answer`` in the calling process raises an error.
    """
    requests, replies, seconds = _pipe
    _end_after(0)
    send(replies, ("question", question))
    kind, value = pickle.load(requests)
    _end_after(seconds)
    return result_of(kind, value)


def main() -> None:
    """Process calls until the pipe is closed."""
    seconds = float(sys.argv[1])
    memory_bytes = int(float(sys.argv[2]))
    requests, replies = pipes()
    # This module is missing on Windows.
    with contextlib.suppress(ImportError, ValueError, OSError):
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
    """Return the pipes for requests and replies in a process that ``start_python`` started.

    Afterwards, everything that the process prints is discarded.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, replies


def _end_after(seconds: float) -> None:
    """Terminate this process after some CPU time, even if it is not running Python code.

    If ``seconds`` is 0, the process is not terminated.
    """
    if hasattr(signal, "setitimer"):  # This function is missing on Windows.
        signal.setitimer(signal.ITIMER_PROF, seconds)
