"""Search with a retriever or query engine of another framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base_retriever import child_k_override, current_restriction, inner_retrievers
from ..filters import Filters, all_of, parse_filters
from ..planned_retriever import PlannedRetriever
from ..plans.effects import Compute, Find, gather
from ..plans.plan import Plan
from ..protocols import RetrieverProtocol
from ..results import OutputOptions, Results
from ..tracing import start_span
from .outputs import read_output, read_sources
from .retriever_adapters import RetrieverCalls, adapt_retriever

if TYPE_CHECKING:
    from typing_extensions import Unpack


PushFilters = Callable[[Filters], Mapping[str, Any]]
"""Returns options of another retriever's search for conditions, ``{}`` where it has none."""

MAX_READ = 10_000
"""How many results are read at most, where conditions are checked on what comes back."""


class ForeignRetriever(PlannedRetriever):
    """Retrieve by a retriever, vector store, index or query engine of another framework.

    ``as_retriever`` makes it, wherever a retriever is expected. Results are nodes that no graph
    has, with the document's text, metadata and id (made from text and metadata where it has none).
    Their score is the one that the other retriever returns, or 1, 1/2, 1/3 by rank, and their
    evidence says which. An answer is one result.

    ``top_k`` is given to a retriever that takes a number in a call, or that has a number and can be
    copied; of any other the first ``top_k`` results are returned, however few there are. Conditions
    of a call are checked on results, of which as many are requested as it takes; a retriever that
    takes no number can't have them. What ``push_filters`` returns is checked by the other retriever
    before it ranks, so that fewer are read.

    Args:
        source: The other retriever.
        calls: How it is called.
        score_key: The metadata field that may have a score; None for none.
        push_filters: See ``as_retriever``.
        top_k: How many results at most; None for its own number.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        ValueError: In a retrieval, if there are conditions that it can't have.
        TypeError: In a retrieval, if it returns neither documents nor an answer.
    """

    name = "search"

    def __init__(
        self,
        source: object,
        calls: RetrieverCalls,
        *,
        score_key: str | None = "relevance_score",
        push_filters: PushFilters | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        self.source = source
        self._calls = calls
        self._score_key = score_key
        self._push_filters = push_filters

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": self.source_name}  # the rest is made of the source

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        calls = adapt_retriever(self.source)
        assert calls is not None
        self._calls = replace(calls, name=state["_calls"])

    @property
    def source_name(self) -> str:
        """What evidence calls it."""
        return self._calls.name

    @property
    def takes_filters(self) -> bool:
        """Whether the conditions of a call can hold for what it returns."""
        return self._calls.takes_top_k or self._calls.filtered is not None

    @property
    def is_free(self) -> bool:
        """Whether it may be queried again without paying for a model: not a query engine."""
        return not self._calls.calls_model

    def __repr__(self) -> str:
        return f"ForeignRetriever({self.source_name!r})"

    def retrieve_sources(self, query: str, top_k: int | None = None) -> tuple[str | None, Results]:
        """Return the answer, None of a retriever, and what it is from: sources, or results.

        Args:
            query: What to look for.
            top_k: How many at most; None for its own number.
        """
        limit = self.check_limit(top_k, None)
        if current_restriction():
            raise ValueError(f"the sources of {self.source_name} can't be restricted")
        output = self._calls.search(query, limit)
        text, results = read_sources(output, self.source_name, query, score_key=self._score_key)
        return text, results[:limit]

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Check the arguments of a call; return how many results at most."""
        limit = super().check_limit(top_k, filters)
        if filters and not self.takes_filters:
            raise ValueError(
                f"{self.source_name} takes no conditions, and no number of results by which "
                f"enough could be read to check {dict(filters)!r:.120}; set its conditions where "
                "it is made, or search with a retriever that takes them"
            )
        return limit

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan; none of a blank one."""
        filters = all_of(current_restriction(), filters)
        texts = [query for query in queries if query.strip()]
        with start_span(self.name, queries=texts, retriever=self.source_name) as span:
            if filters and self._calls.filtered is None:
                results = yield from gather([self._checked(q, limit, filters) for q in texts])
            else:
                results = yield from self._search(texts, limit, filters)
            span.set_results(results)
        remaining = iter(results)
        return [next(remaining) if query.strip() else [] for query in queries]

    def _search(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Search for all queries, in one call if there is one for many."""
        calls = self._calls
        if filters and calls.filtered is not None:
            calls = calls.filtered(filters)
        if len(queries) > 1 and calls.batch is not None:
            abatch = calls.abatch and partial(calls.abatch, list(queries), limit)
            outputs: list[Any] = yield from Compute(
                partial(calls.batch, list(queries), limit), abatch
            )
        else:
            outputs = yield from gather([_call(calls, query, limit) for query in queries])
        return [
            self._results(output, query)[:limit]
            for query, output in zip(queries, outputs, strict=True)
        ]

    def _checked(self, query: str, limit: int | None, filters: Filters) -> Plan[Results]:
        """Read as many results as it takes for ``limit`` that meet conditions."""
        conditions, calls = parse_filters(filters), self._pushed(filters)
        output = yield from _call(calls, query, limit)
        requested = count = len(output) if limit is None else limit
        before = -1
        while True:
            results = self._results(output, query)
            meeting = [r for r in results if conditions.matches(r.node)][:requested]
            if len(meeting) == requested or len(output) == before or len(output) < count:
                return meeting
            if count >= MAX_READ:
                raise ValueError(
                    f"of the first {count} results of {self.source_name} only {len(meeting)} "
                    f"meet {dict(filters)!r:.120}; say them in its own terms: "
                    "as_retriever(..., push_filters=function)"
                )
            before, count = len(output), min(4 * count, MAX_READ)
            output = yield from _call(calls, query, count)

    def _pushed(self, filters: Filters) -> RetrieverCalls:
        """Return the calls, with conditions that it checks itself besides."""
        if self._push_filters is None or self._calls.with_options is None:
            return self._calls
        options = self._push_filters(_flat(filters))
        if not options:
            return self._calls
        return replace(self._calls.with_options(options), name=self.source_name)

    def _results(self, output: Any, query: str) -> Results:
        return read_output(output, self.source_name, query, score_key=self._score_key)


def _flat(filters: Filters) -> Filters:
    """Return conditions of several owners as one mapping, as far as their fields differ."""
    fields: dict[str, Any] = {}
    remaining: list[Filters] = []
    pending = [filters]
    while pending:
        part = pending.pop()
        for field, condition in part.items():
            if field == "and":
                pending += condition
            elif field not in fields:
                fields[field] = condition
            elif fields[field] != condition:
                remaining.append({field: condition})
    return {**fields, "and": remaining} if remaining else fields


def _call(calls: RetrieverCalls, query: str, limit: int | None) -> Plan[Any]:
    asearch = calls.asearch and partial(calls.asearch, query, limit)
    return (yield from Compute(partial(calls.search, query, limit), asearch))


def check_in_graph(retriever: object, owner: str) -> None:
    """Check that not all results of a retriever are of no graph, for one that needs their kin.

    Raises:
        TypeError: If they are.
    """
    sources = list(_leaves(retriever))
    if sources and all(isinstance(leaf, ForeignRetriever) for leaf in sources):
        raise TypeError(
            f"{owner} needs the parents or neighbours of results, and those of {sources[0]!r} are "
            "in no node graph; add the documents to a NodeGraph, and search that"
        )


def _leaves(retriever: object) -> Sequence[object]:
    inner = [item for _, item in inner_retrievers(retriever)]
    return [leaf for item in inner for leaf in _leaves(item)] if inner else [retriever]


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
        return f"ConfiguredRetriever({repr_without_top_k(self.inner)}, top_k={self.top_k})"

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        with child_k_override(self.child_k):
            rankings = yield from Find(self.inner, queries, limit, all_of(self.filters, filters))
        least = self.cut_off
        return [[r for r in ranking if least is None or r.score >= least] for ranking in rankings]


def repr_without_top_k(retriever: object) -> str:
    """Return a retriever's ``repr`` for one with another number of results, which counts."""
    text, top_k = repr(retriever), f", top_k={getattr(retriever, 'top_k', None)})"
    return f"{text.removesuffix(top_k)})" if text.endswith(top_k) else text


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
