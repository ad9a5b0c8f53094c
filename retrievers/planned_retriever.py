"""The base class of retrievers with one ``async def`` method for all forms of a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from .base_retriever import BaseRetriever, check_queries, check_texts
from .filters import Filters, parse_filters
from .plans.plan import Do, arun, run
from .results import OutputOptions, Results, ScoredNode
from .token_budget import Order, TokenBudget
from .validation import check_top_k

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PlannedRetriever(BaseRetriever):
    """A base class that derives ``retrieve``, ``batch`` and their async forms from ``search_all``.

    Each search within scores one revision of the graph. If the graph changes between two searches,
    the second search sees the new revision.

    Args:
        top_k: The maximum number of results. None: the inner retrievers decide.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.
    """

    name: ClassVar[str] = "strategy"

    def __init__(self, *, top_k: int | None = None, **output: Unpack[OutputOptions]) -> None:
        super().__init__(**output)
        self.top_k = None if top_k is None else check_top_k(top_k)

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query, at most ``limit`` per query."""
        raise NotImplementedError

    def retrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: The question.
            top_k: Replaces the retriever's ``top_k``.
            filters: Conditions, passed to the inner retrievers.
            max_tokens: The maximum number of tokens of all results together. The results are
                ``BudgetResults``: without ``top_k``, as many as fit the budget.
            order: ``"document"`` sorts the results of a document by their position in it.

        Raises:
            TypeError: If a number is not an integer.
            ValueError: If a number is out of range, or the order is unknown.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return run(partial(self._budgeted, [query], top_k, filters, max_tokens, order))[0]

    async def aretrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Async version of ``retrieve``."""
        return (await arun(partial(self._budgeted, [query], top_k, filters, max_tokens, order)))[0]

    def batch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        Model calls run concurrently, and the inner retrievers get all queries in one call.

        Raises:
            TypeError: If ``queries`` is a string.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        check_queries(queries)
        return run(partial(self._budgeted, list(queries), top_k, filters, max_tokens, order))

    async def abatch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Async version of ``batch``."""
        check_queries(queries)
        return await arun(partial(self._budgeted, list(queries), top_k, filters, max_tokens, order))

    async def _budgeted(
        self,
        queries: Sequence[str],
        top_k: int | None,
        filters: Filters | None,
        max_tokens: int | None,
        order: Order,
    ) -> list[Results]:
        if not queries:
            return []
        check_texts(queries)
        budget = TokenBudget(max_tokens, order, top_k)
        limit = self.check_limit(budget.candidates(self), filters)
        if not budget:
            return await self.search_all(queries, limit, filters)
        with budget.holding():
            results = await self.search_all(queries, limit, filters)
        return await Do(lambda: [*map(budget.fit, results)], kind="work")

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Check the arguments of a call. Return the maximum number of results."""
        if filters is not None:
            parse_filters(filters)
        return self.top_k if top_k is None else check_top_k(top_k)


def join_notes(*notes: str | None) -> str | None:
    """Join notes to one string. None: no notes."""
    return "; ".join(filter(None, notes)) or None
