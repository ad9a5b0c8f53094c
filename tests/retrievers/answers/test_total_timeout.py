"""The total timeout of a question: the answer so far is returned."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.fixed_retriever import FixedRetriever, passage
from support.streams import afinish, finish

from nodekin.retrievers.answers.answer import Answer, AnswerError
from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.plans import limits

WORDS = "tea " * 220
TEXTS = [f"T{number} {WORDS}" for number in range(3)]

OVER = "total_timeout=60 s is over"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


ALMOST_OVER, IS_OVER = 59.99, 61.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(limits, "clock", clock)
    return clock


@contextmanager
def waiting() -> Iterator[threading.Event]:
    """An event for which models and searches wait until the block ends."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def engine(model: Any, mode: str = "refine", **options: Any) -> QueryEngine:
    retriever = options.pop("retriever", None) or FixedRetriever([passage(t) for t in TEXTS])
    window = 560 if mode == "refine" else 4096
    settings = {"context_window": window, "num_output": 50, "total_timeout": 60, **options}
    return QueryEngine(retriever, model, mode, **settings)  # type: ignore[arg-type]


async def ask(engine: QueryEngine, way: str) -> Answer:
    question = "What is tea?"
    if way == "sync":
        return await asyncio.to_thread(engine.query, question)
    if way == "async":
        return await engine.aquery(question)
    if way == "stream":
        return await asyncio.to_thread(finish, engine.stream(question))
    return await afinish(engine.astream(question))


@pytest.fixture(params=["sync", "async", "stream", "astream"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_no_call_starts_after_the_total_timeout(clock, way) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 2:
            clock.now = IS_OVER
        return f"Answer {len(asked)} [{len(asked)}]."

    answer = await ask(engine(model), way)
    assert (answer.text, answer.calls, len(asked)) == ("Answer 2 [2].", 2, 2)
    assert answer.notes == (f"[3] failed: {OVER}",)
    clock.now = 0
    asked[:] = ["", "", ""]
    assert (await ask(engine(model), way)).calls == 3  # each call has its own


async def test_timeout_without_an_answer_so_far_raises(clock, way) -> None:
    def model(prompt: str) -> str:
        release.wait()
        return "late"

    class Slow(FixedRetriever):
        def retrieve(self, query: str, **options: Any) -> Any:
            clock.now = ALMOST_OVER
            return super().retrieve(query, **options)

    slow = Slow([passage(text) for text in TEXTS])
    with waiting() as release, pytest.raises(AnswerError, match=OVER) as raised:
        await ask(engine(model, "stuff", retriever=slow), way)
    assert [source.number for source in raised.value.answer.sources] == [1, 2, 3]


async def test_endless_search_raises(way) -> None:
    class Endless(FixedRetriever):
        def retrieve(self, query: str, **options: Any) -> Any:
            release.wait()
            return []

        async def aretrieve(self, query: str, **options: Any) -> Any:
            await asyncio.Event().wait()

    with waiting() as release, pytest.raises(AnswerError, match=r"total_timeout=0\.01 s is over"):
        await ask(engine(str.upper, retriever=Endless([]), total_timeout=0.01), way)
