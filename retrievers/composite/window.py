"""Extend results by the nodes before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from ...nodegraph.navigation import kin, path_to
from ...nodegraph.node import Node
from ..protocols import RetrieverLike
from ..ranking import joined_span, merge
from ..results import Results, ScoredNode
from ..retrieval_conditions import Conditions, HitConditions
from ..validation import whole
from .postprocess_retriever import PostprocessRetriever

if TYPE_CHECKING:
    from ...nodegraph.graph import NodeGraph


class WindowRetriever(PostprocessRetriever):
    """A retriever that extends results by neighboring nodes and merges overlapping windows.

    Use it for small nodes that match precisely but require context. If the context is a group, such
    as sections, use ``Retriever(..., target=...)`` instead. Only the original nodes are compared
    with the query. A window ends before a neighbor that does not match the filters.

    A window of several nodes is a new node that is not stored in the graph. Its text is the span of
    the document from the first node to the last, ``root.text[start:end]``. If the nodes are not
    exact spans of the document, their texts are joined by line breaks. The id of the window is
    ``"{first id}..{last id}"``. Its group, metadata, parent and score are those of the best result.
    The window has the attributes ``parent`` and ``root``, but it cannot be passed to
    ``graph.find``; use the nodes in its evidence instead.

    Args:
        inner: Any retriever.
        before: The number of nodes of the same group that are added before a result.
        after: The number of nodes of the same group that are added after a result.
        top_k: The maximum number of results. Four times as many candidates are retrieved, and
            processed in order of score until enough windows exist. If they do not suffice, more
            candidates are retrieved, unless an inner retriever calls a model. If None, all results
            of the inner retriever are extended.

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
        ``SentenceWindowNodeParser`` of LlamaIndex, which stores windows as metadata of the nodes.
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
        """Extend the candidates, and return up to ``limit`` windows, best first."""
        windows: list[_Window] = []
        for rank, hit in enumerate(hits):
            if len(windows) == limit:
                break
            node = hit.node
            nodes = self._window_nodes(node, conditions([hit]))
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
        """Return a node with its neighbors, or only the node if it is not stored in the graph.

        A window ends before a neighbor that does not meet the conditions.
        """
        if hit.graph is None or hit.parent_id is None:
            return [hit]
        try:
            with hit.graph.reader.reading(hit.group):
                node = hit.graph.node(hit.id)
                if not conditions.met_by(node):  # the node was changed after the retrieval
                    return [hit]
                nodes = self._around(hit.graph, node)
                at = nodes.index(node)
                preceding = [*takewhile(conditions.met_by, reversed(nodes[:at]))]
                following = takewhile(conditions.met_by, nodes[at + 1 :])
                return [*reversed(preceding), node, *following]
        # The node was removed after the retrieval, or it was created by a retriever.
        except LookupError:
            return [hit]

    def _around(self, graph: NodeGraph, node: Node) -> list[Node]:
        """Return a node and its neighbors in document order. Conditions are not applied."""
        if node.document_id:
            return graph.reader.around(node, self.before, self.after)
        # The window may contain all nodes below the node that was derived from a whole group.
        path = path_to(graph, node.group)
        top = node
        for _ in path:
            if top.parent_id is not None:
                top = graph.node(top.parent_id)
        nodes = kin(graph, path, top)
        at = nodes.index(node)
        return nodes[max(0, at - self.before) : at + self.after + 1]


@dataclass(slots=True, eq=False)
class _Window:
    """A sequence of adjacent nodes, and the results among them by rank."""

    hits: dict[int, ScoredNode]
    nodes: list[Node]
    scope: tuple[object, ...]

    def joins(self, other: _Window) -> bool:
        """Return whether two windows must be merged into one result."""
        if self.scope != other.scope:
            return False
        first = self.nodes[0]
        last = self.nodes[-1]
        other_first = other.nodes[0]
        other_last = other.nodes[-1]
        if "" in (first.document_id, other_first.document_id):
            return (first.id, last.id) == (other_first.id, other_last.id)
        # The values of `order` are consecutive for the nodes of a document in a group.
        return first.order <= other_last.order + 1 and other_first.order <= last.order + 1

    def result(self) -> ScoredNode:
        """Convert the window to a result."""
        hits = [self.hits[rank] for rank in sorted(self.hits)]
        best = hits[0].node
        node = best if len(self.nodes) == 1 else _joined(self.nodes, best)
        return merge(node, hits, max(hit.score for hit in hits))


def _joined(nodes: Sequence[Node], template: Node) -> Node:
    """Create a node for the span of a document from the first to the last of several nodes.

    If a node is not an exact span of the document, or if the nodes are not in order, their texts
    are joined by line breaks. The group, parent and metadata of the new node are copied from
    ``template``.
    """
    document = ""
    if template.document_id:  # otherwise, the nodes were derived from a whole group
        with suppress(LookupError):  # The document was removed after the retrieval.
            document = template.root.text
    starts = [node.start or 0 for node in nodes if _is_span(node, document)]
    if len(starts) < len(nodes) or starts != sorted(starts):
        text = "\n".join([node.text for node in nodes])
        content = "\n".join([str(node.content) for node in nodes])
        return joined_span(nodes[0], nodes[-1], template, text, content)
    last = max(nodes, key=lambda node: node.end or 0)
    if last.end == nodes[0].end:
        return nodes[0]  # the first node contains the whole span
    text = document[nodes[0].start : last.end]
    node = joined_span(nodes[0], last, template, text, text)
    return replace(node, start=nodes[0].start, end=last.end)


def _is_span(node: Node, document: str) -> bool:
    has_span = node.start is not None and node.end is not None
    return has_span and document[node.start : node.end] == node.text
