"""Search for other forms of the query, and fuse what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..answering import Answering
from ..filters import Filters, parse_filters
from ..fusion import Mode, check_mode, fuse
from ..output import OutputFormat, check_top_k
from ..plan import Find, Plan, arun, run
from ..protocols import Retrieves
from ..scored_node import QueryForm, ScoredNode
from .query_transform import QueryTransform


class TransformRetriever(Answering):
    """Search for what a query transform makes of the query; what these strategies share.

    The results' evidence has the form that was searched for as its ``query``, and the query it
    was made of in ``forms``, with a note where the model failed and the query was searched for as
    it is.

    Args:
        inner: Any retriever, also another strategy.
        transform: Makes the queries.
        mode: How the results of several queries are fused; see ``fuse``.
        top_k: How many results at most, also of each query; None for the inner retriever's own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If there is no retriever.
        ValueError: If a number is out of range or a choice unknown.
    """

    def __init__(
        self,
        inner: Retrieves,
        transform: QueryTransform,
        *,
        mode: Mode = "rrf",
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        self.inner = check_retriever(inner)
        self.query_transform = transform
        self.mode: Mode = check_mode(mode)
        self.top_k = None if top_k is None else check_top_k(top_k)
        self._answer_in(output_format, join)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, {self.query_transform.llm.name!r})"

    def transform(self, query: str) -> list[str]:
        """Return what is searched for in place of a query."""
        return self.query_transform.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return await self.query_transform.atransform(query)

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the inner retriever.

        Raises:
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run(self.plan(query, top_k, filters))

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        return await arun(self.plan(query, top_k, filters))

    def plan(
        self, query: str, top_k: int | None = None, filters: Filters | None = None
    ) -> Plan[list[ScoredNode]]:
        """Return the results as a plan."""
        parse_filters(filters)
        limit = self.top_k if top_k is None else check_top_k(top_k)
        forms = yield from self.query_transform.plan(query)
        found = yield Find(self.inner, forms.queries, limit, filters)
        form = QueryForm(query, self.query_transform.name, forms.note)
        return fused([formed(each, form) for each in found], self.mode, limit)


def fused(
    rankings: Sequence[Sequence[ScoredNode]], mode: Mode, top_k: int | None
) -> list[ScoredNode]:
    """Return one ranking of several, as long as the longest unless ``top_k`` says; one as it is."""
    if len(rankings) == 1:
        return list(rankings[0][:top_k])
    longest = max((len(each) for each in rankings), default=0)
    return fuse(rankings, mode, top_k=longest if top_k is None else top_k)


def formed(results: Sequence[ScoredNode], form: QueryForm) -> list[ScoredNode]:
    """Return results whose evidence tells that they were found for a form of this query."""
    return [
        replace(
            result,
            evidence=tuple(replace(match, forms=(form, *match.forms)) for match in result.evidence),
        )
        for result in results
    ]


def check_retriever(inner: Retrieves) -> Retrieves:
    """Return what is a retriever.

    Raises:
        TypeError: If it is none.
    """
    if not all(callable(getattr(inner, name, None)) for name in ("retrieve", "aretrieve")):
        raise TypeError(
            f"a retriever is an object with retrieve() and aretrieve(), not {inner!r:.80}"
        )
    return inner
