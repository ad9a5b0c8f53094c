"""Search for the mean of the vectors of several texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.embedder_adapters import Vectors
from ..filters import Filters
from ..plans.plan import Effect
from ..results import Results, ScoredNode
from ..retriever import Retriever

Pairs = list[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class FindMean(Effect[list[Results]]):
    """Search a retriever that compares embeddings for the mean of each query's texts; an effect.

    Attributes:
        retriever: The retriever.
        queries: The queries.
        texts: What is averaged for each query: the query itself, embedded as a query, and
            passages.
        weight: The weight of the query itself; each passage has 1.
        top_k: How many results of each query.
        filters: Conditions, checked before ranking.
    """

    retriever: Retriever
    queries: Sequence[str]
    texts: Sequence[Sequence[str]]
    weight: float = 1.0
    top_k: int | None = None
    filters: Filters | None = None

    def run(self) -> list[list[ScoredNode]]:
        """Return the results of each query; of a blank one what meets the filters."""
        pairs = self._pairs()

        def means(graph: NodeGraph, key: str) -> Vectors:
            vectors = graph.embeddings.query_vectors(_queries(pairs), key)
            return self._means(graph, key, pairs, vectors)

        names = [mean_name(*pair) for pair in pairs]
        results = self.retriever.batch_vectors(names, means, top_k=self.top_k, filters=self.filters)
        blank = self.retriever.batch(self._blank(), top_k=self.top_k, filters=self.filters)
        return self._by_query(results, blank)

    async def arun(self) -> list[list[ScoredNode]]:
        """Return the same without blocking the event loop."""
        pairs = self._pairs()

        async def means(graph: NodeGraph, key: str) -> Vectors:
            vectors = await graph.embeddings.aquery_vectors(_queries(pairs), key)
            return await asyncio.to_thread(self._means, graph, key, pairs, vectors)

        names = [mean_name(*pair) for pair in pairs]
        results = await self.retriever.abatch_vectors(
            names, means, top_k=self.top_k, filters=self.filters
        )
        blank = await self.retriever.abatch(self._blank(), top_k=self.top_k, filters=self.filters)
        return self._by_query(results, blank)

    def _pairs(self) -> Pairs:
        """Return the queries that are not blank, and their texts."""
        pairs = zip(self.queries, self.texts, strict=True)
        return [(query, texts) for query, texts in pairs if query.strip()]

    def _means(self, graph: NodeGraph, key: str, pairs: Pairs, query_vectors: Vectors) -> Vectors:
        """Return the mean of the unit vectors of each query's texts, (queries, dimension)."""
        import numpy as np

        by_query = dict(zip(_queries(pairs), query_vectors, strict=True))
        texts = dict.fromkeys(text for query, texts in pairs for text in texts if text != query)
        vectors = graph.embeddings.embedder(key).passages(list(texts)) if texts else ()
        by_text = dict(zip(texts, vectors, strict=True))

        def unit(query: str, text: str) -> Any:
            vector = by_query[text] if text == query else by_text[text]
            length = float(np.linalg.norm(vector))
            weight = self.weight if text == query else 1.0
            return weight * (vector / length if length else vector)

        means = [sum(unit(query, text) for text in texts) for query, texts in pairs]
        return np.array(means, np.float32)

    def _blank(self) -> list[str]:
        return [query for query in self.queries if not query.strip()]

    def _by_query(
        self, results: Sequence[list[ScoredNode]], blank: Sequence[list[ScoredNode]]
    ) -> list[list[ScoredNode]]:
        """Return the results in the order of the queries."""
        rest, rest_of_blank = iter(results), iter(blank)
        return [next(rest if query.strip() else rest_of_blank) for query in self.queries]


def mean_name(query: str, texts: Sequence[str]) -> str:
    """Return what evidence calls a mean: the passages, or the query if there are none."""
    return "\n".join(text for text in texts if text != query) or query


def _queries(pairs: Pairs) -> list[str]:
    """Return the queries that are themselves among their texts."""
    return [query for query, texts in pairs if query in texts]
