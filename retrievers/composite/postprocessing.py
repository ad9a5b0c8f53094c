"""Make results of the hits of another retriever: the base of windows and merging."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...nodegraph.node import Node
from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..foreign.foreign_retriever import check_in_graph
from ..plans.effects import fetch_until_full, find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..ranking import joined_span, merge
from ..results import OutputOptions, Results, ScoredNode, without_removed
from ..retrieval_conditions import HitConditions
from ..token_budget import without_budget
from ..tracing import start_span

if TYPE_CHECKING:
    from typing_extensions import Unpack

OVER_FETCH = 4
"""The number of retrieved hits per result."""


class PostprocessRetriever(BaseRetriever):
    """A base class for retrievers that convert the hits of another retriever to results.

    A subclass implements ``postprocess``. The hits must be nodes of a graph, unlike documents of
    other frameworks.

    Args:
        inner: Any retriever.
        top_k: The maximum number of results. None: the results of all hits of the inner
            retriever.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.
    """

    name = "postprocess"
    fetches_on = False
    """Whether more hits are retrieved if the hits yield fewer than ``top_k`` results."""

    def __init__(
        self,
        inner: RetrieverLike,
        *,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        self.inner = as_retriever(inner, "inner")
        check_in_graph(self.inner, type(self).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, top_k={self.top_k})"

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Convert hits to at most ``limit`` results.

        Args:
            hits: The hits, best first.
            limit: The maximum number of results. None: all.
            conditions: A function from hits to the conditions of their replacements.
        """
        raise NotImplementedError

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        conditions = HitConditions(filters)
        hit_counts: dict[str, int] = {}

        async def select(
            queries: Sequence[str], hits: Sequence[Results]
        ) -> list[tuple[Results, bool]]:
            hit_counts.update(zip(queries, map(len, hits), strict=True))
            results = await Do(
                lambda: [self.postprocess(without_removed(h), limit, conditions) for h in hits]
            )
            return [(created, limit is not None and len(created) < limit) for created in results]

        with start_span(self.name, queries=queries) as span, without_budget():
            if limit is None:
                hits = await find_all(self.inner, queries, None, filters)
                results = [created for created, _ in await select(queries, hits)]
            else:
                fetch_k = OVER_FETCH * limit
                max_fetch_k = sys.maxsize if self.fetches_on and self.is_free else fetch_k
                results = await fetch_until_full(
                    *(self.inner, queries, select),
                    fetch_k=fetch_k,
                    max_fetch_k=max_fetch_k,
                    filters=filters,
                )
            span.attributes["hits"] = sum(hit_counts[query] for query in queries)
            span.set_results(results)
        return results


def merge_hits(node: Node, hits: Sequence[ScoredNode]) -> ScoredNode:
    """Return a node as the result of several hits: their best score, the evidence of all."""
    return merge(node, hits, max(hit.score for hit in hits))


def span_node(nodes: Sequence[Node], template: Node, text: str) -> Node | None:
    """Return the span of a document from the first node to the last as a new node.

    None if a node is not an exact span of the document, or the nodes are out of order.

    Args:
        nodes: Nodes of the document, sorted by start.
        template: The source of the group, parent and metadata of the new node.
        text: The document's text.
    """
    starts = [node.start for node in nodes if node.start is not None]
    ends = [node.end for node in nodes if node.end is not None]
    if len(starts) < len(nodes) or len(ends) < len(nodes) or starts != sorted(starts):
        return None
    if any(text[node.start : node.end] != node.text for node in nodes):
        return None
    start, end = starts[0], max(ends)
    if (nodes[0].start, nodes[0].end) == (start, end):
        return nodes[0]  # the first node contains the span
    content = text[start:end]
    last = nodes[ends.index(end)]
    return replace(joined_span(nodes[0], last, template, content, content), start=start, end=end)


def joined_node(nodes: Sequence[Node], template: Node) -> Node:
    """Join nodes that are not a span of a document to a new node, with line breaks."""
    text = "\n".join(node.text for node in nodes)
    content = "\n".join(str(node.content) for node in nodes)
    return joined_span(nodes[0], nodes[-1], template, text, content)
