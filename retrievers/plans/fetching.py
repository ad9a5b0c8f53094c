"""Retrieve candidates until enough of them are left, or there are no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import Results
from .effects import Find
from .plan import Plan

GROWTH = 4
"""How many times as many candidates each further search is for."""


def fetch_until_full(
    retriever: RetrieverProtocol,
    queries: Sequence[str],
    select: Callable[[Sequence[str], Sequence[Results]], Plan[list[tuple[Results, bool]]]],
    *,
    fetch: int,
    most: int,
    filters: Filters | None,
) -> Plan[list[Results]]:
    """Retrieve candidates and select from them, from more and more of them where it takes more.

    What is returned for a query was selected from the candidates of one search, its last. A
    retriever that returns fewer than it was asked for, or no more than before, has no more.

    Args:
        retriever: Gives the candidates.
        queries: The queries; those that have enough are not searched for again.
        select: Takes queries and the candidates of each; returns the results of each, and
            whether more candidates are wanted for it.
        fetch: How many candidates the first search is for.
        most: How many candidates a search is for at most.
        filters: Conditions for the candidates.
    """
    selected: list[Results] = [[] for _ in queries]
    counts = [0] * len(queries)
    short = list(range(len(queries)))
    while short:
        short_queries = [queries[at] for at in short]
        candidates = yield from Find(retriever, short_queries, fetch, filters)
        outcomes = yield from select(short_queries, candidates)
        still_short = []
        for at, of_query, outcome in zip(short, candidates, outcomes, strict=True):
            selected[at], wants_more = outcome
            has_more = len(of_query) >= fetch and len(of_query) > counts[at]
            counts[at] = len(of_query)
            if wants_more and has_more and fetch < most:
                still_short.append(at)
        short, fetch = still_short, min(GROWTH * fetch, most)
    return selected
