"""Long work grows with its input, and none of it runs in the thread of an event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args

import pytest
from fixed_retriever import FixedRetriever, passage

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.splitters.chunking import count_tokens
from nodekin.retrievers import FusionRetriever, Prompt, QueryEngine, Retriever
from nodekin.retrievers.answers.context import merge_results
from nodekin.retrievers.answers.settings import AnswerMode
from nodekin.retrievers.strategies.model_prompt import QueryTransform, QueryVariants
from nodekin.retrievers.strategies.transform_retriever import TransformRetriever

QUESTION = "Where does tea grow?"

TEXT = "In place {} tea is dried and rolled by hand, and much of it is sent to other places."


class Length:
    """Counts tokens, and notes how many characters were counted, and in which threads."""

    def __init__(self) -> None:
        self.characters = 0
        self.threads: set[int] = set()

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        self.threads.add(threading.get_ident())
        return count_tokens(text)


def engine(mode: AnswerMode, count: int, length: Length, model: Any) -> QueryEngine:
    retriever = FixedRetriever([passage(TEXT.format(number)) for number in range(count)])
    window = 60 * count if mode in ("stuff", "refine") else 4096
    settings: dict[str, Any] = {"context_window": window, "length": length, "max_calls": 2 * count}
    return QueryEngine(retriever, model, mode, top_k=count, **settings)


@pytest.mark.parametrize("mode", get_args(AnswerMode))
def test_counted_characters_are_linear_in_sources(mode: AnswerMode) -> None:
    counted = []
    for count in (100, 200, 400):
        length = Length()
        answer = engine(mode, count, length, lambda prompt: "It grows in hills [1].").query(
            QUESTION
        )
        assert len(answer.sources) == count
        counted.append(length.characters)
    assert counted[1] <= 2.1 * counted[0]
    assert counted[2] <= 2.1 * counted[1]


def test_only_overlapping_sources_are_compared() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document(" ".join(TEXT.format(number) for number in range(400)), id="tea"))
    graph.create_node_group(
        "part", lambda text: [text[at : at + 90] for at in range(0, 36_000, 60)]
    )
    results = Retriever(graph, "part", top_k=400).retrieve("tea places")
    compared = []

    def has_space(source: Any) -> bool:
        compared.append(source)
        return False

    sources, omitted = merge_results(results, lambda node: "", has_space)
    assert len(sources) + len(omitted) == len(results) == 400
    assert len(compared) <= 4 * len(results)


@pytest.mark.parametrize("mode", get_args(AnswerMode))
async def test_event_loop_thread_counts_no_tokens(mode: AnswerMode) -> None:
    async def model(prompt: str) -> str:
        await asyncio.sleep(0)
        return "It grows in hills [1].\n" * 200

    length = Length()
    answering = engine(mode, 40, length, model)
    length.threads.clear()  # what the constructor checks
    answer = await answering.aquery(QUESTION)
    assert answer.answered
    assert threading.get_ident() not in length.threads


async def test_buffered_stream_lets_other_tasks_run() -> None:
    class Buffered:
        def complete(self, prompt: str) -> str:
            raise AssertionError("it is streamed")

        async def astream(self, prompt: str) -> AsyncIterator[str]:
            for number in range(3_000):
                yield f"word{number} "

    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    pieces, most, before = 0, 0, 0
    async for _ in engine("stuff", 40, Length(), Buffered()).astream(QUESTION):
        pieces = 1 if turns != before else pieces + 1
        before, most = turns, max(most, pieces)
    counting.cancel()
    assert most <= 200


async def test_event_loop_thread_parses_no_answers() -> None:
    threads = []

    class Lines(QueryTransform):
        PROMPT = Prompt("{query}", "{query}", ("query",))

        async def variants(self, query: str) -> QueryVariants:
            def parse(answer: str) -> list[str]:
                threads.append(threading.get_ident())
                return answer.splitlines()

            return QueryVariants(tuple(await self.ask(query, parse)))

    async def model(prompt: str) -> str:
        return "\n".join(f"tea {number}" for number in range(9))

    inner = FixedRetriever([passage(TEXT.format(number)) for number in range(400)])
    results = await TransformRetriever(inner, Lines(model), top_k=400).aretrieve(QUESTION)
    assert len(results) == 400
    assert threads
    assert threading.get_ident() not in threads


class Compared(str):
    """A text that counts how often it is compared or hashed."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Compared.count += 1
        return str.__hash__(self)


@pytest.fixture
def comparisons() -> Iterator[type[Compared]]:
    Compared.count = 0
    yield Compared
    Compared.count = 0


def test_a_fusion_compares_each_result_a_few_times(comparisons: type[Compared]) -> None:
    counts = []
    for count in (200, 400):
        comparisons.count = 0
        nodes = [passage(comparisons(TEXT.format(number))) for number in range(count)]
        branches = [FixedRetriever(nodes), FixedRetriever(nodes[::-1])]
        assert len(FusionRetriever(branches, top_k=count).retrieve(QUESTION)) == count
        counts.append(comparisons.count)
    assert counts[1] <= 2.1 * counts[0] + 10
