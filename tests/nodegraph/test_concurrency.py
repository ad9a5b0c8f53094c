import asyncio
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from concurrency_gauge import ConcurrencyGauge

from nodekin.nodegraph import NodeGraph, concurrency, limit_concurrency
from nodekin.nodegraph.concurrency import run_in_tasks, run_in_threads


async def nested(mode, gauge, width=3, depth=2):
    """Run calls in branches of branches."""

    def branch(level):
        if level == 0:
            return gauge.complete("?")
        return run_in_threads([lambda: branch(level - 1)] * width)

    async def abranch(level):
        if level == 0:
            return await gauge.acomplete("?")
        return await run_in_tasks([lambda: abranch(level - 1)] * width)

    return branch(depth) if mode == "sync" else await abranch(depth)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("limit", [1, 2, 4, 7])
async def test_the_limit_holds_however_deep_calls_are_nested(mode, limit):
    gauge = ConcurrencyGauge()
    with limit_concurrency(limit):
        await nested(mode, gauge)
    assert gauge.calls == 9
    assert gauge.most <= limit


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_limit_is_made_use_of(mode):
    gauge = ConcurrencyGauge(least=3)
    with limit_concurrency(3):
        await nested(mode, gauge, width=5, depth=1)
    assert gauge.most == 3


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_without_a_limit_many_run_at_once(mode):
    gauge = ConcurrencyGauge(least=9)
    await nested(mode, gauge)
    assert gauge.most == 9


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_the_lower_of_two_limits_holds(mode):
    for limits in ((2, 5), (5, 2), (2, None)):
        gauge = ConcurrencyGauge(least=2)
        with limit_concurrency(limits[0]), limit_concurrency(limits[1]):
            await nested(mode, gauge, depth=1)
        assert gauge.most == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_after_the_block_there_is_no_limit(mode):
    with limit_concurrency(1):
        await nested(mode, ConcurrencyGauge(), depth=1)
    await nested(mode, ConcurrencyGauge(least=3), depth=1)


async def test_results_are_in_order_and_an_error_is_raised():
    with limit_concurrency(2):
        assert run_in_threads([lambda n=n: n for n in range(5)]) == list(range(5))

        async def value(n):
            await asyncio.sleep(0)
            return n

        assert await run_in_tasks([lambda n=n: value(n) for n in range(5)]) == list(range(5))
        assert await run_in_tasks([]) == run_in_threads([]) == []
        with pytest.raises(ZeroDivisionError):
            run_in_threads([lambda: 1, lambda: 1 // 0, lambda: 2])


def test_one_after_the_other_where_a_graph_is_locked():
    gauge, graph = ConcurrencyGauge(), NodeGraph(progress=False)
    graph.add("Tea.")
    with graph.reader.reading():
        run_in_threads([lambda: gauge.complete("?")] * 3)
    assert gauge.most == 1


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), ("2", TypeError), (True, TypeError)])
def test_what_is_no_limit_is_refused(limit, error):
    with pytest.raises(error, match="max_concurrency"), limit_concurrency(limit):
        pass


def test_threads_stay_for_the_calls_to_come():
    gauge = ConcurrencyGauge(least=3)
    run_in_threads([lambda: gauge.complete("?")] * 3)
    before = threading.active_count()
    for _ in range(20):
        run_in_threads([lambda: gauge.complete("?")] * 3)
    assert threading.active_count() <= before


def test_calls_within_calls_end_though_all_threads_are_taken(monkeypatch):
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(concurrency, "_pool", lambda: pool)

        def branch(level):
            return 1 if level == 0 else sum(run_in_threads([lambda: branch(level - 1)] * 3))

        assert branch(4) == 3**4


def test_an_error_is_raised_when_what_runs_has_ended_and_the_rest_is_not_called():
    calls, running, failed = [], threading.Event(), threading.Event()

    def fail():
        running.wait()
        failed.set()
        raise ZeroDivisionError

    def slow():
        running.set()
        failed.wait()
        calls.append("slow")

    with pytest.raises(ZeroDivisionError):
        run_in_threads([fail, slow, lambda: calls.append("not called")], max_workers=2)
    assert calls == ["slow"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork processes")
def test_a_child_process_has_threads_of_its_own():
    run_in_threads([lambda: 1] * 3)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_in_threads, ()) == [0, 1, 2]


def _in_threads():
    gauge = ConcurrencyGauge(least=3)
    results = run_in_threads([lambda n=n: (gauge.complete("?"), n)[1] for n in range(3)])
    assert gauge.most == 3
    return results
