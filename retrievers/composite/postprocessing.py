"""What makes other results of the hits of another retriever: windows, parents, documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ...nodegraph import Node
from ..base_retriever import BaseRetriever, check_queries, effective_child_k
from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import OutputFormat, ScoredNode
from ..tracing import start_span
from ..validation import check_retriever, check_top_k

OVER_FETCH = 4  # hits that are asked for, for each result that is wanted


class Around(BaseRetriever):
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
        inner: RetrieverProtocol,
        *,
        top_k: int | None,
        output_format: OutputFormat | None,
        join: bool | str,
    ) -> None:
        self.inner = check_retriever(inner, "inner")
        self.top_k = None if top_k is None else check_top_k(top_k)
        super().__init__(output_format=output_format, join=join)

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
        with start_span(self.name, query=query) as done:
            found = self.inner.retrieve(query, top_k=asked, filters=filters)
            results = self.regroup(found, limit)
            done.attributes.update(hits=len(found), results=len(results))
        return results

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        limit, asked = self._limits(top_k)
        with start_span(self.name, query=query) as done:
            found = await self.inner.aretrieve(query, top_k=asked, filters=filters)
            results = await asyncio.to_thread(self.regroup, found, limit)
            done.attributes.update(hits=len(found), results=len(results))
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
        return limit, effective_child_k(asked)


def span(nodes: Sequence[Node], like: Node, text: str) -> Node | None:
    """Return the span of a document from the first of its nodes to the last.

    None where a node was not cut out of the document as it is, or they are not in its order.

    Args:
        nodes: Nodes of the document, by where they begin.
        like: The node whose group, parent and metadata it gets.
        text: The document's text.
    """
    starts = [node.start for node in nodes if node.start is not None]
    ends = [node.end for node in nodes if node.end is not None]
    if len(starts) < len(nodes) or len(ends) < len(nodes) or starts != sorted(starts):
        return None
    if any(text[node.start : node.end] != node.text for node in nodes):
        return None
    begin, end = starts[0], max(ends)
    last = nodes[ends.index(end)]
    if (nodes[0].start, nodes[0].end) == (begin, end):
        return nodes[0]  # the others are within it
    return _made(nodes[0], last, like, text[begin:end], None, (begin, end))


def together(nodes: Sequence[Node], like: Node) -> Node:
    """Join nodes that are no span of a document."""
    text = "\n".join(node.text for node in nodes)
    return _made(nodes[0], nodes[-1], like, text, "\n".join(str(n.content) for n in nodes), None)


def _made(
    first: Node, last: Node, like: Node, text: str, content: str | None, at: tuple[int, int] | None
) -> Node:
    start, end = at or (None, None)
    return replace(
        like,
        text=text,
        content=text if content is None else content,
        start=start,
        end=end,
        offset=None,
        id=f"{first.id}..{last.id}",
        order=first.order,
    )


def joined(node: Node, hits: Sequence[ScoredNode]) -> ScoredNode:
    """Return a result with the best score and the evidence of all hits."""
    evidence = dict.fromkeys(match for hit in hits for match in hit.evidence)
    return ScoredNode(node, max(hit.score for hit in hits), tuple(evidence))
