"""No turn of an event loop is long, whatever is answered from 400 sources.

What is counted is how many functions one turn calls: 10,000 are some 2 ms of the processor. A
fusion of two times 400 calls 30,000, which is why it works in a thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, get_args
from urllib.parse import urlencode

import pytest
from support.fixed_retriever import FixedRetriever, scored

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.node import Node
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever, as_retriever
from nodekin.retrievers.answers.prompts import AnswerMode
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES, make_strategy

COUNT = 400

MOST_CALLS = 15_000

QUESTION = "Where does tea grow?"

TEXT = "In place {} tea is dried and rolled by hand, and much of it is sent to other places."

QUERIES = "\n".join(f"Where does tea number {number} grow?" for number in range(2_600))  # 100 kB

Call = Callable[[], Awaitable[object]]


@pytest.fixture
def longest_turn(monkeypatch: pytest.MonkeyPatch) -> Callable[[Call], Awaitable[int]]:
    """Return a function that counts the function calls in the longest turn of an event loop."""
    run = asyncio.Handle._run  # type: ignore[attr-defined]
    turns = [0]

    def count(frame: object, event: str, argument: object) -> None:
        turns[-1] += event in ("call", "c_call")

    def counting(handle: asyncio.Handle) -> None:
        turns.append(0)
        sys.setprofile(count)
        try:
            run(handle)
        finally:
            sys.setprofile(None)

    async def measured(call: Call) -> int:
        await call()  # builds and imports
        turns[:] = [0]
        monkeypatch.setattr(asyncio.Handle, "_run", counting)
        await call()
        sys.setprofile(None)
        monkeypatch.undo()
        return max(turns)

    return measured


class Model:
    """A model that answers immediately."""

    def __init__(self, text: str) -> None:
        self.text = text

    def complete(self, prompt: str) -> str:
        return self.text

    async def acomplete(self, prompt: str) -> str:
        return self.text

    async def astream(self, prompt: str) -> Any:
        for word in self.text.split(" "):
            yield word + " "


ANSWER = Model("It grows in hills [1].\nConfidence: 80")


def fixed(count: int = COUNT) -> FixedRetriever:
    return FixedRetriever(scored([Node(TEXT.format(n), id=f"n{n}") for n in range(count)]))


def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    lines = [[TEXT.format(f"{n}.{line}") for line in range(2)] for n in range(COUNT)]
    graph.add(Document("\n".join(text), id=f"d{n}") for n, text in enumerate(lines))
    graph.create_node_group("line", str.splitlines)
    return graph


def engine(mode: AnswerMode, model: object = ANSWER) -> QueryEngine:
    window = 60 * COUNT if mode in ("stuff", "refine") else 4096
    return QueryEngine(fixed(), model, mode, top_k=COUNT, context_window=window)


def read(stream: Any) -> Awaitable[object]:
    async def all_of() -> list[object]:
        return [item async for item in stream]

    return all_of()


@pytest.mark.parametrize("mode", get_args(AnswerMode))
async def test_query_engine_modes_have_short_turns(mode: AnswerMode, longest_turn: Any) -> None:
    assert await longest_turn(lambda: engine(mode).aquery(QUESTION)) < MOST_CALLS


async def test_answer_stream_has_short_turns(longest_turn: Any) -> None:
    answering = engine("stuff", Model("Tea grows in hills. " * 5_000))
    assert await longest_turn(lambda: read(answering.astream(QUESTION))) < MOST_CALLS


async def test_retrievers_have_short_turns(longest_turn: Any) -> None:
    reverse, searched = fixed(), graph()
    reverse.results.reverse()
    lines = Retriever(searched, "line", top_k=COUNT)
    retrievers = {
        "fusion": FusionRetriever([fixed(), reverse], top_k=COUNT),
        "fusion of 400": FusionRetriever([fixed(20) for _ in range(COUNT)], top_k=COUNT),
        "retriever": lines,
        "default": as_retriever(searched),
        **{name: make_strategy(name, lines, Model(QUERIES)) for name in STRATEGIES},
    }
    calls: dict[str, Call] = {
        name: lambda retriever=retriever: retriever.aretrieve(QUESTION, top_k=COUNT)  # type: ignore[misc]
        for name, retriever in retrievers.items()
    }
    turns = {name: await longest_turn(call) for name, call in calls.items()}
    assert {name: calls for name, calls in turns.items() if calls >= MOST_CALLS} == {}


async def test_langchain_adapters_have_short_turns(longest_turn: Any) -> None:
    pytest.importorskip("langchain_core")
    from nodekin.adapters.langchain import NodeGraphRetriever, engine_runnable

    answering = engine_runnable(engine("map_rerank"), output="dict")
    assert await longest_turn(lambda: answering.ainvoke(QUESTION)) < MOST_CALLS
    retriever = NodeGraphRetriever(retriever=Retriever(graph(), "line"), k=COUNT)
    assert await longest_turn(lambda: retriever.ainvoke(QUESTION)) < MOST_CALLS


async def test_llama_index_adapters_have_short_turns(longest_turn: Any) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import MockLLM

    from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphRetriever

    answering = NodeGraphQueryEngine(fixed(), MockLLM())
    assert await longest_turn(lambda: answering.aretrieve(QUESTION)) < MOST_CALLS
    retriever = NodeGraphRetriever(Retriever(graph(), "line", top_k=COUNT))
    assert await longest_turn(lambda: retriever.aretrieve(QUESTION)) < MOST_CALLS


@pytest.mark.parametrize(
    ("method", "path", "values"),
    [("POST", "/ask", {"question": QUESTION}), ("GET", "/search", {"query": QUESTION})],
)
async def test_page_requests_have_short_turns(
    method: str, path: str, values: dict[str, str], longest_turn: Any
) -> None:
    pytest.importorskip("nodekin.adapters.serve.page_app")
    from nodekin.adapters.serve.page_app import PageApp

    model = Model("Tea **grows** in hills [1].\n\n" * 1_000)
    app = PageApp(Retriever(graph(), "line", top_k=COUNT), model)
    kind = (b"content-type", b"application/x-www-form-urlencoded")
    headers = [(b"host", b"127.0.0.1"), kind]
    encoded = urlencode(values).encode()
    scope = {"type": "http", "method": method, "scheme": "http", "path": path, "headers": headers}
    scope |= {"query_string": encoded, "root_path": "", "asgi": {"version": "3.0"}}

    async def request() -> None:
        messages = [{"type": "http.request", "body": encoded}]
        sent: list[Any] = []

        async def receive() -> Any:
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        assert sent[0]["status"] == 200
        assert sum(len(message.get("body", b"")) for message in sent) > 1_000

    assert await longest_turn(request) < MOST_CALLS
