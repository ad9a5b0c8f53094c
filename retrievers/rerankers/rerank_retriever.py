"""Retrieve more than is wanted, and keep what a reranker likes best."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from ..base_retriever import BaseRetriever, check_queries
from ..filters import Filters, parse_filters
from ..protocols import RerankerProtocol, RetrieverProtocol
from ..results import Evidence, OutputFormat, ScoredNode
from ..validation import check_retriever, check_top_k
from .reranker import Reranker

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]

FETCHED = 4
"""How many candidates are retrieved for each result that is wanted."""

FAILED = "rerank failed"
"""What the first evidence's ``similarity`` begins with where the reranker failed."""


class RerankRetriever(BaseRetriever):
    """Retrieve candidates from a retriever, rerank them, and return the best.

    Each result carries the reranker's score, and its evidence before the retriever's. Where the
    reranker fails, the retriever's results come in their own order, and their first evidence
    says so: its ``similarity`` begins with ``"rerank failed"``.

    Args:
        inner: Any retriever, also a fusion.
        reranker: A ``Reranker``, or whatever one is made of: a name, an object.
        top_k: How many results at most.
        fetch: How many candidates to ask the inner retriever for; None for four times
            ``top_k``. Never less than ``top_k``.
        on_error: ``"keep"`` the retriever's order where the reranker fails, or ``"raise"``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Settings of a reranker that was named: ``model=...``.

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
        inner: RetrieverProtocol,
        reranker: Reranker | str | RerankerProtocol | Callable[..., Any],
        *,
        top_k: int = 6,
        fetch: int | None = None,
        on_error: OnError = "keep",
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: Any,
    ) -> None:
        if not isinstance(reranker, Reranker) or settings:
            reranker = Reranker(reranker, **settings)
        if on_error not in ("keep", "raise"):
            raise ValueError(f"on_error is 'keep' or 'raise', not {on_error!r}")
        self.inner = check_retriever(inner)
        self.reranker = reranker
        self.top_k = check_top_k(top_k)
        self.fetch = fetch
        if fetch is not None and (isinstance(fetch, bool) or not isinstance(fetch, int)):
            raise TypeError(f"fetch is a whole number or None, not {fetch!r:.80}")
        if fetch is not None and fetch < 1:
            raise ValueError(f"fetch must be 1 or more, not {fetch!r}")
        self.on_error = on_error
        super().__init__(output_format=output_format, join=join)

    def __repr__(self) -> str:
        return f"RerankRetriever({self.inner!r}, {self.reranker!r}, top_k={self.top_k})"

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: What to look for, and to rerank by.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the inner retriever.

        Raises:
            RerankError: If the reranker fails, with ``on_error="raise"``.
        """
        limit, fetch = self._check(top_k, filters)
        found = self.inner.retrieve(query, top_k=fetch, filters=filters)
        return self._reranked(found, query, limit)

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        limit, fetch = self._check(top_k, filters)
        found = await self.inner.aretrieve(query, top_k=fetch, filters=filters)
        return await self._areranked(found, query, limit)

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        The inner retriever is asked all of them at once, where it can.

        Raises:
            TypeError: If the queries are one text.
            RerankError: If the reranker fails, with ``on_error="raise"``.
        """
        check_queries(queries)
        at_once = getattr(self.inner, "batch", None)
        if at_once is None:
            return super().batch(queries, top_k=top_k, filters=filters)
        limit, fetch = self._check(top_k, filters)
        found = at_once(queries, top_k=fetch, filters=filters)
        return [
            self._reranked(each, query, limit) for each, query in zip(found, queries, strict=True)
        ]

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop."""
        check_queries(queries)
        at_once = getattr(self.inner, "abatch", None)
        if at_once is None:
            return await super().abatch(queries, top_k=top_k, filters=filters)
        limit, fetch = self._check(top_k, filters)
        found = await at_once(queries, top_k=fetch, filters=filters)
        pairs = zip(found, queries, strict=True)
        works = (self._areranked(each, query, limit) for each, query in pairs)
        return list(await asyncio.gather(*works))

    def _check(self, top_k: int | None, filters: Filters | None) -> tuple[int, int]:
        """Return how many results are wanted, and how many candidates for them."""
        parse_filters(filters)
        limit = self.top_k if top_k is None else check_top_k(top_k)
        return limit, FETCHED * limit if self.fetch is None else max(self.fetch, limit)

    def _reranked(self, found: Sequence[ScoredNode], query: str, limit: int) -> list[ScoredNode]:
        try:
            return self.reranker.rerank(found, query)[:limit]
        except Exception as error:
            return self._kept(found, query, error)[:limit]

    async def _areranked(
        self, found: Sequence[ScoredNode], query: str, limit: int
    ) -> list[ScoredNode]:
        try:
            return (await self.reranker.arerank(found, query))[:limit]
        except Exception as error:
            return self._kept(found, query, error)[:limit]

    def _kept(self, found: Sequence[ScoredNode], query: str, error: Exception) -> list[ScoredNode]:
        """Return what was found in its own order, with evidence of the failure."""
        if self.on_error == "raise":
            raise error
        told = f"{type(error).__name__}: {error}"
        logger.warning(
            "%s failed for %r, which keeps the order of its retrieval: %s",
            self.reranker.name,
            query[:80],
            told,
        )
        failed = f"{FAILED}: {self.reranker.name}: {told}"
        return [
            replace(each, evidence=(Evidence(each.node, each.score, failed, query), *each.evidence))
            for each in found
        ]
