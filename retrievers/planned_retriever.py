"""Retrieve as a plan says: for one query or many, in threads or in an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ..nodegraph.concurrency import context_value
from ..nodegraph.locking import Observation, OutsideHoldError, observing
from .base_retriever import BaseRetriever, check_queries, check_texts
from .filters import Filters, parse_filters
from .plans.effects import Compute, Work
from .plans.plan import Payments, Plan, UnpaidError, arun, current_payments, run
from .results import OutputOptions, Results, ScoredNode
from .token_budget import Order, TokenBudget
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
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the retrievers within.
            max_tokens: How many tokens all results may have together. The results are
                ``BudgetResults``, as many as fit where no ``top_k`` is given.
            order: ``"document"`` puts results of one document into its order.

        Raises:
            TypeError: If a number is no whole number.
            ValueError: If a number is out of range, or there is no such order.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run(in_one_state(self._plans_of(top_k, filters, max_tokens, order), [query]))[0]

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
        return (
            await arun(in_one_state(self._plans_of(top_k, filters, max_tokens, order), [query]))
        )[0]

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

        The model is asked for several queries at a time, and the retrievers within get all at
        once.

        Raises:
            TypeError: If the queries are one text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        check_queries(queries)
        if not queries:
            return []
        return run(in_one_state(self._plans_of(top_k, filters, max_tokens, order), list(queries)))

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
        if not queries:
            return []
        return await arun(
            in_one_state(self._plans_of(top_k, filters, max_tokens, order), list(queries))
        )

    def _plans_of(
        self, top_k: int | None, filters: Filters | None, max_tokens: int | None, order: Order
    ) -> PlanOf:
        budget = TokenBudget(max_tokens, order, top_k)
        limit = self.check_limit(budget.candidates(self), filters)

        def plans_within(queries: Sequence[str]) -> Plan[list[Results]]:
            with budget.holding():
                results = yield from self.plans(queries, limit, filters)
            fit: Work[list[Results]] = Work(lambda: [*map(budget.fit, results)])
            return (yield from fit)

        return plans_within if budget else lambda queries: self.plans(queries, limit, filters)

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Check the arguments of a call. Return how many results at most."""
        if filters is not None:
            parse_filters(filters)
        return self.top_k if top_k is None else check_top_k(top_k)


def join_notes(*notes: str | None) -> str | None:
    """Return notes as one, None where there are none."""
    return "; ".join(filter(None, notes)) or None


PlanOf = Callable[[Sequence[str]], Plan[list[Results]]]
"""Returns the plan of a retrieval. Its result has an item for each query."""

ATTEMPTS = 3
"""How many times a retrieval of one query is run before its graphs are held."""


def in_one_state(plan_of: PlanOf, queries: Sequence[str]) -> Plan[list[Results]]:
    """Return the results of a plan for queries, each of one state of the graphs, as a plan.

    A retrieval that searches and then looks around reads several times. If a graph has changed
    meanwhile it is run again, and after some times while the graphs are held. What a model said
    once is not paid for again, and no writer waits for a model: where one is needed while the
    graphs are held, they are let go until it has answered.

    Args:
        plan_of: Returns the plan, as often as it is run.
        queries: The queries. Where graphs change meanwhile, parts of them may see different
            states.

    Raises:
        TypeError: If a query is no text.
    """
    check_texts(queries)
    if current_payments.get() is not None:  # a part of a retrieval
        return (yield from plan_of(queries))
    return (yield from _attempts(plan_of, queries, Payments()))


def _attempts(plan_of: PlanOf, queries: Sequence[str], payments: Payments) -> Plan[list[Results]]:
    for _ in range(ATTEMPTS if len(queries) < 2 else 1):
        with _attempt(payments) as observation:
            try:
                results = yield from plan_of(queries)
            except LookupError:  # a node may have been removed meanwhile
                if (yield from Work(observation.is_current)):
                    raise
                continue
        if (yield from Work(observation.is_current)):
            return results
    if len(queries) > 1:
        middle = len(queries) // 2
        first = yield from _attempts(plan_of, queries[:middle], payments)
        return first + (yield from _attempts(plan_of, queries[middle:], payments))
    while True:  # a thread that holds graphs does all by itself
        locked = partial(_run_locked, plan_of, queries, payments, observation)
        outcome = yield from Compute(locked)
        if isinstance(outcome, list):
            return outcome
        yield from Compute(outcome)


def _run_locked(
    plan_of: PlanOf, queries: Sequence[str], payments: Payments, observation: Observation
) -> list[Results] | Callable[[], None]:
    """Run a plan while all that it reads is held. Return what is to be done before, if anything."""
    try:
        with _attempt(payments, observation), observation.hold():
            return run(plan_of(queries))
    except OutsideHoldError:  # it is noted now
        return lambda: None
    except UnpaidError as needed:
        return needed.pay


@contextmanager
def _attempt(payments: Payments, lease: Observation | None = None) -> Iterator[Observation]:
    payments.start(graphs_locked=lease is not None)
    with context_value(current_payments, payments), observing(lease) as observation:
        yield observation
