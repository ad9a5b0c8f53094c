"""The results of the variants of a query, and of failed searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..filters import Filters
from ..plans.effects import find_all, find_one
from ..plans.plan import All
from ..protocols import RetrieverProtocol
from ..results import Results, ScoredNode


@dataclass(frozen=True, slots=True)
class VariantResults:
    """The results of one variant of a query.

    Attributes:
        query: The variant.
        results: The results, best first.
        error: The error of the search. None means no error.
        answer: A model's answer from the results. If None, the model was not called.
        problem: Description of a problem with the answer.
        tool: The name of the tool. None without tools.
        is_from_engine: Whether the tool is a query engine that answered.
    """

    query: str
    results: Sequence[ScoredNode]
    error: Exception | None = None
    answer: str | None = None
    problem: str | None = None
    tool: str | None = None
    is_from_engine: bool = False

    @property
    def note(self) -> str | None:
        """The note in the evidence."""
        if self.answer is None:
            return self.problem
        return f"answer: {self.answer}"


def for_tool(ranking: VariantResults) -> str:
    """Return the words that name a variant's tool, or an empty string without a tool."""
    if ranking.tool is None:
        return ""
    return f" for {ranking.tool!r}"


async def results_or_errors(
    retriever: RetrieverProtocol, queries: Sequence[str], top_k: int | None, filters: Filters | None
) -> list[Results | Exception]:
    """Return the results of each query, or the error that the retriever raised for it.

    If the call for all queries fails, each query is searched separately.
    """
    try:
        return [*(await find_all(retriever, queries, top_k, filters))]
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return await All([partial(find_one, retriever, query, top_k, filters) for query in queries])
