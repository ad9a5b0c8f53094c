"""Retrieve as a plan says: for one query or many, in threads or in an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from .base_retriever import BaseRetriever, check_queries
from .filters import Filters, parse_filters
from .plans.one_state import arun_in_one_state, run_in_one_state
from .plans.plan import Plan
from .results import OutputOptions, Results, ScoredNode
from .validation import check_top_k

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PlannedRetriever(BaseRetriever):
    """Give a retriever that has ``plans`` its ways of being asked.

    Each answer is of one state of the graph, whatever is nested: where the graph changes meanwhile
    the plan is run again, without asking models again.

    Args:
        top_k: How many results at most. None leaves it to the retrievers within.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.
    """

    name: ClassVar[str] = "strategy"

    def __init__(self, *, top_k: int | None = None, **output: Unpack[OutputOptions]) -> None:
        super().__init__(**output)
        self.top_k = None if top_k is None else check_top_k(top_k)

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan. ``limit`` is how many at most."""
        raise NotImplementedError

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the retrievers within.

        Raises:
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run_in_one_state(self._plans_of(top_k, filters), [query])[0]

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Async version of ``retrieve``."""
        return (await arun_in_one_state(self._plans_of(top_k, filters), [query]))[0]

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        The model is asked for several queries at a time, and the retrievers within get all at
        once.

        Raises:
            TypeError: If the queries are one text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        check_queries(queries)
        if not queries:
            return []
        return run_in_one_state(self._plans_of(top_k, filters), list(queries))

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Async version of ``batch``."""
        check_queries(queries)
        if not queries:
            return []
        return await arun_in_one_state(self._plans_of(top_k, filters), list(queries))

    def _plans_of(
        self, top_k: int | None, filters: Filters | None
    ) -> Callable[[Sequence[str]], Plan[list[Results]]]:
        limit = self.check_limit(top_k, filters)
        return lambda queries: self.plans(queries, limit, filters)

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Check the arguments of a call. Return how many results at most."""
        if filters is not None:
            parse_filters(filters)
        return self.top_k if top_k is None else check_top_k(top_k)


def join_notes(*notes: str | None) -> str | None:
    """Return notes as one, None where there are none."""
    return "; ".join(filter(None, notes)) or None
