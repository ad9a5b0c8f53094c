"""What every retriever offers besides ``retrieve``: calls in a format, and batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .filters import Filters
from .output import OutputFormat, check_output, formatted
from .scored_node import ScoredNode


class Answering:
    """Give a retriever with ``retrieve`` and ``aretrieve`` its other methods.

    Subclassing is not required of a retriever; it spares writing them.
    """

    output_format: OutputFormat | None = None
    join: bool | str = False

    def _answer_in(self, output_format: OutputFormat | None, join: bool | str) -> None:
        """Check and keep the format of calls."""
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        raise NotImplementedError

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        raise NotImplementedError

    def __call__(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Any:
        """Retrieve, and return the results in the ``output_format``."""
        results = self.retrieve(query, top_k=top_k, filters=filters)
        return formatted(results, self.output_format, self.join)

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        Raises:
            TypeError: If the queries are one text.
        """
        check_queries(queries)
        return [self.retrieve(query, top_k=top_k, filters=filters) for query in queries]

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop, all queries at once."""
        check_queries(queries)
        asked = (self.aretrieve(query, top_k=top_k, filters=filters) for query in queries)
        return list(await asyncio.gather(*asked))


def check_queries(queries: Sequence[str]) -> None:
    """Check what a batch is given.

    Raises:
        TypeError: If the queries are one text.
    """
    if isinstance(queries, str):
        raise TypeError(f"batch takes a list of queries, not one: {queries!r:.80}")
