"""Fuse the results of several retrievers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from ..base_retriever import BaseRetriever, check_queries
from ..filters import Filters, parse_filters
from ..plans import run_in_threads
from ..protocols import RetrieverProtocol
from ..ranking import RANK_CONSTANT, Mode, check_mode, fuse
from ..results import OutputFormat, ScoredNode
from ..tracing import start_span
from ..validation import check_retriever, check_top_k, number

logger = logging.getLogger(__name__)

T = TypeVar("T")


class FusionRetriever(BaseRetriever):
    """Ask several retrievers and make one ranking of their results.

    Choose ``"rrf"`` for retrievers whose scores can't be compared (``bm25`` and ``cosine``): only
    places count. ``"relative"`` also says by how much one result is better than the next.
    ``"distribution"`` does so too, and lets one outlier spoil less. ``"concat"`` is for scores of
    one kind, from several groups or corpora. A node is one result
    however many find it, with the evidence of all of them.

    All retrievers are asked at once, in threads or tasks; one after the other where the calling
    thread holds a graph (``graph.reading``), since waiting for other threads could then be
    waiting for itself.

    Args:
        retrievers: Any retrievers, also fusions; what they find should be of one group.
        mode: See ``fuse``.
        weights: What each counts, 0 or more; all the same by default. One that weighs 0 is not
            asked.
        top_k: How many nodes to return at most. Each retriever gives its own ``top_k``, or as many
            as a call asks for, where that is more.
        rank_constant: How little the first places stand out, for ``"rrf"``.
        on_error: What a retriever that fails does: ``"raise"``, or ``"skip"`` to fuse what the
            others find, with a warning in the log and a failed stage in the trace. When all fail,
            the first one's error is raised in any case.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If what was given is no retriever, or no number.
        ValueError: If there is no retriever or no such mode, or a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea. It is not fermented.", "Black tea. It is fermented."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> whole, parts = Retriever(graph, "ROOT"), Retriever(graph, "sentence", target="ROOT")
        >>> fusion = FusionRetriever([whole, parts], weights=[1, 2])
        >>> [result.node.text for result in fusion("black tea")]
        ['Black tea. It is fermented.', 'Green tea. It is not fermented.']
    """

    def __init__(
        self,
        retrievers: Sequence[RetrieverProtocol],
        mode: Mode = "rrf",
        weights: Sequence[float] | None = None,
        top_k: int = 6,
        rank_constant: float = RANK_CONSTANT,
        *,
        on_error: Literal["raise", "skip"] = "raise",
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f'on_error is "raise" or "skip", not {on_error!r}')
        self.on_error = on_error
        self.retrievers = list(retrievers)
        if not self.retrievers:
            raise ValueError("retrievers=[] leaves nothing to fuse; give one or more")
        for each in self.retrievers:
            check_retriever(each)
        self.mode: Mode = check_mode(mode)
        self.weights = _check_weights(weights, len(self.retrievers))
        self.top_k = check_top_k(top_k)
        self.rank_constant = number(rank_constant, "rank_constant")
        super().__init__(output_format=output_format, join=join)

    def __repr__(self) -> str:
        return f"FusionRetriever({self.retrievers!r}, {self.mode!r}, top_k={self.top_k})"

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: What to look for.
            top_k: How many at most, in place of the fusion's own.
            filters: Conditions, given to each retriever.
        """
        limit = self._check(top_k, filters)
        with start_span("fuse", mode=self.mode, query=query) as done:
            found = self._all(lambda r: r.retrieve(query, top_k=_depth(r, top_k), filters=filters))
            results = self._fused(self._good(found), limit)
            done.attributes["results"] = len(results)
        return results

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop, asking all retrievers at once."""
        limit = self._check(top_k, filters)
        with start_span("fuse", mode=self.mode, query=query) as done:
            found = await self._aall(
                lambda r: r.aretrieve(query, top_k=_depth(r, top_k), filters=filters)
            )
            results = self._fused(self._good(found), limit)
            done.attributes["results"] = len(results)
        return results

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        Raises:
            TypeError: If the queries are one text.
        """
        check_queries(queries)
        limit = self._check(top_k, filters)
        found = self._all(lambda r: _batch(r, queries, top_k=_depth(r, top_k), filters=filters))
        good = self._good(found)
        return [
            self._fused([None if each is None else each[at] for each in good], limit)
            for at in range(len(queries))
        ]

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop."""
        check_queries(queries)
        limit = self._check(top_k, filters)
        found = await self._aall(
            lambda r: _abatch(r, queries, top_k=_depth(r, top_k), filters=filters)
        )
        good = self._good(found)
        return [
            self._fused([None if each is None else each[at] for each in good], limit)
            for at in range(len(queries))
        ]

    def _check(self, top_k: int | None, filters: Filters | None) -> int:
        parse_filters(filters)
        return self.top_k if top_k is None else check_top_k(top_k)

    def _asked(self) -> list[RetrieverProtocol]:
        return [r for r, weight in zip(self.retrievers, self.weights, strict=True) if weight]

    def _all(self, ask: Callable[[RetrieverProtocol], T]) -> list[T | BaseException]:
        """Ask all retrievers, in threads unless this one holds a graph."""
        asked = self._asked()

        def try_(retriever: RetrieverProtocol) -> T | BaseException:
            try:
                return ask(retriever)
            except Exception as error:
                if self.on_error == "raise":
                    raise
                return error

        return run_in_threads([partial(try_, each) for each in asked], len(asked))

    async def _aall(
        self, ask: Callable[[RetrieverProtocol], Awaitable[T]]
    ) -> list[T | BaseException]:
        """Ask all retrievers at once, in tasks."""
        tasks = [asyncio.ensure_future(ask(each)) for each in self._asked()]
        try:
            return list(await asyncio.gather(*tasks, return_exceptions=self.on_error == "skip"))
        finally:  # one that fails takes the others with it
            for task in tasks:
                task.cancel()

    def _good(self, found: Sequence[T | BaseException]) -> list[T | None]:
        """Return what was found, None where a retriever failed."""
        failed = [each for each in found if isinstance(each, BaseException)]
        for retriever, each in zip(self._asked(), found, strict=True):
            if isinstance(each, BaseException):
                if len(failed) == len(found) or not isinstance(each, Exception):
                    raise each
                logger.warning("left out of a fusion: %r failed: %s", retriever, each)
        return [None if isinstance(each, BaseException) else each for each in found]

    def _fused(self, found: Sequence[Sequence[ScoredNode] | None], limit: int) -> list[ScoredNode]:
        weights = [weight for weight in self.weights if weight]
        good = [(each, w) for each, w in zip(found, weights, strict=True) if each is not None]
        rankings, weights = [each for each, _ in good], [weight for _, weight in good]
        return fuse(rankings, self.mode, weights, limit, self.rank_constant)


def _depth(retriever: RetrieverProtocol, top_k: int | None) -> int | None:
    """Return how many results to ask a retriever for; never fewer than its own number."""
    own = getattr(retriever, "top_k", None)
    return None if top_k is not None and isinstance(own, int) and own >= top_k else top_k


def _batch(
    retriever: RetrieverProtocol, queries: Sequence[str], **settings: Any
) -> Sequence[list[ScoredNode]]:
    """Ask a retriever many queries, at once where it can."""
    batch = getattr(retriever, "batch", None)
    if batch is not None:
        results: list[list[ScoredNode]] = batch(queries, **settings)
        return results
    return [retriever.retrieve(query, **settings) for query in queries]


async def _abatch(
    retriever: RetrieverProtocol, queries: Sequence[str], **settings: Any
) -> Sequence[list[ScoredNode]]:
    """Ask a retriever many queries in tasks, at once where it can."""
    abatch = getattr(retriever, "abatch", None)
    if abatch is not None:
        results: list[list[ScoredNode]] = await abatch(queries, **settings)
        return results
    return await asyncio.gather(*(retriever.aretrieve(query, **settings) for query in queries))


def _check_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    if weights is None:
        return [1.0] * count
    checked = [number(weight, "a weight") for weight in weights]
    if len(checked) != count:
        raise ValueError(f"weights={weights!r} are {len(checked)}, for {count} retrievers")
    if not any(checked):
        raise ValueError(f"weights={weights!r} leave no retriever to ask; give one above 0")
    return checked
