"""Plans: the same in threads and in an event loop, streamed or not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from nodekin.nodegraph import LLM, ModelError, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode, trace
from nodekin.retrievers.plans.effects import Ask, Each, Find, run_in_threads
from nodekin.retrievers.plans.plan import Plan, arun, astream, run, stream
from nodekin.retrievers.tracing import start_span

ECHO = LLM(lambda prompt: prompt.upper(), "echo")


def both(make: Any) -> list[Any]:
    """Return what a plan gives in a thread and in an event loop."""
    return [run(make()), asyncio.run(arun(make()))]


class Pieces:
    """A model that answers piece by piece."""

    def complete(self, prompt: str) -> str:
        return "".join(self.stream(prompt))

    def stream(self, prompt: str) -> Iterator[str]:
        yield from (f"{word} " for word in prompt.split())

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        for piece in self.stream(prompt):
            yield piece


class Batching:
    """A retriever that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def retrieve(self, query: str, **settings: Any) -> list[ScoredNode]:
        self.asked.append((query, settings))
        return []

    async def aretrieve(self, query: str, **settings: Any) -> list[ScoredNode]:
        return self.retrieve(query, **settings)

    def batch(self, queries: Sequence[str], **settings: Any) -> list[list[ScoredNode]]:
        self.asked.append((list(queries), settings))
        return [[] for _ in queries]

    async def abatch(self, queries: Sequence[str], **settings: Any) -> list[list[ScoredNode]]:
        return self.batch(queries, **settings)


def test_a_plan_is_sent_what_comes_of_its_effects() -> None:
    def plan() -> Plan[str]:
        first = yield Ask(ECHO, "tea")
        second = yield Ask(ECHO, f"{first} and milk")
        return f"{second}!"

    assert both(plan) == ["TEA AND MILK!"] * 2


def test_a_plan_may_want_nothing() -> None:
    def plan() -> Plan[int]:
        return 7
        yield

    assert both(plan) == [7, 7]


def test_errors_are_raised_where_the_plan_waits() -> None:
    def plan() -> Plan[str]:
        try:
            yield Ask(LLM(lambda prompt: str(1 / 0), "broken"), "tea")
        except ModelError as error:
            answer: str = yield Ask(ECHO, "spare")
            return f"{answer} after {type(error.__cause__).__name__}"
        return "never"

    assert both(plan) == ["SPARE after ZeroDivisionError"] * 2


def test_errors_that_a_plan_does_not_catch_leave_it() -> None:
    def plan() -> Plan[str]:
        yield Ask(LLM(lambda prompt: str(1 / 0), "broken"), "tea")
        return "never"

    with pytest.raises(ModelError, match="broken"):
        run(plan())
    with pytest.raises(ModelError, match="broken"):
        asyncio.run(arun(plan()))


def test_each_gives_results_and_exceptions_in_their_places() -> None:
    def one(word: str) -> Plan[str]:
        if word == "bad":
            raise ValueError(word)
        answer: str = yield Ask(ECHO, word)
        return answer

    def plan() -> Plan[list[Any]]:
        done: list[Any] = yield Each([one("a"), one("bad"), one("c")])
        return done

    for done in both(plan):
        assert (done[0], done[2]) == ("A", "C")
        assert isinstance(done[1], ValueError)


def test_plans_are_run_at_once() -> None:
    meet = threading.Barrier(3, timeout=300)  # passed only by three at a time

    def model(prompt: str) -> str:
        meet.wait()
        return prompt

    def one(number: int) -> Plan[str]:
        answer: str = yield Ask(LLM(model, "meeting"), str(number))
        return answer

    def plan() -> Plan[list[str]]:
        done: list[str] = yield Each([one(number) for number in range(3)])
        return done

    assert both(plan) == [["0", "1", "2"]] * 2


def test_several_queries_are_one_batch_where_the_retriever_has_one() -> None:
    batching = Batching()
    settings = {"top_k": 2, "filters": {"lang": "zh"}}

    def plan(queries: list[str]) -> Plan[Any]:
        return (yield Find(batching, queries, 2, {"lang": "zh"}))

    assert both(lambda: plan(["a", "b"])) == [[[], []]] * 2
    assert both(lambda: plan(["a"])) == [[[]]] * 2
    assert batching.asked == [(["a", "b"], settings)] * 2 + [("a", settings)] * 2
    assert both(lambda: plan([])) == [[], []]


def test_a_thread_that_holds_a_graph_waits_for_no_other(library: NodeGraph) -> None:
    threads: list[str] = []

    def work() -> str:
        threads.append(threading.current_thread().name)
        return "done"

    with library.reader.reading("ROOT"):
        assert run_in_threads([work, work]) == ["done", "done"]
    assert threads == [threading.current_thread().name] * 2
    together = threading.Barrier(2, timeout=300)
    run_in_threads([together.wait, together.wait])  # else they would wait for each other


def test_a_model_that_is_late_is_an_error() -> None:
    release = threading.Event()

    def slow(prompt: str) -> str:
        release.wait(300)
        return prompt

    def plan() -> Plan[str]:
        answer: str = yield Ask(LLM(slow, "slow"), "tea", timeout=0.02)
        return answer

    for drive in (run, lambda plan: asyncio.run(_free(plan, release))):
        release.clear()
        with pytest.raises(ModelError, match=r"'slow' did not answer within 0.02 s"):
            drive(plan())
        release.set()


async def _free(plan: Plan[str], release: threading.Event) -> str:
    try:
        return await arun(plan)
    finally:
        release.set()  # the thread ends with the loop


def test_a_model_in_time_answers() -> None:
    def plan() -> Plan[str]:
        answer: str = yield Ask(ECHO, "tea", timeout=300)
        return answer

    assert both(plan) == ["TEA", "TEA"]


def test_a_schema_gives_json_as_text() -> None:
    class Structured:
        def complete(self, prompt: str) -> str:
            return "plain"

        def complete_json(self, prompt: str, schema: Any) -> Any:
            return {"茶": [1, {2}]}  # a set is nothing JSON has

    def plan() -> Plan[str]:
        answer: str = yield Ask(LLM(Structured(), "held"), "tea", {"type": "object"})
        return answer

    assert both(plan) == ['{"茶": [1, "{2}"]}'] * 2


def streamed() -> Plan[str]:
    first = yield Ask(LLM(Pieces(), "pieces"), "not told")
    answer: str = yield Ask(LLM(Pieces(), "pieces"), "green tea", streamed=True)
    return first + answer


def test_what_is_streamed_comes_piece_by_piece() -> None:
    pieces = stream(streamed())
    assert [next(pieces), next(pieces)] == ["green ", "tea "]
    with pytest.raises(StopIteration) as end:
        next(pieces)
    assert end.value.value == "not told green tea "

    async def heard() -> list[str]:
        return [piece async for piece in astream(streamed())]

    assert asyncio.run(heard()) == ["green ", "tea "]
    assert both(streamed) == ["not told green tea "] * 2


def test_who_stops_listening_ends_the_plan() -> None:
    ended: list[str] = []

    def plan() -> Plan[str]:
        try:
            answer: str = yield Ask(LLM(Pieces(), "pieces"), "a b c", streamed=True)
            return answer
        finally:
            ended.append("plan")

    pieces = stream(plan())
    next(pieces)
    pieces.close()

    async def heard() -> None:
        listening = astream(plan())
        await listening.__anext__()
        await listening.aclose()  # type: ignore[attr-defined]

    asyncio.run(heard())
    assert ended == ["plan", "plan"]


def test_a_failing_stream_raises_to_who_listens() -> None:
    class Breaks(Pieces):
        def stream(self, prompt: str) -> Iterator[str]:
            yield "half"
            raise ConnectionError("gone")

    def plan() -> Plan[str]:
        answer: str = yield Ask(LLM(Breaks(), "breaks"), "tea", streamed=True)
        return answer

    pieces = stream(plan())
    assert next(pieces) == "half"
    with pytest.raises(ModelError, match="gone"):
        next(pieces)

    async def heard() -> list[str]:
        listening = astream(plan())
        told = [await listening.__anext__()]
        with pytest.raises(ModelError, match="gone"):
            await listening.__anext__()
        return told

    assert asyncio.run(heard()) == ["half"]


def test_a_cancelled_task_ends_the_plan() -> None:
    ended: list[str] = []

    async def never(prompt: str) -> str:
        await asyncio.Event().wait()
        return prompt

    def plan() -> Plan[str]:
        try:
            answer: str = yield Ask(LLM(never, "never"), "tea")
            return answer
        except Exception:
            ended.append("took it for an error")
            raise
        finally:
            ended.append("ended")

    async def cancelled() -> None:
        task = asyncio.create_task(arun(plan()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["ended"]


def test_stages_of_plans_nest(library: NodeGraph) -> None:
    retriever = Retriever(library, "ROOT")

    def part(query: str) -> Plan[Any]:
        with start_span("part", query=query):
            yield Ask(ECHO, query)
            return (yield Find(retriever, [query]))

    def plan() -> Plan[Any]:
        with start_span("whole"):
            return (yield Each([part("tea"), part("river")]))

    for drive in (run, lambda plan: asyncio.run(arun(plan))):
        with trace() as traced:
            drive(plan())
        (whole,) = traced.children
        parts = {
            s.attributes["query"]: [inner.name for inner in s.children] for s in whole.children
        }
        assert parts == {"tea": ["ask", "search"], "river": ["ask", "search"]}
        asked = whole.children[0].children[0].attributes
        assert (asked["model"], asked["prompt"].upper()) == ("echo", asked["answer"])


def test_a_stream_leaves_the_stages_of_its_listener_alone() -> None:
    with trace() as traced:
        pieces = stream(streamed())
        next(pieces)
        with start_span("mine"):
            next(pieces)
        list(pieces)
    assert [each.name for each in traced.children] == ["ask", "ask", "mine"]
    assert not traced.children[2].children
