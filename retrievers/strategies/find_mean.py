"""Search for the mean of several vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...nodegraph import NodeGraph
from ..filters import Filters
from ..retriever import Retriever
from ..scored_node import ScoredNode

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FindMean:
    """Ask a retriever that compares embeddings for the mean of each query's forms.

    Attributes:
        retriever: The retriever.
        queries: The queries.
        forms: What each is searched for with: itself, embedded as a query, and passages.
        weight: What the query itself counts, beside 1 for each passage.
        top_k: How many results of each query.
        filters: Conditions, checked before ranking.
    """

    retriever: Retriever
    queries: Sequence[str]
    forms: Sequence[Sequence[str]]
    weight: float = 1.0
    top_k: int | None = None
    filters: Filters | None = None

    def do(self) -> list[list[ScoredNode]]:
        """Return the results of each query, in their order; none of a blank one."""
        asked = self._asked()
        found = self.retriever.batch_vectors(
            self._names(asked),
            lambda graph, key: self._means(
                graph, key, asked, graph.embeddings.query_vectors(self._own(asked), key)
            ),
            top_k=self.top_k,
            filters=self.filters,
        )
        return self._spread(asked, found)

    async def ado(self) -> list[list[ScoredNode]]:
        """Return the same without blocking the event loop."""
        asked = self._asked()

        async def means(graph: NodeGraph, key: str) -> Vectors:
            known = await graph.embeddings.aquery_vectors(self._own(asked), key)
            return await asyncio.to_thread(self._means, graph, key, asked, known)

        found = await self.retriever.abatch_vectors(
            self._names(asked), means, top_k=self.top_k, filters=self.filters
        )
        return self._spread(asked, found)

    def _asked(self) -> list[int]:
        return [at for at, query in enumerate(self.queries) if query.strip()]

    def _names(self, asked: Sequence[int]) -> list[str]:
        """Return what evidence calls each search: its passages."""
        return [name_of(self.queries[at], self.forms[at]) for at in asked]

    def _own(self, asked: Sequence[int]) -> list[str]:
        """Return the queries that count themselves."""
        return [self.queries[at] for at in asked if self.queries[at] in self.forms[at]]

    def _means(self, graph: NodeGraph, key: str, asked: Sequence[int], own: Vectors) -> Vectors:
        """Return the mean of the unit vectors of each query, (queries, dimension)."""
        import numpy as np

        known = dict(zip(self._own(asked), own, strict=True))
        passages = [f for at in asked for f in self.forms[at] if f != self.queries[at]]
        texts = list(dict.fromkeys(passages))
        vectors: dict[str, Any] = {}
        if texts:
            made = graph.embeddings.embedder(key).passages(texts)
            vectors.update(zip(texts, made, strict=True))
        means = []
        for at in asked:
            query = self.queries[at]
            parts = [
                self.weight * _unit(known[query]) if form == query else _unit(vectors[form])
                for form in self.forms[at]
            ]
            means.append(np.sum(parts, axis=0))
        return np.array(means, np.float32)

    def _spread(
        self, asked: Sequence[int], found: Sequence[list[ScoredNode]]
    ) -> list[list[ScoredNode]]:
        results: list[list[ScoredNode]] = [[] for _ in self.queries]
        for at, each in zip(asked, found, strict=True):
            results[at] = each
        return results


def name_of(query: str, forms: Sequence[str]) -> str:
    """Return what evidence calls a mean: the passages, or the query where there are none."""
    return "\n".join(each for each in forms if each != query) or query


def _unit(vector: Any) -> Any:
    import numpy as np

    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
