"""A base class for retrievers that convert the results of another retriever."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..base_retriever import BaseRetriever
from ..call import Call, limit_tokens
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever, check_in_graph
from ..plans.effects import fetch_until_full, find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..results import Results, without_removed
from ..retrieval_conditions import HitConditions
from ..tracing import start_span

_OVER_FETCH = 4  # the number of candidates that are retrieved per result


class PostprocessRetriever(BaseRetriever):
    """A base class for retrievers that convert the results of another retriever.

    A subclass implements ``postprocess``. The results of the inner retriever must be nodes of a
    graph; documents of other frameworks are not supported by default.

    Args:
        inner: Any retriever.
        top_k: The maximum number of results. If None, all results of the inner retriever are
            converted.
    """

    name = "postprocess"
    fetches_on = False
    """Whether more candidates are retrieved if fewer than ``top_k`` results remain."""

    takes_documents = False
    """Whether documents of other frameworks, which do not belong to a graph, are supported."""

    def __init__(self, inner: RetrieverLike, *, top_k: int | None = None) -> None:
        super().__init__(top_k=top_k)
        self.inner = as_retriever(inner, "inner")
        if not self.takes_documents:
            check_in_graph(self.inner, type(self).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, top_k={self.top_k})"

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Convert candidates into at most ``limit`` results.

        Args:
            hits: The results of the inner retriever, best first.
            limit: The maximum number of results. If None, all results are returned.
            conditions: A function that returns the conditions that replacements of these results
                must meet.
        """
        raise NotImplementedError

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        conditions = HitConditions(Call.begin(filters))
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

        with start_span(self.name, queries=queries) as span, limit_tokens(None):
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
