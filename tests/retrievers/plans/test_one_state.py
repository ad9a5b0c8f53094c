"""What a composite answers is of one state of the graph, also if it changes at each step."""

import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from moving_documents import COMPOSITES, QUERY, WAYS, Answer, documents, moving_graph, shown

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import MultiQueryRetriever, RerankRetriever, Retriever, RetrieverProtocol

LIMIT = 300.0


class Mover:
    """Moves all documents after each of the first searches, in a thread of its own.

    While a graph is held the thread waits, and the search does not wait for it.
    """

    def __init__(self, graph: NodeGraph, moves: int) -> None:
        self.graph = graph
        self.left = moves
        self.state = 0
        self.moved = 0
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def around(self, retriever: RetrieverProtocol) -> RetrieverProtocol:
        return Moving(retriever, self)

    def move(self) -> None:
        with self._lock:
            if not self.left:
                return
            self.left -= 1
            self.state += 1
            thread = threading.Thread(target=self._write, args=(self.state,), daemon=True)
        self._threads.append(thread)
        thread.start()
        thread.join(0.02)

    def _write(self, state: int) -> None:
        self.graph.update(documents(state))
        self.moved += 1

    def finish(self) -> None:
        for thread in self._threads:
            thread.join(LIMIT)
            assert not thread.is_alive()


class Moving:
    """A retriever after which documents move."""

    takes_filters = True

    def __init__(self, inner: RetrieverProtocol, mover: Mover) -> None:
        self.inner, self.mover = inner, mover

    def retrieve(self, query: str, **options: Any) -> Any:
        results = self.inner.retrieve(query, **options)
        self.mover.move()
        return results

    async def aretrieve(self, query: str, **options: Any) -> Any:
        results = await self.inner.aretrieve(query, **options)
        self.mover.move()
        return results


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moves", [1, 2, 9])
@pytest.mark.parametrize("name", COMPOSITES)
def test_an_answer_is_of_one_state_though_documents_move(name: str, moves: int, way: str) -> None:
    graph = moving_graph()
    mover = Mover(graph, moves)
    answer = shown(WAYS[way](COMPOSITES[name](graph, mover.around)))
    mover.finish()
    assert mover.moved
    assert answer
    assert answer in [of_a_state(name, way, state) for state in range(mover.state + 1)]


@cache
def of_a_state(name: str, way: str, state: int) -> Answer:
    """Return what a composite answers on a graph that has only been in one state."""
    return shown(WAYS[way](COMPOSITES[name](moving_graph(state), lambda inner: inner)))


def test_models_are_not_paid_again_for_the_same() -> None:
    graph, prompts = moving_graph(), []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Which tea has milk?"

    mover = Mover(graph, 9)
    MultiQueryRetriever(mover.around(Retriever(graph, "line")), model).retrieve(QUERY)
    mover.finish()
    assert len(prompts) == 1


def test_an_answer_that_is_the_same_for_two_is_asked_for_twice() -> None:
    """What is asked again since it could not be read gets another answer, in each run."""
    graph, prompts = moving_graph(), []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return f"Which tea has milk {len(prompts)}?"

    mover = Mover(graph, 2)
    retriever = MultiQueryRetriever(mover.around(Retriever(graph, "line")), model)
    results = retriever.batch([QUERY, QUERY])
    mover.finish()
    variants = {match.query for one in results for hit in one for match in hit.evidence}
    assert variants <= {QUERY, "Which tea has milk 1?", "Which tea has milk 2?"}
    assert len(prompts) <= 2


@pytest.mark.parametrize("way", ["sync", "async"])
def test_no_writer_waits_for_a_model(way: str) -> None:
    graph = moving_graph()
    mover = Mover(graph, 9)
    waited: list[bool] = []

    def scores(query: str, passages: list[str]) -> list[float]:
        writer = threading.Thread(target=lambda: graph.add("Another text."), daemon=True)
        writer.start()
        writer.join(LIMIT)
        waited.append(writer.is_alive())
        return [float(len(passage)) for passage in passages]

    lines = mover.around(Retriever(graph, "line"))
    retriever = RerankRetriever(lines, "ModuleReranker", model=scores)
    answer = shown(WAYS[way](retriever))
    mover.finish()
    assert answer
    assert len(waited) > 1  # the passages changed, so that the model read them again
    assert not any(waited)


def test_what_a_retrieval_builds_does_not_make_it_run_again() -> None:
    searches: list[str] = []

    class Counted(Retriever):
        def retrieve(self, query: str, **options: Any) -> Any:
            searches.append(query)
            return super().retrieve(query, **options)

    graph = moving_graph()
    composite = COMPOSITES["fuse"](graph, lambda inner: inner)
    composite.retrievers = [Counted(graph, "line"), Counted(graph, "word")]  # type: ignore[attr-defined]
    composite.retrieve(QUERY)
    assert searches == [QUERY, QUERY]


def test_a_node_that_was_removed_meanwhile_is_no_error() -> None:
    graph = moving_graph()

    class Removing(Moving):
        def retrieve(self, query: str, **options: Any) -> Any:
            results = self.inner.retrieve(query, **options)
            if "a" in [node.id for node in graph.nodes("ROOT")]:
                graph.remove("a")
            return results

    mover = Mover(graph, 0)
    removing: Callable[[RetrieverProtocol], RetrieverProtocol] = partial(Removing, mover=mover)
    answer = shown(WAYS["sync"](COMPOSITES["rerank"](graph, removing)))
    assert answer
    assert not any("A0" in text and i.startswith("a") for i, text, *_ in answer)
    assert answer == shown(WAYS["sync"](COMPOSITES["rerank"](graph, lambda inner: inner)))


def test_an_error_that_no_change_explains_is_raised_at_once() -> None:
    calls: list[str] = []

    class Failing:
        def retrieve(self, query: str, **options: Any) -> Any:
            calls.append(query)
            raise LookupError("nothing there")

        async def aretrieve(self, query: str, **options: Any) -> Any:
            return self.retrieve(query, **options)

    with pytest.raises(LookupError, match="nothing there"):
        RerankRetriever(Failing(), "longest_first").retrieve(QUERY)
    assert calls == [QUERY]


def test_answers_from_a_file_that_another_process_writes_to(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = moving_graph(store=path)
    with NodeGraph(store=path, progress=False) as other:
        mover = Mover(graph, 5)
        mover.graph = other
        answer = shown(WAYS["sync"](COMPOSITES["merge"](graph, mover.around)))
        mover.finish()
        truths = []
        for state in range(mover.state + 1):
            merge = COMPOSITES["merge"](moving_graph(state), lambda inner: inner)
            truths.append(shown(WAYS["sync"](merge)))
        assert answer in truths
    graph.close()
