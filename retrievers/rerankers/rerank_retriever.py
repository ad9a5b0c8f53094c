"""A retriever that fetches candidates, reranks them and returns the best."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever
from ..plans.effects import fetch_until_full
from ..plans.plan import Do
from ..protocols import RerankerProtocol, RetrieverLike
from ..ranking import cut_scores
from ..results import Evidence, OutputFormat, Results, without_removed
from ..validation import check_top_k, choice, optional_whole
from .reranker import Reranker, get_reranker

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]

OVER_FETCH = 4
"""The default number of candidates per result."""

FAILED = "rerank failed"
"""The prefix of ``similarity`` in the first evidence of each result if the reranker failed."""


class RerankRetriever(BaseRetriever):
    """A retriever that reranks the results of another retriever and returns the best.

    The score of each result is the score of the reranker, and the evidence of the reranker comes
    before the evidence of the retriever. If the reranker fails, the results keep the order of the
    retriever, and ``similarity`` in their first evidence begins with ``"rerank failed"``.

    A ``KeywordFilter``, or any other reranker with ``is_filter``, may leave fewer than ``top_k``
    results. In this case, more candidates are fetched until ``top_k`` results are found or no
    candidates are left. If the reranker or ``inner`` calls a model, further candidates are fetched
    only if ``max_fetch_k`` permits it. Otherwise, fewer results may be returned.

    Args:
        inner: Any retriever, such as a fusion of several retrievers.
        reranker: A ``Reranker``, or the first argument of one: a name, a function or an object.
        top_k: The maximum number of results.
        fetch_k: The number of candidates that are fetched from the inner retriever. It must be at
            least ``top_k``. Defaults to four times ``top_k``.
        max_fetch_k: The maximum number of candidates if fewer than ``top_k`` results remain. Each
            further attempt fetches four times as many candidates. If None, the number is not
            limited for a filter whose ``inner`` does not call a model. In all other cases, the
            limit is ``fetch_k``.
        on_error: The reaction if the reranker fails. ``"keep"`` returns the results in the order of
            the retriever. ``"raise"`` raises the error.
        output_format: The format of the results of a call: None (scored nodes), ``"content"`` or
            ``"dict"``.
        join: The separator that joins the contents into a single text. True stands for a line
            break.
        **settings: Keyword arguments for a reranker that is given by name, such as ``model=...``.

    Raises:
        TypeError: If the retriever or the reranker is invalid.
        ValueError: If a number is out of range or an option is unknown.

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
        fetch_k: int | None = None,
        max_fetch_k: int | None = None,
        on_error: OnError = "keep",
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: object,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        self._set_output(output_format, join)
        self.inner = as_retriever(inner)
        if settings or not isinstance(reranker, Reranker):
            reranker = Reranker(get_reranker(reranker, settings))
        self.reranker = reranker
        self.fetch_k = optional_whole(fetch_k, "fetch_k")
        self.max_fetch_k = optional_whole(max_fetch_k, "max_fetch_k")
        self.on_error = choice(on_error, "on_error", ("keep", "raise"))

    def __repr__(self) -> str:
        return f"RerankRetriever({self.inner!r}, {self.reranker!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        assert limit is not None
        fetch_k = max(self.fetch_k or OVER_FETCH * limit, limit)
        maximum = max(fetch_k, self.max_fetch_k or 0)
        if self.max_fetch_k is None and self.is_free:
            maximum = sys.maxsize
        expected = min(limit, self.reranker.top_k or limit)

        async def select(
            queries: Sequence[str], candidates: Sequence[Results]
        ) -> list[tuple[Results, bool]]:
            candidates = await Do(lambda: [without_removed(c) for c in candidates], kind="work")
            selected = []
            for query, of_query in zip(queries, candidates, strict=True):
                # Sequentially, because a function may not be thread-safe.
                results = await self._rerank(of_query, query)
                is_short = len(results) < expected and self._may_lead_on(results, of_query)
                selected.append((results[:limit], is_short))
            return selected

        return await fetch_until_full(
            self.inner,
            queries,
            select,
            fetch_k=fetch_k,
            max_fetch_k=maximum,
            filters=filters,
        )

    @property
    def is_free(self) -> bool:
        """Whether neither the reranker nor the inner retrievers call a model."""
        return self.reranker.is_filter and super().is_free

    def _may_lead_on(self, results: Results, candidates: Results) -> bool:
        """Return whether further candidates could still pass the score limits of the filter."""
        reranker = self.reranker
        if not candidates or not reranker.is_filter:
            return bool(candidates)
        last = candidates[-1]
        return last in cut_scores([*results, last], reranker.min_score, reranker.relative_cut)

    async def _rerank(self, candidates: Results, query: str) -> Results:
        """Rerank candidates. If the reranker fails, record the error and keep the order."""
        # A blank query cannot be compared with passages.
        if not query.strip() and not self.reranker.is_filter:
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
        results = []
        for result in candidates:
            evidence = Evidence(result.node, result.score, failed, query)
            results.append(replace(result, evidence=(evidence, *result.evidence)))
        return results
