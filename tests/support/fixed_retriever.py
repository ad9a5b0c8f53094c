"""A retriever that returns fixed results, for testing retrievers that use other retrievers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from nodekin.nodegraph import Node
from nodekin.retrievers import Evidence, ScoredNode
from nodekin.retrievers.tracing import start_span


class FixedRetriever:
    """A retriever that returns the same results for every query, and records its calls.

    Blank queries have no results.
    """

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
    """A retriever that calls a function with the query.

    Async calls run the function in a thread.
    """

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
        inner: The retriever that searches for all other queries.
        fails: A word that failing queries contain, or a function that returns whether a query
            fails. If empty, all queries fail.
        error: The exception to raise.
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
    """A retriever that searches until it is cancelled. Each search releases ``started``."""

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
    """Convert nodes to results with evidence. The default scores are n, n-1, ..., 1."""
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
    """Return a retriever that always returns the given nodes, with scores as in ``scored``."""
    return FixedRetriever(scored(nodes, scores))


def candidates(*texts: str) -> list[ScoredNode]:
    """Return results with the given texts and the scores 10, 9, 8 and so on, to test rerankers."""
    nodes = [Node(text, id=f"n{place}") for place, text in enumerate(texts)]
    return scored(nodes, [10.0 - place for place in range(len(nodes))], "bm25")


def passage(text: str, **metadata: Any) -> ScoredNode:
    """Return a result that has no evidence."""
    return ScoredNode(Node(text, metadata), 1.0)
