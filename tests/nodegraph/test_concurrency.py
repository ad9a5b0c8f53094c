import asyncio
import os
import sys
import threading
import time

import pytest
from support.concurrency_gauge import ConcurrencyGauge

from nodekin.nodegraph import NodeGraph, limit_concurrency
from nodekin.nodegraph.concurrency import (
    FairLock,
    fork_safe_fair_lock,
    run_in_tasks,
    run_in_threads,
)


async def nested(mode, gauge, width=3, depth=2):
    """Run calls in branches of branches."""

    def branch(level):
        if level == 0:
            return gauge.complete("?")
        return run_in_threads(branch, [level - 1] * width)

    async def abranch(level):
        if level == 0:
            return await gauge.acomplete("?")
        return await run_in_tasks(abranch, [level - 1] * width)

    return branch(depth) if mode == "sync" else await abranch(depth)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("limit", [1, 2, 4, 7])
async def test_limit_includes_nested_calls(mode, limit):
    gauge = ConcurrencyGauge()
    with limit_concurrency(limit):
        await nested(mode, gauge)
    assert gauge.calls == 9
    assert gauge.most <= limit


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_lower_of_two_limits_is_reached(mode):
    for limits in ((2, 5), (5, 2), (2, None)):
        gauge = ConcurrencyGauge(least=2)
        with limit_concurrency(limits[0]), limit_concurrency(limits[1]):
            await nested(mode, gauge, width=5, depth=1)
        assert gauge.most == 2


async def test_results_are_in_order_and_errors_raised():
    with limit_concurrency(2):
        assert run_in_threads(abs, range(5)) == list(range(5))

        async def value(n):
            await asyncio.sleep(0)
            return n

        assert await run_in_tasks(value, range(5)) == list(range(5))
        assert await run_in_tasks(value, []) == run_in_threads(abs, []) == []
        with pytest.raises(ZeroDivisionError):
            run_in_threads(lambda number: 1 // number, [1, 0, 2])


def test_calls_are_sequential_under_graph_lock():
    gauge, graph = ConcurrencyGauge(), NodeGraph(progress=False)
    graph.add("Tea.")
    with graph.reader.reading():
        run_in_threads(gauge.complete, ["?"] * 3)
    assert gauge.most == 1


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), ("2", TypeError), (True, TypeError)])
def test_invalid_limit_raises(limit, error):
    with pytest.raises(error, match="max_concurrency"), limit_concurrency(limit):
        pass


def test_error_cancels_waiting_calls_after_running_calls():
    calls, running, failed = [], threading.Event(), threading.Event()

    def fail():
        running.wait()
        failed.set()
        raise ZeroDivisionError

    def slow():
        running.set()
        failed.wait()
        calls.append("slow")

    functions = [fail, slow, lambda: calls.append("not called")]
    with pytest.raises(ZeroDivisionError):
        run_in_threads(lambda function: function(), functions, max_workers=2)
    assert calls == ["slow"]


# The lock

NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def start_waiting(lock, names, order):
    """Start threads that wait for the lock one after the other, and note their order."""

    def work(name):
        with lock:
            order.append(name)

    threads = []
    for name in names:
        waiting = len(lock._waiting)
        threads.append(threading.Thread(target=work, args=(name,)))
        threads[-1].start()
        wait_until(lambda: len(lock._waiting) > waiting)  # noqa: B023
    return threads


def test_fair_lock_serves_threads_in_order():
    for _ in range(5):
        lock, order = FairLock(), []
        lock.acquire()
        threads = start_waiting(lock, "abcd", order)
        assert lock.has_waiting
        assert lock.acquire(blocking=False)  # reentrant, although threads wait
        lock.release()
        wait_until(lambda: lock._is_fair)  # noqa: B023 - the first thread has waited for long
        lock.release()
        with lock:  # this thread waits behind the others
            order.append("last")
        for thread in threads:
            thread.join()
        assert order == [*"abcd", "last"]
        assert not lock.has_waiting


def test_fair_lock_without_blocking_never_overtakes():
    lock, order = FairLock(), []
    lock.acquire()
    (thread,) = start_waiting(lock, "a", order)
    wait_until(lambda: lock._is_fair)
    lock.release()
    while not lock.acquire(blocking=False):
        time.sleep(0.001)
    assert order == ["a"]
    lock.release()
    thread.join()
    with pytest.raises(RuntimeError):
        lock.release()


def test_interrupted_wait_for_fair_lock_leaves_queue(monkeypatch):
    lock, order = FairLock(), []
    lock.acquire()
    threads = start_waiting(lock, "a", order)

    class Interrupted:
        """A lock whose second acquisition is interrupted."""

        def __init__(self):
            self.count = 0

        def acquire(self):
            self.count += 1
            if self.count > 1:
                raise KeyboardInterrupt

        def release(self):
            raise AssertionError("the turn of an interrupted thread")

    raised = []

    def wait():
        with monkeypatch.context() as patched:
            patched.setattr(threading, "Lock", Interrupted)
            try:
                lock.acquire()
            except KeyboardInterrupt as error:
                raised.append(error)

    interrupted = threading.Thread(target=wait)
    interrupted.start()
    wait_until(lambda: raised)
    threads += start_waiting(lock, "b", order)
    lock.release()
    for thread in (*threads, interrupted):
        thread.join()
    assert order == ["a", "b"]


def test_fair_lock_under_contention_loses_no_thread():
    lock, count = FairLock(), [0]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work():
        for _ in range(300):
            with lock, lock:
                before = count[0]
                time.sleep(0)
                count[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(interval)
    assert count == [2400]
    assert not lock.has_waiting


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fair_lock_is_free_in_forked_process():
    lock, order = fork_safe_fair_lock(), []
    lock.acquire()
    threads = start_waiting(lock, "ab", order)
    if (child := os.fork()) == 0:
        is_free = not lock.has_waiting and lock.acquire(blocking=False)
        os._exit(0 if is_free else 1)
    lock.release()
    for thread in threads:
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert order == ["a", "b"]
