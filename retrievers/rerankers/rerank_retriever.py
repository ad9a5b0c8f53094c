"""Retrieve candidates, rerank them and return the best."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from ...nodegraph.errors import check_integer
from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..planned_retriever import PlannedRetriever
from ..plans.effects import fetch_until_full
from ..plans.plan import Do, gather
from ..protocols import RerankerProtocol, RetrieverLike
from ..ranking import cut_scores
from ..results import Evidence, OutputFormat, Results, without_removed
from ..search import MAX_QUERIES
from ..tracing import start_span
from ..validation import check_top_k, choice
from .reranker import Reranker, get_reranker

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]

OVER_FETCH = 4
"""How many candidates are retrieved for each result."""

FAILED = "rerank failed"
"""Begins the ``similarity`` of the first evidence if the reranker failed."""


class RerankRetriever(PlannedRetriever):
    """Retrieve candidates from a retriever, rerank them, and return the best.

    Each result has the reranker's score, and its evidence before the retriever's. If the
    reranker fails, the retriever's results are returned in their own order, and the
    ``similarity`` of their first evidence starts with ``"rerank failed"``.

    Where a ``KeywordFilter``, or another reranker that says ``is_filter``, leaves fewer than
    ``top_k``, more candidates are retrieved until there are ``top_k`` results or no more
    candidates. What costs calls is not repeated by itself: where another reranker (or a model in
    ``inner``) leaves fewer, because of its ``cut_off``, say, the log and a span ``"short"``
    of the trace say how many candidates were tried; ``max_fetch`` lets more be tried.

    Args:
        inner: Any retriever, also a fusion.
        reranker: A ``Reranker``, or its first argument: a name, a function, an object.
        top_k: How many results at most.
        fetch: How many candidates to retrieve from the inner retriever. None for four times
            ``top_k``. Never less than ``top_k``.
        max_fetch: How many candidates to rerank at most where fewer than ``top_k`` are left, four
            times as many in each further attempt. None for all of a filter, ``fetch`` of others.
        on_error: ``"keep"`` the retriever's order if the reranker fails, or ``"raise"``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Settings of a reranker that is given by name: ``model=...``.

    Raises:
        TypeError: If there is no retriever, or no reranker.
        ValueError: If a number is out of range or a choice unknown.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea, tea.", "Green tea is not fermented."])
        >>> model = lambda query, texts: [float("green" in text.lower()) for text in texts]
        >>> inner = Retriever(graph, "ROOT")
        >>> retriever = RerankRetriever(inner, "ModuleReranker", top_k=1, model=model)
        >>> (best,) = retriever("Which tea is green?")
        >>> best.node.text, [match.similarity for match in best.evidence]
        ('Green tea is not fermented.', ['ModuleReranker', 'bm25'])
    """

    def __init__(
        self,
        inner: RetrieverLike,
        reranker: Reranker | str | RerankerProtocol | Callable[..., Any],
        *,
        top_k: int = 6,
        fetch: int | None = None,
        max_fetch: int | None = None,
        on_error: OnError = "keep",
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: object,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k), output_format=output_format, join=join)
        self.inner = as_retriever(inner)
        self.reranker = (
            reranker
            if isinstance(reranker, Reranker) and not settings
            else Reranker(get_reranker(reranker, settings))
        )
        self.fetch = None if fetch is None else check_integer(fetch, "fetch", 1)
        self.max_fetch = None if max_fetch is None else check_integer(max_fetch, "max_fetch", 1)
        self.on_error = choice(on_error, "on_error", ("keep", "raise"))

    def __repr__(self) -> str:
        return f"RerankRetriever({self.inner!r}, {self.reranker!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        assert limit is not None
        fetch = OVER_FETCH * limit if self.fetch is None else max(self.fetch, limit)
        maximum = max(fetch, self.max_fetch or 0)
        if self.max_fetch is None and self.is_free:
            maximum = sys.maxsize
        reranker = self.reranker
        expected = limit if reranker.top_k is None else min(limit, reranker.top_k)

        def short(query: str, results: Results, candidates: Results) -> bool:
            """Return whether more candidates are wanted. Say so if no more may be retrieved."""
            if len(results) >= expected or not self._may_lead_on(results, candidates):
                return False
            if len(candidates) >= maximum:
                counts: dict[str, Any] = {"candidates": len(candidates), "results": len(results)}
                with start_span("short", reranker=reranker.name, query=query, **counts):
                    pass
                logger.info(
                    "%s left %d of %d candidates for %r, fewer than top_k=%d; max_fetch=%d tries "
                    "more candidates",
                    *(reranker.name, len(results), len(candidates), query[:80]),
                    *(expected, OVER_FETCH * len(candidates)),
                )
            return True

        async def select(
            queries: Sequence[str], candidates: Sequence[Results]
        ) -> list[tuple[Results, bool]]:
            candidates = await Do(lambda: [*map(without_removed, candidates)], kind="work")
            reranked = await self._reranked(candidates, queries)
            asked = zip(queries, reranked, candidates, strict=True)
            return [(results[:limit], short(query, results, of)) for query, results, of in asked]

        return await fetch_until_full(
            *(self.inner, queries, select), fetch_k=fetch, max_fetch_k=maximum, filters=filters
        )

    @property
    def is_free(self) -> bool:
        """Whether neither the reranker nor the retrievers within call a model."""
        return self.reranker.is_filter and super().is_free

    def _may_lead_on(self, results: Results, candidates: Results) -> bool:
        """Return whether a filter would take the last candidate, or a later one, for its score."""
        reranker = self.reranker
        if not candidates or not reranker.is_filter:
            return bool(candidates)
        last = candidates[-1]
        return last in cut_scores([*results, last], reranker.cut_off, reranker.relative_cut)

    async def _reranked(
        self, candidates: Sequence[Results], queries: Sequence[str]
    ) -> list[Results]:
        """Return the reranked results of each query, some queries in a call if that can be.

        Only if that fails they are reranked one after the other, to see which of them fail.
        """
        reranked: list[Results] = []
        for start in range(0, len(queries), MAX_QUERIES):  # so that few tokens are in memory
            part = slice(start, start + MAX_QUERIES)
            reranked += await self._part_reranked(candidates[part], queries[part])
        return reranked

    async def _part_reranked(
        self, candidates: Sequence[Results], queries: Sequence[str]
    ) -> list[Results]:
        reranker = self.reranker
        if reranker.takes_batches and len(queries) > 1 and all(query.strip() for query in queries):
            with suppress(Exception):
                return await reranker.rerank_all(candidates, queries)
        parts = [partial(self._rerank, *part) for part in zip(candidates, queries, strict=True)]
        return await gather(parts, max_parallel=1)  # a user's function may not be thread-safe

    async def _rerank(self, candidates: Results, query: str) -> Results:
        """Return reranked candidates. If that fails, in their order with evidence of the error."""
        if not query.strip() and not self.reranker.is_filter:  # nothing to compare with
            return candidates
        try:
            return await self.reranker.plan(candidates, query)
        except Exception as error:
            if self.on_error == "raise":
                raise
            reason = f"{type(error).__name__}: {error}"
        name = self.reranker.name
        logger.warning(
            "%s failed for %r, which keeps the order of its retrieval: %s", name, query[:80], reason
        )
        failed = f"{FAILED}: {name}: {reason}"
        return [
            replace(
                result,
                evidence=(Evidence(result.node, result.score, failed, query), *result.evidence),
            )
            for result in candidates
        ]
