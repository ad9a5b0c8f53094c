"""A retriever of whole documents, which returns windows of text if a token budget is given."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import Self

from ...nodegraph.graph import NodeGraph
from ..base_retriever import BaseRetriever, Phrases
from ..call import Call
from ..filters import Filters
from ..plans.effects import find_all
from ..protocols import RetrieverProtocol
from ..results import Results
from ..validation import UNBOUNDED
from .default_retriever import DefaultRetriever


class DocumentRetriever(BaseRetriever):
    """A retriever of whole documents, which returns windows of text if a token budget is given.

    Without a budget, the inner retriever is used. With ``max_tokens``, the default search of the
    graph returns windows, so that long documents are searched by passage. The group of passages is
    created at the first search with a budget.

    Args:
        inner: The retriever of whole documents.
        graph: The graph that contains the documents.
        options: Keyword arguments for the default search of passages, such as ``index``.
    """

    name = "documents"

    has_windows = True

    def __init__(
        self, inner: RetrieverProtocol, graph: NodeGraph, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(top_k=inner.top_k if isinstance(inner, BaseRetriever) else None)
        self.inner = inner
        self.graph = graph
        self.options = dict(options or {})
        self._passages: DefaultRetriever | None = None

    @property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest score of documents.

        The scores of windows are between 0 and 1.
        """
        inner: tuple[float, float] = getattr(self.inner, "score_range", UNBOUNDED)
        return inner

    def __repr__(self) -> str:
        return f"DocumentRetriever({self.inner!r})"

    def build(self) -> None:
        """Build the groups, vectors and indexes that the first search requires."""
        if isinstance(self.inner, DefaultRetriever):
            self.inner.build()

    def with_phrases(self, phrases: Phrases) -> Self:
        """Return a copy that treats quoted phrases differently."""
        return super().with_phrases(phrases).with_option(phrases=phrases)

    def with_weights(self, weights: Mapping[str, float]) -> Self:
        """Return a copy with different weights of words and vectors.

        The weights also apply to windows of text.
        """
        return super().with_weights(weights).with_option(weights=weights)

    def with_option(self, **option: Any) -> Self:
        """Return a copy with a different option for the search of passages."""
        other = copy.copy(self)
        other.options = {**self.options, **option}
        other._passages = None
        return other

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the documents for each query, or windows of text if there is a token budget."""
        call = Call.begin(filters)
        if call.budget is None:
            return await find_all(self.inner, queries, limit, filters)
        graph = await self.searched_graph(call)
        passages = self._passages
        if passages is None or passages.graph is not graph:
            passages = DefaultRetriever(graph, **self.options)
            self._passages = passages
        return await find_all(passages, queries, limit, filters)

    async def searched_graph(self, call: Call) -> NodeGraph:
        """Return the graph whose passages are searched if there is a token budget."""
        return self.graph
