"""A process that calls functions in order: results, errors, ends, hostile programs."""

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph.workers.queue_process import QueueProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Harmful:
    """An object that calls a function when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("executed",)


def act(argument: str) -> Any:
    if argument == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if argument == "raise":
        raise ValueError("no such text")
    if argument == "print":
        sys.stdout.write("printed")
        sys.stdout.flush()
    return Harmful() if argument == "harm" else [argument, os.getpid()]


def test_calls_wait_in_the_process_and_return_in_order() -> None:
    with closing(QueueProcess()) as process:
        futures = [process.submit(act, f"{n}") for n in range(50)]
        results = [future.result() for future in futures]
    assert [text for text, _ in results] == [f"{n}" for n in range(50)]
    assert {pid for _, pid in results} != {os.getpid()}


def test_large_requests_and_replies_do_not_block() -> None:
    text = "x" * 3_000_000
    with closing(QueueProcess()) as process:
        futures = [process.submit(act, text) for _ in range(4)]
        assert all(future.result()[0] == text for future in futures)


def test_error_of_a_function_leaves_the_process_running() -> None:
    with closing(QueueProcess()) as process:
        failed, printed = process.submit(act, "raise"), process.submit(act, "print")
        with pytest.raises(RuntimeError, match="ValueError: no such text"):
            failed.result()
        assert printed.result()[0] == "print"


def test_request_that_cannot_be_pickled_leaves_other_requests_right() -> None:
    with closing(QueueProcess()) as process:
        first = process.submit(act, "first")
        with pytest.raises(pickle.PicklingError, match="local object"):
            process.submit(lambda text: text, "second")
        third = process.submit(act, "third")
        assert (first.result()[0], third.result()[0]) == ("first", "third")


def test_interrupted_request_ends_the_process() -> None:
    with closing(QueueProcess()) as process:
        _, pid = process.submit(act, "first").result()
        os.kill(pid, signal.SIGSTOP)  # The process stops reading, so the pipe becomes full.
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                process.submit(act, "x" * 5_000_000)
        finally:
            signal.signal(signal.SIGALRM, before)
        until = time.monotonic() + 20
        while process.is_running and time.monotonic() < until:
            time.sleep(0.01)
        with pytest.raises(BrokenPipeError):
            process.submit(act, "next")


@pytest.mark.parametrize("fatal", ["crash", "harm"])
def test_end_of_the_process_fails_all_waiting_calls(fatal) -> None:
    with closing(QueueProcess()) as process:
        futures = [process.submit(act, fatal), process.submit(act, "next")]
        for future in futures:
            with pytest.raises(ChildProcessError):
                future.result()
        assert not process.is_running
        with pytest.raises(BrokenPipeError):
            process.submit(act, "later")


def test_script_beside_files_with_names_of_standard_modules(tmp_path: Path) -> None:
    for name in ("encodings", "io", "signal", "pickle", "queue", "subprocess"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\n"
        "folder = sys.path.pop(0)\n"
        "from nodekin.nodegraph.workers.queue_process import QueueProcess\n"
        "from nodekin.nodegraph.splitters.sentences import sentence_spans\n"
        "sys.path.insert(0, folder)\n"
        "process = QueueProcess()\n"
        "print(process.submit(sentence_spans, 'One. Two.').result())\n"
        "process.close()\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert run.stdout == "[(0, 4), (5, 9)]\n", run.stderr
