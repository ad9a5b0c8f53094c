"""The drivers of strategies: the same results in a thread and in an event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from support.concurrency_gauge import ConcurrencyGauge

from nodekin.nodegraph import LLM, ModelError, NodeGraph
from nodekin.retrievers import All, Do, MultiQueryRetriever, Retriever, ScoredNode, as_retriever
from nodekin.retrievers.plans.effects import ask, find_all
from nodekin.retrievers.plans.plan import arun, astream, gather, run, stream
from nodekin.retrievers.tracing import start_span, trace

ECHO = LLM(lambda prompt: prompt.upper(), "echo")

Strategy = Callable[[], Coroutine[Any, Any, Any]]


def both(strategy: Strategy) -> list[Any]:
    """Return the result of a strategy in a thread and in an event loop."""
    return [run(strategy), asyncio.run(arun(strategy))]


DRIVERS = pytest.mark.parametrize(
    "drive", [run, lambda strategy: asyncio.run(arun(strategy))], ids=["sync", "async"]
)


class Pieces:
    """A model that streams its answer word by word."""

    def complete(self, prompt: str) -> str:
        return "".join(self.stream(prompt))

    def stream(self, prompt: str) -> Iterator[str]:
        yield from (f"{word} " for word in prompt.split())

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        for piece in self.stream(prompt):
            yield piece


async def double(value: int) -> int:
    if value < 0:
        raise ValueError(f"no {value}")
    return await Do(lambda: 2 * value)


def test_strategy_receives_results_of_its_calls() -> None:
    async def strategy() -> str:
        first = await ask(ECHO, "tea")
        second = await ask(ECHO, f"{first} and milk")
        return f"{second}!"

    assert both(strategy) == ["TEA AND MILK!"] * 2


def test_errors_are_raised_at_the_awaiting_line() -> None:
    async def strategy() -> str:
        try:
            await ask(LLM(lambda prompt: str(1 / 0), "broken"), "tea")
        except ModelError as error:
            answer = await ask(ECHO, "spare")
            return f"{answer} after {type(error.__cause__).__name__}"
        return "never"

    assert both(strategy) == ["SPARE after ZeroDivisionError"] * 2


@DRIVERS
def test_other_awaitables_raise_the_correct_form(drive: Any) -> None:
    ended = []

    async def strategy() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            ended.append(True)

    with pytest.raises(TypeError, match=r"write: await Do\(function, async_function\)"):
        drive(strategy)
    assert ended == [True]


@DRIVERS
def test_all_returns_results_and_exceptions_in_order(drive: Any) -> None:
    async def strategy() -> list[int | Exception]:
        return await All([partial(double, 1), partial(double, -1), partial(double, 3)])

    results = drive(strategy)
    assert (results[0], results[2]) == (2, 6)
    assert isinstance(results[1], ValueError)


@DRIVERS
def test_gather_raises_the_first_error(drive: Any) -> None:
    assert drive(lambda: gather([partial(double, 1), partial(double, 2)])) == [2, 4]
    with pytest.raises(ValueError, match="no -1"):
        drive(lambda: gather([partial(double, 1), partial(double, -1), partial(double, 2)]))
    with pytest.raises(ValueError, match="no -1"):  # in parallel, -2 could fail first
        drive(lambda: gather([partial(double, -1), partial(double, -2)], max_parallel=1))


@DRIVERS
def test_parts_run_in_parallel(drive: Any) -> None:
    meet = threading.Barrier(3, timeout=300)  # passed only by three threads together

    async def part(number: int) -> int:
        await Do(meet.wait)
        return number

    assert drive(lambda: gather([partial(part, n) for n in range(3)])) == [0, 1, 2]


def test_waiting_threads_run_parts_that_have_not_begun() -> None:
    barrier, threads = threading.Barrier(2), set[int]()

    async def part() -> None:
        await Do(lambda: (barrier.wait(10), threads.add(threading.get_ident())))

    run(lambda: gather([part] * 4, max_parallel=2))
    assert len(threads) == 2
    assert threading.get_ident() in threads


@DRIVERS
@pytest.mark.parametrize("max_parallel", [1, 2, 5])
def test_max_parallel_limits_threads_and_tasks(drive: Any, max_parallel: int) -> None:
    gauge = ConcurrencyGauge(least=max_parallel)

    async def part() -> None:
        await Do(partial(gauge.complete, "prompt"), partial(gauge.acomplete, "prompt"))

    drive(lambda: gather([part] * 12, max_parallel))
    assert gauge.most == max_parallel


def test_nested_parts_do_not_deadlock() -> None:
    """The waiting parts would take all threads of a shared pool."""

    async def nested(level: int) -> int:
        if level == 0:
            return await Do(lambda: 1)
        return sum(await gather([partial(nested, level - 1)] * 9))

    assert run(partial(nested, 3)) == 9**3


def test_fail_fast_starts_no_more_parts() -> None:
    started: list[int] = []

    async def part(number: int) -> None:
        started.append(number)
        raise ValueError(f"no {number}")

    with pytest.raises(ValueError, match="no 0"):
        run(lambda: gather([partial(part, n) for n in range(100)], max_parallel=1))
    assert started == [0]


def test_fail_fast_cancels_other_tasks_and_waits() -> None:
    ended: list[str] = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("canceled")

    async def waiting() -> None:
        try:
            await Do(lambda: None, never)
        finally:
            ended.append("part")

    async def strategy() -> list[None]:
        return await gather([waiting, partial(double, -1)])  # type: ignore[list-item]

    async def main() -> None:
        with pytest.raises(ValueError, match="no -1"):
            await arun(strategy)
        assert ended == ["canceled", "part"]

    asyncio.run(main())


def test_cancellation_reaches_finally_and_skips_except() -> None:
    ended: list[str] = []

    async def never() -> None:
        await asyncio.Event().wait()

    async def strategy() -> None:
        try:
            await Do(lambda: None, never)
        except Exception:
            ended.append("treated as an error")
            raise
        finally:
            ended.append("finally")

    async def main() -> None:
        task = asyncio.create_task(arun(strategy))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["finally"]


def test_keyboard_interrupt_reaches_finally() -> None:
    ended: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def strategy() -> None:
        try:
            await Do(interrupt)
        finally:
            ended.append("finally")

    with pytest.raises(KeyboardInterrupt):
        run(strategy)
    assert ended == ["finally"]


async def test_sync_form_runs_inside_an_event_loop(library: NodeGraph) -> None:
    retriever = MultiQueryRetriever(Retriever(library, "ROOT"), lambda prompt: "green tea")
    assert retriever.retrieve("tea") == await retriever.aretrieve("tea") != []


async def test_async_only_retrievers_work_in_sync_form() -> None:
    async def search(query: str) -> list[str]:
        await asyncio.sleep(0)
        return [f"Found for {query}"]

    retriever = MultiQueryRetriever(as_retriever(search), lambda prompt: "green tea", top_k=2)
    texts = [result.node.text for result in retriever.retrieve("tea")]
    assert texts == ["Found for tea", "Found for green tea"]


class Batching:
    """A retriever with a batch method that records its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def retrieve(self, query: str, **options: Any) -> list[ScoredNode]:
        self.calls.append((query, options))
        return []

    async def aretrieve(self, query: str, **options: Any) -> list[ScoredNode]:
        return self.retrieve(query, **options)

    def batch(self, queries: Sequence[str], **options: Any) -> list[list[ScoredNode]]:
        self.calls.append((list(queries), options))
        return [[] for _ in queries]

    async def abatch(self, queries: Sequence[str], **options: Any) -> list[list[ScoredNode]]:
        return self.batch(queries, **options)


def test_find_all_calls_a_batch_method_once() -> None:
    batching = Batching()
    options = {"top_k": 2, "filters": {"lang": "zh"}}

    def find(queries: list[str]) -> Strategy:
        return partial(find_all, batching, queries, 2, {"lang": "zh"})

    assert both(find(["a", "b"])) == [[[], []]] * 2
    assert both(find(["a"])) == [[[]]] * 2
    assert batching.calls == [(["a", "b"], options)] * 2 + [("a", options)] * 2
    assert both(find([])) == [[], []]


async def streamed() -> str:
    first = await ask(LLM(Pieces(), "pieces"), "not streamed")
    return first + await ask(LLM(Pieces(), "pieces"), "green tea", streamed=True)


def test_streamed_call_yields_its_texts() -> None:
    pieces = stream(streamed)
    assert [next(pieces), next(pieces)] == ["green ", "tea "]
    with pytest.raises(StopIteration) as end:
        next(pieces)
    assert end.value.value == "not streamed green tea "

    async def read() -> list[str]:
        return [piece async for piece in astream(streamed)]

    assert asyncio.run(read()) == ["green ", "tea "]
    assert both(streamed) == ["not streamed green tea "] * 2


def test_closing_a_stream_ends_the_strategy() -> None:
    ended: list[str] = []

    async def strategy() -> str:
        try:
            return await ask(LLM(Pieces(), "pieces"), "a b c", streamed=True)
        finally:
            ended.append("strategy")

    pieces = stream(strategy)
    next(pieces)
    pieces.close()

    async def read() -> None:
        texts = astream(strategy)
        await anext(texts)
        await texts.aclose()

    asyncio.run(read())
    assert ended == ["strategy", "strategy"]


@DRIVERS
def test_spans_of_nested_strategies_nest(library: NodeGraph, drive: Any) -> None:
    async def part(query: str) -> Any:
        with start_span("part", query=query):
            await ask(ECHO, query)
            return await find_all(Retriever(library, "ROOT"), [query])

    async def strategy() -> Any:
        with start_span("whole"):
            return await All([partial(part, "tea"), partial(part, "river")])

    with trace() as traced:
        drive(strategy)
    (whole,) = traced.children
    parts = {s.attributes["query"]: [inner.name for inner in s.children] for s in whole.children}
    assert parts == {"tea": ["ask", "search"], "river": ["ask", "search"]}
    asked = whole.children[0].children[0].attributes
    assert (asked["model"], asked["prompt"].upper()) == ("echo", asked["answer"])


def test_stream_keeps_spans_of_its_reader_apart() -> None:
    with trace() as traced:
        pieces = stream(streamed)
        next(pieces)
        with start_span("mine"):
            next(pieces)
        list(pieces)
    assert [span.name for span in traced.children] == ["ask", "ask", "mine"]
    assert not traced.children[2].children
