"""Processes with limits: replacement, questions, plain results."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph.workers.process_workers import WorkerProcess, ask_caller

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Harmful:
    """An object that calls a function when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("executed",)


def act(argument: str) -> Any:
    if argument == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if argument == "exit":
        os._exit(3)
    if argument.endswith("once") and not os.path.exists(argument):
        os.mkdir(argument)
        os._exit(3)
    if argument == "raise":
        raise ValueError("no such text")
    if argument == "print":
        sys.stdout.write("printed\n")
        sys.stdout.flush()
        os.write(1, b"written\n")
        return repr(sys.stdin.read())
    if argument == "ask":
        return [ask_caller(1), ask_caller(2)]
    return Harmful() if argument == "harm" else os.getpid()


def started(answer: Callable[[Any], Any] | None = None) -> Any:
    return closing(WorkerProcess(act, 300, 2_000_000_000, answer))


def test_process_runs_until_close() -> None:
    with started() as process:
        first = process.call("id")
        assert os.getpid() != first == process.call("id")
        process.close()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        assert process.call("id") != first


def test_crash_raises_child_process_error(tmp_path: Path) -> None:
    with started() as process:
        assert process.call(str(tmp_path / "once"))
        with pytest.raises(ChildProcessError, match="ended by SIGKILL"):
            process.call("crash")
        with pytest.raises(ChildProcessError, match="ended with status 3"):
            process.call("exit")
        with pytest.raises(RuntimeError, match="ValueError: no such text"):
            process.call("raise")
        assert process.call("id")


def test_printed_output_is_not_a_reply(capfd: pytest.CaptureFixture[str]) -> None:
    with started() as process:
        assert process.call("print") == "''"
    assert capfd.readouterr() == ("", "")


def test_caller_answers_questions() -> None:
    with started(lambda number: 10 // number) as process:
        assert process.call("ask") == [10, 5]
    with started(lambda number: 10 // 0) as process:
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            process.call("ask")
        assert process.call("id")


def test_reply_with_code_is_not_executed(capsys: pytest.CaptureFixture[str]) -> None:
    refused = pytest.raises(TypeError, match=r"more than plain data: builtins\.print")
    with started() as process, refused:
        process.call("harm")
    assert capsys.readouterr().out == ""
