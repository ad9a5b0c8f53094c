"""The results of the variants of a query, including failed searches."""

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
    """The outcome of the search for one variant of a query.

    Attributes:
        query: The variant that was searched.
        results: The results, best first. They are empty if the search failed.
        error: The exception of a failed search, or None.
        answer: The answer to the variant (a sub-question, for example), or None if no model was
            asked or the model gave no answer.
        problem: The reason why the results need an explanation, such as a missing answer or a
            variant without results. None if there is no problem.
        tool: The name of the tool that searched, or None if the inner retriever searched.
        is_from_engine: Whether the tool is a query engine, which generated the answer itself.
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
        """The answer or the problem, as shown in the evidence of the results, or None."""
        if self.answer is None:
            return self.problem
        return f"answer: {self.answer}"


def for_tool(ranking: VariantResults) -> str:
    """Return the suffix `` for 'tool'`` for messages, or an empty string without a tool."""
    if ranking.tool is None:
        return ""
    return f" for {ranking.tool!r}"


async def results_or_errors(
    retriever: RetrieverProtocol, queries: Sequence[str], top_k: int | None, filters: Filters | None
) -> list[Results | Exception]:
    """Return the results of each query, or the error that the retriever raised for the query.

    If the call for all queries fails, each query is searched separately.
    """
    try:
        return [*(await find_all(retriever, queries, top_k, filters))]
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return await All([partial(find_one, retriever, query, top_k, filters) for query in queries])
