"""The work of long builds on all processors: order, errors, ended processes, forks."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from typing import Any

import pytest
from support.worker_processes import started_workers

from nodekin.nodegraph.workers import idle_processors
from nodekin.nodegraph.workers.idle_processors import SharedWork, Workers, shared_map

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

MAIN = os.getpid()

KILL = 5000

RAISE = 6000

SQUARES = [1, 4, 9, 16, 25, 36]


def act(item: int) -> list[Any]:
    is_elsewhere = str(MAIN) != os.environ.get("MAIN_PROCESS")
    if item == RAISE:
        raise ZeroDivisionError(item)
    if item == KILL and is_elsewhere:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.002)
    return [item * item, is_elsewhere]


@pytest.fixture(autouse=True)
def workers(monkeypatch) -> Iterator[Workers]:
    monkeypatch.setenv("MAIN_PROCESS", str(MAIN))
    with started_workers(monkeypatch) as started:
        yield started


def results(*items: int, is_worth: Callable[[int], bool] = bool) -> list[Any]:
    return list(shared_map(act, items, is_worth))


def test_results_have_the_order_of_the_items_on_all_processors() -> None:
    assert [square for square, _ in results(*range(1, 7))] == SQUARES
    assert {is_elsewhere for _, is_elsewhere in results(*range(1, 200))} == {True, False}


def test_short_work_is_done_in_this_process() -> None:
    assert not any(
        is_elsewhere for _, is_elsewhere in results(*range(1, 20), is_worth=lambda item: item > 1)
    )
    assert results() == []


def test_results_that_arrive_immediately_are_received(monkeypatch, workers) -> None:
    submit = workers.submit

    def submit_and_wait(function: Callable[[Any], Any], item: Any) -> Any:
        reply = submit(function, item)
        if reply is not None:
            wait([reply], timeout=20)
        return reply

    monkeypatch.setattr(workers, "submit", submit_and_wait)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(results(*range(1, 7))), daemon=True)
    thread.start()
    thread.join(20)
    assert [square for square, _ in found] == SQUARES


def test_error_has_its_own_type() -> None:
    with pytest.raises(ZeroDivisionError):
        results(1, 2, RAISE, 3)


def test_item_of_a_killed_process_is_computed_here() -> None:
    assert [square for square, _ in results(1, KILL, 3)] == [1, KILL**2, 9]


def test_all_items_are_computed_here_if_processes_cannot_start(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert results(1, 2, 3) == [[1, False], [4, False], [9, False]]


def test_one_processor_computes_everything(monkeypatch) -> None:
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    assert not any(is_elsewhere for _, is_elsewhere in results(*range(1, 20)))


def test_number_of_processes_comes_from_the_environment(monkeypatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("NODEKIN_PROCESSES", "1")
    assert idle_processors.running_workers() is None
    monkeypatch.setenv("NODEKIN_PROCESSES", "all")
    with pytest.raises(ValueError, match="NODEKIN_PROCESSES must be the number of processes"):
        idle_processors.running_workers()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_process_leaves_the_processes_to_its_parent(workers) -> None:
    results(*range(1, 7))
    child = os.fork()
    if child == 0:
        has_workers = idle_processors.running_workers() is not None
        os._exit(int(has_workers))
    assert os.waitpid(child, 0)[1] == 0
    assert [square for square, _ in results(*range(1, 7))] == SQUARES


def test_idle_processes_end_and_start_again(monkeypatch, workers) -> None:
    monkeypatch.setattr(idle_processors, "_IDLE_SECONDS", 0.05)
    results(*range(1, 7))
    until = time.monotonic() + 20
    while workers.num_running and time.monotonic() < until:
        time.sleep(0.02)
    assert workers.num_running == 0
    assert [square for square, _ in results(*range(1, 7))] == SQUARES
    assert workers.num_running > 0


def started_work(*items: int) -> SharedWork[int, list[Any]]:
    """Return work that was started with items, after all of their results have arrived."""
    work: SharedWork[int, list[Any]] = SharedWork(act)
    for item in items:
        work.start(item)
    until = time.monotonic() + 20
    while not all(result.is_done for result in work._early) and time.monotonic() < until:
        time.sleep(0.01)
    return work


def test_items_started_early_are_computed_elsewhere() -> None:
    work = started_work(1, 2, 3)
    found = list(work.results([1, 2, 3, 4], lambda item: False))
    assert [square for square, _ in found] == [1, 4, 9, 16]
    assert [is_elsewhere for _, is_elsewhere in found[:3]] == [True, True, True]


@pytest.mark.parametrize("items", [[2, 3, 4], [1, 3, 4], [3, 2, 1], [5], []])
def test_other_items_than_the_started_ones_have_their_own_results(items) -> None:
    work = started_work(1, 2, 3)
    found = list(work.results(items, bool))
    assert [square for square, _ in found] == [item * item for item in items]
    again = list(work.results([3, 6], bool))
    assert [square for square, _ in again] == [9, 36]


def test_failed_and_killed_items_started_early_are_computed_here() -> None:
    found = list(started_work(KILL, 2).results([KILL, 2], bool))
    assert found[0] == [KILL**2, False]
    with pytest.raises(ZeroDivisionError):
        list(started_work(RAISE).results([RAISE], bool))


def test_early_start_without_other_processors_does_nothing(monkeypatch) -> None:
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    assert [*started_work(1, 2).results([1, 2], bool)] == [[1, False], [4, False]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_process_does_not_wait_for_items_of_its_parent() -> None:
    work: SharedWork[int, list[Any]] = SharedWork(act)
    for item in range(1, 40):
        work.start(item)
    child = os.fork()
    if child == 0:
        found = [square for square, _ in work.results([1, 2], bool)]
        os._exit(int(found != [1, 4]))
    assert os.waitpid(child, 0)[1] == 0
    assert [square for square, _ in work.results(range(1, 7), bool)] == SQUARES


class Local(str):
    """A text that cannot be sent to another process."""

    def __reduce__(self) -> Any:
        raise TypeError("not for other processes")


def length(text: str) -> int:
    return len(text)


def test_items_that_cannot_be_pickled_are_computed_here() -> None:
    texts = [Local("x" * n) if n % 3 else "x" * n for n in range(1, 40)]
    for _ in range(2):
        assert list(shared_map(length, texts, bool)) == [*range(1, 40)]
    work = SharedWork(length)
    for text in texts[:6]:
        work.start(text)
    assert list(work.results(texts, bool)) == [*range(1, 40)]
    assert [square for square, _ in results(*range(1, 7))] == SQUARES


@pytest.mark.parametrize("name", ["_add", "_send"])
def test_interrupted_start_leaves_all_results_right(monkeypatch, name) -> None:
    work = started_work(1, 2)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(work, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            work.start(3)
    work.start(4)
    assert [square for square, _ in work.results(range(1, 7), bool)] == SQUARES


FORKING = """
import os, sys
from nodekin.nodegraph.splitters.sentences import sentence_spans
from nodekin.nodegraph.workers.idle_processors import shared_map

texts = ["One. Two."] * 200
assert [*shared_map(sentence_spans, texts, bool)] == [[(0, 4), (5, 9)]] * 200
child = os.fork()
if child == 0:
    assert [*shared_map(sentence_spans, texts[:3], bool)] == [[(0, 4), (5, 9)]] * 3
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert [*shared_map(sentence_spans, texts, bool)] == [[(0, 4), (5, 9)]] * 200
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_process_ends_beside_the_processes_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING],
        env={**os.environ, "NODEKIN_PROCESSES": "3"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "ended\n", done.stderr


def test_closed_workers_start_no_process(workers) -> None:
    work = started_work(1)
    for item in range(2, 40):
        work.start(item)
    workers.close()
    assert [square for square, _ in work.results(range(1, 7), bool)] == SQUARES
    assert workers.num_running == 0


def test_process_with_a_long_call_does_not_end(monkeypatch, workers) -> None:
    monkeypatch.setattr(idle_processors, "_IDLE_SECONDS", 0.05)
    reply = workers.submit(time.sleep, 0.5)
    assert reply is not None
    workers.end_when_idle()
    assert reply.result(timeout=20) is None
