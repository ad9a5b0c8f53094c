"""The work of long builds on all processors: order, errors, ended processes, forks."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from typing import Any

import pytest
from support.worker_processes import started_workers

from nodekin.nodegraph.workers import idle_processors
from nodekin.nodegraph.workers.idle_processors import Workers, shared_map

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
