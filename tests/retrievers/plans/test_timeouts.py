"""Streams with a time limit: order, errors and endless streams."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.streams import afinish, finish

from nodekin.nodegraph import ModelTimeoutError, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.answers.answer import AnswerError
from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.plans.timeouts import (
    TimeLimitError,
    astream_with_timeout,
    stream_with_timeout,
)


async def all_of(stream: Any) -> list[Any]:
    return [item async for item in stream]


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@pytest.mark.parametrize("seconds", [None, 60])
@pytest.mark.parametrize("error", [KeyError("gone"), TimeoutError("gone")])
def test_errors_follow_earlier_items(seconds: float | None, error: Exception) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise error

    async def abroken() -> AsyncIterator[int]:
        yield 1
        raise error

    async def read() -> None:
        astreamed = astream_with_timeout(abroken, seconds)
        assert await anext(astreamed) == 1
        with pytest.raises(type(error), match="gone"):
            await anext(astreamed)

    streamed = stream_with_timeout(broken, seconds)
    assert next(streamed) == 1
    with pytest.raises(type(error), match="gone"):
        next(streamed)
    asyncio.run(read())


def test_endless_stream_is_abandoned_and_closed() -> None:
    closed = threading.Event()

    def endless() -> Iterator[str]:
        try:
            while True:
                threading.Event().wait(0.001)
                yield "tea"
        finally:
            closed.set()

    with pytest.raises(TimeLimitError):
        list(stream_with_timeout(endless, 0.2))
    assert closed.wait(60)
    closed.clear()
    streamed = stream_with_timeout(endless, 600)
    next(streamed)
    streamed.close()
    assert closed.wait(60)


def test_pending_item_is_canceled_after_the_timeout() -> None:
    cancelled = []

    async def stops() -> AsyncIterator[str]:
        yield "tea"
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    with pytest.raises(TimeLimitError):
        asyncio.run(all_of(astream_with_timeout(stops, 0.2)))
    assert cancelled == [True]


class Stopping:
    """A model whose answer stops after the first words."""

    name = "stopping"

    def __init__(self) -> None:
        self.released = threading.Event()

    def complete(self, prompt: str) -> str:
        self.released.wait()
        return ""

    def stream(self, prompt: str) -> Iterator[str]:
        yield "Tea is"
        self.released.wait()

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        yield "Tea is"
        await asyncio.Event().wait()


def test_timeout_of_engine_ends_streams_of_models() -> None:
    graph = NodeGraph(progress=False)
    graph.add("Tea is a drink.")
    model = Stopping()
    engine = QueryEngine(Retriever(graph, "ROOT"), model, timeout=0.2)
    for ask in (
        lambda: finish(engine.stream("What is tea?")),
        lambda: asyncio.run(finished(engine)),
    ):
        with pytest.raises(AnswerError, match="did not answer within") as caught:
            ask()
        assert caught.value.answer.text == "Tea is"
        assert isinstance(caught.value.__cause__, ModelTimeoutError)
    assert not model.released.is_set()
    model.released.set()


async def finished(engine: QueryEngine) -> Any:
    return await afinish(engine.astream("What is tea?"))
