"""Retrievers that convert hits to other results, such as windows of neighboring nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from ...nodegraph.node import Node
from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever, check_in_graph
from ..plans.effects import fetch_until_full, find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..ranking import joined_span, merge
from ..results import Results, ScoredNode, without_removed
from ..retrieval_conditions import Conditions, HitConditions
from ..token_budget import without_budget
from ..tracing import start_span
from ..validation import whole

if TYPE_CHECKING:
    from ...nodegraph.graph import NodeGraph

_OVER_FETCH = 4  # retrieved hits per result


class PostprocessRetriever(BaseRetriever):
    """A base class for retrievers that convert the hits of another retriever to results.

    A subclass implements ``postprocess``. The hits must be nodes of a graph, unlike documents of
    other frameworks.

    Args:
        inner: Any retriever.
        top_k: The maximum number of results. None: the results of all hits of the inner
            retriever.
    """

    name = "postprocess"
    fetches_on = False
    """Whether more hits are retrieved if the hits yield fewer than ``top_k`` results."""

    def __init__(self, inner: RetrieverLike, *, top_k: int | None = None) -> None:
        super().__init__(top_k=top_k)
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
                fetch_k = _OVER_FETCH * limit
                maximum = sys.maxsize if self.fetches_on and self.is_free else fetch_k
                options = {"fetch_k": fetch_k, "max_fetch_k": maximum}
                results = await fetch_until_full(
                    self.inner, queries, select, filters=filters, **options
                )
            span.attributes["hits"] = sum(hit_counts[query] for query in queries)
            span.set_results(results)
        return results


class WindowRetriever(PostprocessRetriever):
    """A retriever that extends hits by neighboring nodes and merges overlapping windows.

    Use it for small nodes that match precisely but require context. If the context is a group,
    such as sections, use ``Retriever(..., target=...)`` instead. Only the hits are compared with
    the query. A window ends before a neighbor that fails the filters.

    A window of several nodes is a new node that is not stored. Its text is the span of the
    document from the first node to the last, ``root.text[start:end]``. If the nodes are not exact
    spans of the document, their texts are joined by line breaks. Its id is
    ``"{first id}..{last id}"``. Its group, metadata, parent and score come from the best hit. It
    has ``parent`` and ``root``, but ``graph.find`` rejects it: use the hits in its evidence.

    Args:
        inner: Any retriever.
        before: The number of added nodes before a hit, from the group of the hit.
        after: The number of added nodes after a hit.
        top_k: The maximum number of results. Four times as many hits are retrieved, and read in
            order of score until enough windows exist. If the hits do not suffice, more are
            retrieved, unless an inner retriever calls a model. None: the
            windows of all hits of the inner retriever.

    Raises:
        TypeError: If ``inner`` is not a retriever, or a number is not an integer.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add("Tea is a drink. It has caffeine. Rivers run. So do noses.")
        >>> graph.create_node_group("sentence", split_sentences)
        >>> windows = WindowRetriever(Retriever(graph, "sentence"), before=0)
        >>> [result.node.text for result in windows("tea")]
        ['Tea is a drink. It has caffeine.']

    Source:
        LlamaIndex's ``SentenceWindowNodeParser``, which stores windows as metadata of the nodes.
    """

    name = "window"
    fetches_on = True

    def __init__(
        self,
        inner: RetrieverLike,
        before: int = 1,
        after: int = 1,
        *,
        top_k: int | None = None,
    ) -> None:
        super().__init__(inner, top_k=top_k)
        self.before = whole(before, "before", 0)
        self.after = whole(after, "after", 0)

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Return up to ``limit`` windows of hits, best first."""
        windows: list[_Window] = []
        for rank, hit in enumerate(hits):
            if len(windows) == limit:
                break
            node, nodes = hit.node, self._window_nodes(hit.node, conditions([hit]))
            scope = (id(node.graph), node.group, node.document_id or node.id)
            new = _Window({rank: hit}, nodes, scope)
            joined = [window for window in windows if window.joins(new)]
            position = windows.index(joined[0]) if joined else len(windows)
            windows = [window for window in windows if window not in joined]
            for window in joined:
                new.hits |= window.hits
                together = {node.id: node for node in (*window.nodes, *new.nodes)}
                new.nodes = sorted(together.values(), key=lambda node: node.order)
            windows.insert(position, new)
        return [window.result() for window in windows]

    def _window_nodes(self, hit: Node, conditions: Conditions) -> list[Node]:
        """Return a hit and its neighbors, or only the hit if its node is not stored.

        A window ends before a neighbor that does not meet the conditions of the hit.
        """
        if hit.graph is None or hit.parent_id is None:
            return [hit]
        try:
            with hit.graph.reader.reading(hit.group):
                node = hit.graph.node(hit.id)
                if not conditions.met_by(node):  # changed after the retrieval
                    return [hit]
                before, after = _neighbors(hit.graph, node)
                return [
                    *list(takewhile(conditions.met_by, islice(before, self.before)))[::-1],
                    node,
                    *takewhile(conditions.met_by, islice(after, self.after)),
                ]
        except LookupError:  # removed after the retrieval, or created by a retriever
            return [hit]


@dataclass(slots=True, eq=False)
class _Window:
    """Adjacent nodes, and the hits among them by rank."""

    hits: dict[int, ScoredNode]
    nodes: list[Node]
    scope: tuple[object, ...]

    def joins(self, other: _Window) -> bool:
        """Return whether two windows become one result."""
        if self.scope != other.scope:
            return False
        first, last = self.nodes[0], self.nodes[-1]
        other_first, other_last = other.nodes[0], other.nodes[-1]
        if "" in (first.document_id, other_first.document_id):
            return (first.id, last.id) == (other_first.id, other_last.id)
        # `order` numbers the nodes of a document and group without gaps.
        return first.order <= other_last.order + 1 and other_first.order <= last.order + 1

    def result(self) -> ScoredNode:
        """Return the nodes as one result."""
        hits = [self.hits[rank] for rank in sorted(self.hits)]
        best = hits[0].node
        node = best if len(self.nodes) == 1 else _joined(self.nodes, best)
        return merge(node, hits, max(hit.score for hit in hits))


def _joined(nodes: Sequence[Node], template: Node) -> Node:
    """Return a span of a document from the first node to the last as a new node.

    If a node is not an exact span of the document, or the nodes are out of order, their texts are
    joined by line breaks. The group, parent and metadata come from the template.
    """
    try:
        document = template.root.text
    except LookupError:  # removed after the retrieval
        document = ""
    spans = [
        (node.start, node.end)
        for node in nodes
        if node.start is not None
        and node.end is not None
        and document[node.start : node.end] == node.text
    ]
    if len(spans) < len(nodes) or spans != sorted(spans, key=itemgetter(0)):
        texts, contents = zip(*((node.text, str(node.content)) for node in nodes), strict=True)
        return joined_span(nodes[0], nodes[-1], template, "\n".join(texts), "\n".join(contents))
    start, end = spans[0][0], max(end for _, end in spans)
    if spans[0] == (start, end):
        return nodes[0]  # the first node contains the span
    last = nodes[[end for _, end in spans].index(end)]
    text = document[start:end]
    return replace(joined_span(nodes[0], last, template, text, text), start=start, end=end)


def _neighbors(graph: NodeGraph, node: Node) -> tuple[Iterator[Node], Iterator[Node]]:
    """Return the neighbors of a node before and after it, nearest first.

    Siblings are read immediately, nodes beyond the parent during iteration.
    """
    if node.parent_id is None:
        return iter(()), iter(())
    parent = graph.node(node.parent_id)
    siblings = graph.reader.children_in(node.group, parent)
    position = [sibling.id for sibling in siblings].index(node.id)

    def beyond(step: Literal[-1, 1]) -> Iterator[Node]:
        for next_parent in _neighbors(graph, parent)[step == 1]:
            yield from graph.reader.children_in(node.group, next_parent)[::step]

    before, after = siblings[:position][::-1], siblings[position + 1 :]
    return chain(before, beyond(-1)), chain(after, beyond(1))
