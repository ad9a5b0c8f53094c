"""A retriever with fixed results, for tests of retrievers around it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from nodekin.nodegraph import Node
from nodekin.retrievers import Evidence, ScoredNode
from nodekin.retrievers.tracing import start_span


class FixedRetriever:
    """Return the same results for every query, none for a blank one; record the calls."""

    def __init__(self, results: Sequence[ScoredNode]) -> None:
        self.results = list(results)
        self.calls: list[tuple[str, int | None, Any]] = []

    @property
    def top_ks(self) -> list[int | None]:
        return [top_k for _, top_k, _ in self.calls]

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Any = None
    ) -> list[ScoredNode]:
        self.calls.append((query, top_k, filters))
        return self.results[:top_k] if query else []

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Any = None
    ) -> list[ScoredNode]:
        await asyncio.sleep(0)
        return self.retrieve(query, top_k=top_k, filters=filters)


class FunctionRetriever:
    """A retriever around a function of the query. Async calls run in a thread."""

    def __init__(self, search: Callable[[str], list[ScoredNode]]) -> None:
        self.search = search

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Any = None
    ) -> list[ScoredNode]:
        return self.search(query)

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Any = None
    ) -> list[ScoredNode]:
        return await asyncio.to_thread(self.search, query)


class FailingRetriever:
    """A retriever that raises an error for some queries.

    Args:
        inner: Searches the other queries.
        fails: A word of the queries, or a function of a query. An empty word: all queries.
        error: The error.
    """

    takes_filters = True

    def __init__(
        self,
        inner: Any,
        fails: str | Callable[[str], bool] = "",
        error: Exception | None = None,
    ) -> None:
        self.inner = inner
        self.fails = fails if callable(fails) else lambda query: fails in query
        self.error = error or RuntimeError("unreachable")

    def retrieve(self, query: str, **options: Any) -> list[ScoredNode]:
        if self.fails(query):
            raise self.error
        results: list[ScoredNode] = self.inner.retrieve(query, **options)
        return results

    async def aretrieve(self, query: str, **options: Any) -> list[ScoredNode]:
        return self.retrieve(query, **options)


class EndlessRetriever:
    """Search until it is cancelled; ``started`` is released by each search."""

    def __init__(self) -> None:
        self.started = asyncio.Semaphore(0)

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        raise NotImplementedError

    async def aretrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        with start_span("work"):
            self.started.release()
            await asyncio.Event().wait()


def scored(
    nodes: Sequence[Node],
    scores: Sequence[float] | None = None,
    similarity: str = "fixed",
    query: str = "q",
) -> list[ScoredNode]:
    """Return nodes as results with evidence; scored n, n-1, ... 1 where no scores are given."""
    scores = range(len(nodes), 0, -1) if scores is None else scores
    return [
        ScoredNode(node, float(score), (Evidence(node, float(score), similarity, query),))
        for node, score in zip(nodes, scores, strict=True)
    ]


def ids(results: Sequence[ScoredNode]) -> list[str]:
    return [result.node.id for result in results]


def texts(results: Sequence[ScoredNode]) -> list[str]:
    return [result.node.text for result in results]


def text_scores(results: Sequence[ScoredNode]) -> list[tuple[str, float]]:
    return [(result.node.text, result.score) for result in results]


def fixed(nodes: Sequence[Node], scores: Sequence[float] | None = None) -> FixedRetriever:
    """Return a retriever of these nodes, scored as ``scored`` does."""
    return FixedRetriever(scored(nodes, scores))


def candidates(*texts: str) -> list[ScoredNode]:
    """Return results of these texts, scored 10, 9, 8 and so on, for a reranker."""
    nodes = [Node(text, id=f"n{place}") for place, text in enumerate(texts)]
    return scored(nodes, [10.0 - place for place in range(len(nodes))], "bm25")


def passage(text: str, **metadata: Any) -> ScoredNode:
    """Return a result without evidence."""
    return ScoredNode(Node(text, metadata), 1.0)
