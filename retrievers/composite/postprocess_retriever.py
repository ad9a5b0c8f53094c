"""A base class for retrievers that convert the hits of another retriever into results."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever, check_in_graph
from ..plans.effects import fetch_until_full, find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..results import Results, without_removed
from ..retrieval_conditions import HitConditions
from ..token_budget import without_budget
from ..tracing import start_span

_OVER_FETCH = 4  # retrieved hits per result


class PostprocessRetriever(BaseRetriever):
    """A base class for retrievers that convert the hits of another retriever into results.

    A subclass implements ``postprocess``. The hits must be nodes of a graph, unlike documents of
    other frameworks.

    Args:
        inner: Any retriever.
        top_k: The maximum number of results. If None, all hits of the inner retriever are
            converted.
    """

    name = "postprocess"
    fetches_on = False
    """Whether more hits are retrieved if they yield fewer than ``top_k`` results."""

    takes_documents = False
    """Whether hits may be documents of other frameworks, which belong to no graph."""

    def __init__(self, inner: RetrieverLike, *, top_k: int | None = None) -> None:
        super().__init__(top_k=top_k)
        self.inner = as_retriever(inner, "inner")
        if not self.takes_documents:
            check_in_graph(self.inner, type(self).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, top_k={self.top_k})"

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Convert hits into at most ``limit`` results.

        Args:
            hits: The hits, best first.
            limit: The maximum number of results. If None, all are returned.
            conditions: A function that returns the conditions that replacements of hits must meet.
        """
        raise NotImplementedError

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        conditions = HitConditions(filters)
        hit_counts: dict[str, int] = {}

        async def select(
            queries: Sequence[str], hits: Sequence[Results]
        ) -> list[tuple[Results, bool]]:
            for query, found in zip(queries, hits, strict=True):
                hit_counts[query] = len(found)
            results = await Do(
                lambda: [self.postprocess(without_removed(h), limit, conditions) for h in hits]
            )
            return [(created, limit is not None and len(created) < limit) for created in results]

        with start_span(self.name, queries=queries) as span, without_budget():
            if limit is None:
                hits = await find_all(self.inner, queries, None, filters)
                results = [created for created, _ in await select(queries, hits)]
            else:
                fetch_k = _OVER_FETCH * limit
                maximum = sys.maxsize if self.fetches_on and self.is_free else fetch_k
                options = {"fetch_k": fetch_k, "max_fetch_k": maximum}
                results = await fetch_until_full(
                    self.inner, queries, select, filters=filters, **options
                )
            span.attributes["hits"] = sum(hit_counts[query] for query in queries)
            span.set_results(results)
        return results
