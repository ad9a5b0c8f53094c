"""A wrapper that overrides the settings of a retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base_retriever import BaseRetriever, Phrases
from ..call import Call, limit_tokens
from ..filters import Filters, all_of, parse_filters
from ..plans.effects import find_all
from ..plans.plan import Do
from ..protocols import RetrieverProtocol
from ..ranking import cut_scores, log_threshold
from ..results import Results
from ..token_budget import TokenBudget
from ..validation import check_min_score


class ConfiguredRetriever(BaseRetriever):
    """A retriever that overrides settings of another retriever, such as ``top_k`` or the filters.

    Args:
        inner: The retriever.
        top_k: The maximum number of results. Defaults to the ``top_k`` of the inner retriever.
        filters: Filter conditions, in addition to those of a call.
        fetch_k: The number of candidates that each inner retriever fetches. Defaults to the number
            set for each retriever.
        min_score: The minimum score of results.
        max_tokens: The maximum total number of tokens of the results, unless a call specifies a
            budget. These results are limited by ``top_k`` only if it is given.
        phrases: The treatment of quoted phrases in each inner default search.
        weights: The weights of words and vectors in each inner default search.
    """

    name = "configured"

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        fetch_k: int | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(top_k=top_k)
        TokenBudget(max_tokens)  # validates the argument
        if fetch_k is not None and isinstance(inner, BaseRetriever):
            inner = inner.with_fetch_k(fetch_k)
        if phrases is not None:
            inner = _default_search(inner, "phrases").with_phrases(phrases)
        if weights is not None:
            inner = _default_search(inner, "weights").with_weights(weights)
        self.inner = inner
        parse_filters(filters)
        self.filters = filters
        self.min_score = check_min_score(min_score, inner)
        self.max_tokens = max_tokens
        self.has_windows = getattr(inner, "has_windows", False)

    def __repr__(self) -> str:
        return f"ConfiguredRetriever({self.inner!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query that fit into the token budget."""
        if self.max_tokens is None or Call.begin(filters).budget is not None:
            return await self._search(queries, limit, filters)
        budget = TokenBudget(self.max_tokens, top_k=limit)
        with limit_tokens(budget):
            rankings = await self._search(queries, budget.candidates(self), filters)
        return await Do(lambda: [budget.fit(ranking) for ranking in rankings], kind="work")

    async def _search(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query that reach the minimum score."""
        rankings = await find_all(self.inner, queries, limit, all_of(self.filters, filters))
        kept = [cut_scores(ranking, self.min_score) for ranking in rankings]
        for ranking, results in zip(rankings, kept, strict=True):
            if not results:
                log_threshold(type(self.inner).__name__, self.min_score, ranking)
        return kept


def _default_search(inner: RetrieverProtocol, option: str) -> BaseRetriever:
    """Return the retriever if it can contain a default search.

    Raises:
        ValueError: If the retriever comes from another library.
    """
    if not isinstance(inner, BaseRetriever):
        raise ValueError(f"{option}= requires a default search, got {inner!r:.120}")
    return inner


def configured(inner: RetrieverProtocol, **settings: Any) -> RetrieverProtocol:
    """Wrap a retriever so that settings are overridden.

    Without settings, it is returned unchanged.
    """
    if any(value not in (None, {}) for value in settings.values()):
        return ConfiguredRetriever(inner, **settings)
    return inner
