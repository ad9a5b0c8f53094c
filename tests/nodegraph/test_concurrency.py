import asyncio
import threading

import pytest
from support.concurrency_gauge import ConcurrencyGauge

from nodekin.nodegraph import NodeGraph, limit_concurrency
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
        assert run_in_threads([lambda n=n: n for n in range(5)]) == list(range(5))

        async def value(n):
            await asyncio.sleep(0)
            return n

        assert await run_in_tasks([lambda n=n: value(n) for n in range(5)]) == list(range(5))
        assert await run_in_tasks([]) == run_in_threads([]) == []
        with pytest.raises(ZeroDivisionError):
            run_in_threads([lambda: 1, lambda: 1 // 0, lambda: 2])


def test_calls_are_sequential_under_graph_lock():
    gauge, graph = ConcurrencyGauge(), NodeGraph(progress=False)
    graph.add("Tea.")
    with graph.reader.reading():
        run_in_threads([lambda: gauge.complete("?")] * 3)
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

    with pytest.raises(ZeroDivisionError):
        run_in_threads([fail, slow, lambda: calls.append("not called")], max_workers=2)
    assert calls == ["slow"]
