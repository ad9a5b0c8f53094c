"""Keep the settings of a class in a framework, where it is taken for the retriever within."""

from __future__ import annotations

from collections.abc import Sequence

from ..base_retriever import child_k_override
from ..filters import Filters, all_of, parse_filters
from ..planned_retriever import PlannedRetriever
from ..plans.effects import Find
from ..plans.plan import Plan
from ..protocols import RetrieverProtocol
from ..results import Results


class ConfiguredRetriever(PlannedRetriever):
    """Search with a retriever, with a number, conditions and a least score of one's own.

    Args:
        inner: The retriever.
        top_k: How many results at most; None for the retriever's own number.
        filters: Conditions that are added to those of a call.
        child_k: How many hits every retriever within looks at; None for its own number.
        cut_off: Keeps results that score this or more.
    """

    name = "configured"

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        child_k: int | None = None,
        cut_off: float | None = None,
    ) -> None:
        super().__init__(top_k=top_k)
        self.inner = inner
        parse_filters(filters)
        self.filters = filters
        self.child_k = child_k
        self.cut_off = cut_off

    def __repr__(self) -> str:
        return f"ConfiguredRetriever({self.inner!r}, top_k={self.top_k})"

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        with child_k_override(self.child_k):
            rankings = yield from Find(self.inner, queries, limit, all_of(self.filters, filters))
        least = self.cut_off
        return [[r for r in ranking if least is None or r.score >= least] for ranking in rankings]


def configured(
    inner: RetrieverProtocol,
    *,
    top_k: int | None = None,
    filters: Filters | None = None,
    child_k: int | None = None,
    cut_off: float | None = None,
) -> RetrieverProtocol:
    """Return a retriever with settings, the retriever itself where there are none."""
    if top_k is None and not filters and child_k is None and cut_off is None:
        return inner
    return ConfiguredRetriever(
        inner, top_k=top_k, filters=filters, child_k=child_k, cut_off=cut_off
    )
