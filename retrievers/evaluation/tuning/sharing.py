"""Open many set-ups on one graph, so that what they have in common is done once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....nodegraph.graph import NodeGraph
from ....nodegraph.node import Node
from ...base_retriever import BaseRetriever
from ...filters import Filters
from ...protocols import RerankerProtocol, by_score
from ...rerankers.reranker import Reranker
from ...results import Results, ScoredNode
from ..setups.opening import SetupOpener
from ..setups.setup_file import SetupFile


class SharingOpener(SetupOpener):
    """Open set-ups whose inner retrievers are shared where they are declared alike.

    What an inner retriever returned for a question it returns again without searching, and what a
    reranking model scored is not scored again. Groups are built once, texts embedded once: there
    is one graph. The set-up itself searches by the code that is deployed.

    Args:
        graph: The graph. Groups are declared on it.
        models: Reranking models by name.

    Attributes:
        model_calls: How often reranking models were called.
        failure: What one of them raised last.
    """

    def __init__(self, graph: NodeGraph, models: Mapping[str, Any] | None = None) -> None:
        super().__init__(SetupFile({"default": {"type": "DefaultRetriever"}}), graph, models)
        self.model_calls = 0
        self.failure: Exception | None = None
        self._retrievers: dict[str, CachedRetriever] = {}
        self._scores: dict[str, dict[tuple[str, str], float]] = {}
        self._nodes: dict[str, Node] = {}
        self._outermost = True

    def open_file(self, file: SetupFile) -> BaseRetriever:
        """Return the retriever of a file's default set-up."""
        self.declare(file.groups)
        self.file = file
        self._outermost = True
        return self.open_retriever()

    def retriever(self, table: Mapping[str, Any] | str, where: str) -> BaseRetriever:
        """Return the retriever of a table. One within another is shared."""
        outermost, self._outermost = self._outermost, False
        if outermost:
            return super().retriever(table, where)
        key = json.dumps(table, sort_keys=True)
        if key not in self._retrievers:
            self._retrievers[key] = CachedRetriever(super().retriever(table, where), self._nodes)
        return self._retrievers[key]

    def reranker(self, table: Mapping[str, Any]) -> Reranker:
        """Return a reranker. One that asks a model scores each passage of a question once."""
        reranker = super().reranker(table)
        if reranker.is_filter or "model" not in table:
            return reranker
        scores = self._scores.setdefault(json.dumps(table["model"]), {})
        return Reranker(
            CachedReranker(reranker.reranker, scores, self),
            top_k=reranker.top_k,
            cut_off=reranker.cut_off,
            relative_cut=reranker.relative_cut,
        )


class CachedRetriever(BaseRetriever):
    """Return what another retriever returned for a query before. Evidence is left out.

    Args:
        inner: The other one.
        nodes: The nodes that were returned, by id, so that each is in memory once.
    """

    def __init__(self, inner: BaseRetriever, nodes: dict[str, Node]) -> None:
        super().__init__()
        self.inner = inner
        self.top_k = getattr(inner, "top_k", None)
        self._nodes = nodes
        self._results: dict[tuple[str, int | None], Results] = {}

    def __repr__(self) -> str:
        return f"CachedRetriever({self.inner!r})"

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        return self.batch([query], top_k=top_k, filters=filters)[0]

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query. Those that are new are searched for together."""
        if filters is not None:
            return self.inner.batch(queries, top_k=top_k, filters=filters)
        new = [q for q in dict.fromkeys(queries) if (q, top_k) not in self._results]
        if new:
            for query, results in zip(new, self.inner.batch(new, top_k=top_k), strict=True):
                self._results[query, top_k] = [
                    ScoredNode(self._nodes.setdefault(r.node.id, r.node), r.score) for r in results
                ]
        return [list(self._results[query, top_k]) for query in queries]


class CachedReranker:
    """Rerank by a model that scores each passage by itself. None twice for a question.

    Args:
        inner: What asks the model.
        scores: The scores, by question and text.
        owner: Whose model calls are counted.
    """

    def __init__(
        self,
        inner: RerankerProtocol,
        scores: dict[tuple[str, str], float],
        owner: SharingOpener,
    ) -> None:
        self.name = inner.name
        self.inner = inner
        self.owner = owner
        self._scores = scores

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the results by the model's scores."""
        new = [r for r in results if (query, r.node.searched_text) not in self._scores]
        if new:
            self.owner.model_calls += 1
            try:
                scored = self.inner.rerank(new, query)
            except Exception as error:
                self.owner.failure = error  # which a deployed set-up would survive unordered
                raise
            for result in scored:
                self._scores[query, result.node.searched_text] = result.score
        again = [
            replace(result, score=self._scores[query, result.node.searched_text])
            for result in results
        ]
        return by_score(again)
