"""Fixtures of the answers' tests: a corpus in two languages, scripted models, four ways to ask."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import QaRetriever, Retriever
from nodekin.retrievers.answers.answer import Answer
from nodekin.retrievers.answers.engine import QueryEngine

Reply = str | Exception
_NUMBERED = re.compile(r"<passage>\n\[(\d+)\]")


class Scripted:
    """A model that answers by a function of the prompt, complete or in chunks."""

    name = "scripted"

    def __init__(self, reply: Callable[[str], Reply], chunk: int = 3) -> None:
        self.reply, self.chunk = reply, chunk
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        reply = self.reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def acomplete(self, prompt: str) -> str:
        return self.complete(prompt)

    def stream(self, prompt: str) -> Iterator[str]:
        text = self.complete(prompt)
        for at in range(0, len(text), self.chunk):
            yield text[at : at + self.chunk]

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        for chunk in self.stream(prompt):
            await asyncio.sleep(0)
            yield chunk


class Breaking(Scripted):
    """A model that writes a few chunks and breaks off."""

    def complete(self, prompt: str) -> str:
        super().complete(prompt)
        raise RuntimeError("the line is dead")

    def stream(self, prompt: str) -> Iterator[str]:
        self.prompts.append(prompt)
        yield "The Nile "
        yield "is 6,6"
        raise RuntimeError("the line is dead")


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def breaking() -> Breaking:
    return Breaking(lambda _: "")


@pytest.fixture
def rivers() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document(
                "The Nile is 6,650 km long.\nThe Nile flows north.\nTea is a drink.",
                {"title": "Nile", "lang": "en"},
                id="nile",
            ),
            Document("The Rhine is 1,230 km long.", {"title": "Rhine", "lang": "en"}, id="rhine"),
            Document(
                "长江全长6300公里。\n长江流入东海。", {"title": "长江", "lang": "zh"}, id="yangtze"
            ),
        ]
    )
    graph.create_node_group("line", str.splitlines)
    return graph


@pytest.fixture
def lines(rivers: NodeGraph) -> Retriever:
    return Retriever(rivers, "line", "bm25")


@pytest.fixture
def qa() -> QaRetriever:
    pairs = {"What is tea?": "A drink.", "茶是什么？": "一种饮品。", "Who drinks tea?": "Many."}
    graph = NodeGraph(progress=False)
    graph.add(Document("About tea", id="tea"))
    graph.create_node_group("qa", lambda _: [Node(q, {"answer": pairs[q]}) for q in pairs])
    return QaRetriever(graph, "qa")


@pytest.fixture
def four_ways() -> Callable[..., list[Answer]]:
    """Ask in all four ways, and check that the streamed text is the answer's text."""

    def ask(engine: QueryEngine, question: str, **options: Any) -> list[Answer]:
        async def ask_async() -> list[Answer]:
            stream = engine.astream(question, **options)
            assert "".join([text async for text in stream]) == stream.answer.text
            return [await engine.aquery(question, **options), stream.answer]

        stream = engine.stream(question, **options)
        assert "".join(stream) == stream.answer.text
        return [engine.query(question, **options), stream.answer, *asyncio.run(ask_async())]

    return ask


@pytest.fixture
def numbers_in() -> Callable[[str], list[int]]:
    """Return the numbers of the passages that a prompt shows."""
    return lambda prompt: [int(number) for number in _NUMBERED.findall(prompt)]
