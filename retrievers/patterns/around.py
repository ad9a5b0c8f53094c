"""What makes other results of the hits of another retriever: windows, parents, documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..answering import Answering, check_queries
from ..checks import check_retriever
from ..child_k import hits_to_look_at
from ..filters import Filters
from ..output import OutputFormat, check_top_k
from ..protocols import Retrieves
from ..scored_node import ScoredNode
from ..trace import stage

OVER_FETCH = 4  # hits that are asked for, for each result that is wanted


class Around(Answering):
    """Ask a retriever, then regroup what it found: ``regroup`` is all that a subclass writes.

    Args:
        inner: Any retriever.
        top_k: How many results at most.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
    """

    name = "regroup"
    over_fetch = OVER_FETCH

    def __init__(
        self,
        inner: Retrieves,
        *,
        top_k: int | None,
        output_format: OutputFormat | None,
        join: bool | str,
    ) -> None:
        self.inner = check_retriever(inner, "inner")
        self.top_k = None if top_k is None else check_top_k(top_k)
        self._answer_in(output_format, join)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, top_k={self.top_k})"

    def regroup(self, found: list[ScoredNode], limit: int | None) -> list[ScoredNode]:
        """Return the results that are made of hits, ``limit`` at most."""
        raise NotImplementedError

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best results, best first.

        Args:
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the inner retriever: hits meet them.
        """
        limit, asked = self._limits(top_k)
        with stage(self.name, query=query) as done:
            found = self.inner.retrieve(query, top_k=asked, filters=filters)
            results = self.regroup(found, limit)
            done.facts.update(hits=len(found), results=len(results))
        return results

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        limit, asked = self._limits(top_k)
        with stage(self.name, query=query) as done:
            found = await self.inner.aretrieve(query, top_k=asked, filters=filters)
            results = await asyncio.to_thread(self.regroup, found, limit)
            done.facts.update(hits=len(found), results=len(results))
        return results

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in order; the inner retriever gets all at once.

        Raises:
            TypeError: If the queries are one text.
        """
        check_queries(queries)
        batch = getattr(self.inner, "batch", None)
        if batch is None:
            return super().batch(queries, top_k=top_k, filters=filters)
        limit, asked = self._limits(top_k)
        found = batch(queries, top_k=asked, filters=filters)
        return [self.regroup(each, limit) for each in found]

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop."""
        check_queries(queries)
        abatch = getattr(self.inner, "abatch", None)
        if abatch is None:
            return await super().abatch(queries, top_k=top_k, filters=filters)
        limit, asked = self._limits(top_k)
        found = await abatch(queries, top_k=asked, filters=filters)
        return await asyncio.to_thread(lambda: [self.regroup(each, limit) for each in found])

    def _limits(self, top_k: int | None) -> tuple[int | None, int | None]:
        limit = self.top_k if top_k is None else check_top_k(top_k)
        asked = None if limit is None else self.over_fetch * limit
        return limit, hits_to_look_at(asked)
