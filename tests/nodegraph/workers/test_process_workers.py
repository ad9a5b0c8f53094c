"""Processes with limits: replacement, questions, plain results."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodekin.nodegraph.workers.process_workers import Limits, ProcessWorkers, ask_caller

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

LIMITS = Limits(300, 2_000_000_000)


def process_of(_: object) -> int:
    return os.getpid()


def crash_on_request(argument: str) -> str:
    if argument == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if argument == "exit":
        os._exit(3)
    if argument == "raise":
        raise ValueError("no such text")
    if argument == "print":
        sys.stdout.write("printed\n")
        sys.stdout.flush()
        os.write(1, b"written\n")
        return repr(sys.stdin.read())
    return argument


def ask_twice(argument: int) -> list[int]:
    return [ask_caller(argument), ask_caller(argument + 1)]


def wait_for_end_of(process: int) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")


def test_process_keeps_function_until_close() -> None:
    with ProcessWorkers(process_of, 1, LIMITS) as workers:
        process = workers.call(())
        assert process != os.getpid()
        assert workers.call(()) == process
        workers.close()
        wait_for_end_of(process)
        assert workers.call(()) != process


def test_crash_raises_child_process_error() -> None:
    with ProcessWorkers(crash_on_request, 1, LIMITS) as workers:
        assert workers.call("a") == "a"
        with pytest.raises(ChildProcessError, match="ended by SIGKILL"):
            workers.call("crash")
        with pytest.raises(ChildProcessError, match="ended with status 3"):
            workers.call("exit")
        assert workers.call("b") == "b"


def test_function_that_raises_leaves_process_running() -> None:
    with ProcessWorkers(crash_on_request, 1, LIMITS) as workers:
        with pytest.raises(RuntimeError, match="ValueError: no such text"):
            workers.call("raise")
        assert workers.call("a") == "a"


def test_printed_output_is_not_a_reply(capfd: pytest.CaptureFixture[str]) -> None:
    with ProcessWorkers(crash_on_request, 1, LIMITS) as workers:
        assert workers.call("print") == "''"
    assert capfd.readouterr() == ("", "")


def test_caller_answers_questions() -> None:
    with ProcessWorkers(ask_twice, 1, LIMITS, lambda number: 10 // number) as workers:
        assert workers.call(1) == [10, 5]
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            workers.call(0)
        assert workers.call(2) == [5, 3]


def test_invalid_function_or_count_raises() -> None:
    with pytest.raises((TypeError, AttributeError)):  # depends on the Python version
        ProcessWorkers(lambda argument: argument, 1, LIMITS)
    with pytest.raises(ValueError, match="count must be 1 or more, got 0"):
        ProcessWorkers(process_of, 0, LIMITS)


_PROGRAM = """
import sys
import test_process_workers as here

with here.ProcessWorkers(here.endless, 1, here.LIMITS) as workers:
    workers.call(sys.argv[1])
"""


def endless(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    while True:
        pass


def test_killed_program_leaves_no_process(tmp_path: Path) -> None:
    file = tmp_path / "process"
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(file)], env={**os.environ, "PYTHONPATH": paths}
    )
    while not (file.exists() and file.read_text()):
        assert program.poll() is None
        time.sleep(0.01)
    program.kill()
    program.wait()
    wait_for_end_of(int(file.read_text()))
