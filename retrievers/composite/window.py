"""Retrievers that extend hits by neighboring nodes, or to the document of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Literal

from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import count_tokens
from ..protocols import RetrieverLike
from ..results import OutputOptions, Results, ScoredNode
from ..retrieval_conditions import Conditions, HitConditions
from ..validation import choice, whole
from .postprocessing import PostprocessRetriever, joined_node, merge_hits, span_node

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...nodegraph.graph import NodeGraph


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
        merge: Whether overlapping and adjacent windows of a document become one result. Equal
            windows are always merged.
        boundary: The limit of a window: the ``"document"``, or the ``"parent"`` of the hit.
        top_k: The maximum number of results. Four times as many hits are retrieved, and read in
            order of score until enough windows exist. If the hits do not suffice, more are
            retrieved, unless an inner retriever calls a model. None: the
            windows of all hits of the inner retriever.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If ``inner`` is not a retriever, or a number is not an integer.
        ValueError: If a number is out of range, or ``boundary`` is unknown.

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
        merge: bool = True,
        boundary: Literal["document", "parent"] = "document",
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(inner, top_k=top_k, **output)
        self.before = whole(before, "before", 0)
        self.after = whole(after, "after", 0)
        self.merge = merge
        self.boundary = choice(boundary, "boundary", ("document", "parent"))

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Return up to ``limit`` windows of hits, best first."""
        windows: list[_Window] = []
        for rank, hit in enumerate(hits):
            if len(windows) == limit:
                break
            nodes = self._window_nodes(hit.node, conditions([hit]))
            new = _Window([(rank, hit)], nodes, self._scope(hit.node))
            joined = [window for window in windows if window.joins(new, self.merge)]
            position = windows.index(joined[0]) if joined else len(windows)
            windows = [window for window in windows if window not in joined]
            for window in joined:
                new.add(window)
            windows.insert(position, new)
        return [window.result() for window in windows]

    def _scope(self, node: Node) -> tuple[object, ...]:
        """Return the common properties of the nodes of a window."""
        scope = (id(node.graph), node.group, node.document_id or node.id)
        return scope if self.boundary == "document" else (*scope, node.parent_id)

    def _window_nodes(self, hit: Node, conditions: Conditions) -> list[Node]:
        """Return a hit and its neighbors, or only the hit if its node is not stored.

        A window ends before a neighbor that does not meet the conditions of the hit.
        """
        if hit.graph is None or hit.parent_id is None:
            return [hit]
        cross_parents = self.boundary == "document"
        try:
            with hit.graph.reader.reading(hit.group):
                node = hit.graph.node(hit.id)
                if not conditions.met_by(node):  # changed after the retrieval
                    return [hit]
                before, after = _neighbors(hit.graph, node, cross_parents)
                return [
                    *list(takewhile(conditions.met_by, islice(before, self.before)))[::-1],
                    node,
                    *takewhile(conditions.met_by, islice(after, self.after)),
                ]
        except LookupError:  # removed after the retrieval, or created by a retriever
            return [hit]


@dataclass(slots=True, eq=False)
class _Window:
    """Adjacent nodes, and the hits among them with their ranks."""

    hits: list[tuple[int, ScoredNode]]
    nodes: list[Node]
    scope: tuple[object, ...]

    def add(self, other: _Window) -> None:
        """Add the nodes and hits of an overlapping or adjacent window."""
        nodes = {node.id: node for node in (*other.nodes, *self.nodes)}
        self.nodes = sorted(nodes.values(), key=lambda node: node.order)
        self.hits = sorted((*self.hits, *other.hits), key=lambda hit: hit[0])

    def joins(self, other: _Window, merge: bool) -> bool:
        """Return whether two windows become one result."""
        if self.scope != other.scope:
            return False
        first, last = self.nodes[0], self.nodes[-1]
        other_first, other_last = other.nodes[0], other.nodes[-1]
        if not merge or "" in (first.document_id, other_first.document_id):
            return (first.id, last.id) == (other_first.id, other_last.id)
        # `order` numbers the nodes of a document and group without gaps.
        return first.order <= other_last.order + 1 and other_first.order <= last.order + 1

    def result(self) -> ScoredNode:
        """Return the nodes as one result."""
        hits = [hit for _, hit in self.hits]
        best = hits[0].node
        if len(self.nodes) == 1:
            return merge_hits(best, hits)
        try:
            node = span_node(self.nodes, best, best.root.text)
        except LookupError:  # removed after the retrieval
            node = None
        return merge_hits(node or joined_node(self.nodes, best), hits)


def _neighbors(
    graph: NodeGraph, node: Node, cross_parents: bool
) -> tuple[Iterator[Node], Iterator[Node]]:
    """Return the neighbors of a node before and after it, nearest first.

    Siblings are read immediately, nodes beyond the parent during iteration.
    """
    if node.parent_id is None:
        return iter(()), iter(())
    parent = graph.node(node.parent_id)
    siblings = graph.reader.children_in(node.group, parent)
    position = next((at for at, sibling in enumerate(siblings) if sibling.id == node.id), None)
    if position is None:
        return iter(()), iter(())

    def beyond(step: Literal[-1, 1]) -> Iterator[Node]:
        if cross_parents:
            for next_parent in _neighbors(graph, parent, cross_parents)[step == 1]:
                yield from graph.reader.children_in(node.group, next_parent)[::step]

    before, after = siblings[:position][::-1], siblings[position + 1 :]
    return chain(before, beyond(-1)), chain(after, beyond(1))


class DocumentCompletionRetriever(PostprocessRetriever):
    """A retriever that replaces clustered hits by their document or by the span between them.

    Use it for questions about a whole document, such as a summary or a comparison of its parts. A
    document with at least two hits and at least ``share`` of all hits becomes one result, at the
    rank of its best hit and with the evidence of its hits. The result is the document, a node of
    ``ROOT``, if it is within ``limit``, otherwise the span from the first hit to the last if
    within ``limit``. Longer spans keep their hits. A span is a new node, as in
    ``WindowRetriever``. A document or span with nodes that fail the filters is never returned.

    Args:
        inner: Any retriever.
        share: The minimum share of hits in a cluster, above 0, at most 1. With 0.5, at most two
            documents can have a cluster, with 0.3 three.
        limit: The maximum length of a document or span.
        length: The function that measures lengths: ``count_tokens``, ``len`` for characters, or a
            model's tokenizer.
        top_k: The number of retrieved hits. None: the ``top_k`` of the inner retriever.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If ``inner`` is not a retriever, or ``length`` is not callable.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea. Hot tea. Cups.", "Iced tea.", "Rivers."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> completed = DocumentCompletionRetriever(Retriever(graph, "sentence"))
        >>> [result.node.text for result in completed("tea")]
        ['Green tea. Hot tea. Cups.', 'Iced tea.']

    Source:
        QAnything, which returns whole documents if all passages come from one or two files.
    """

    name = "complete"
    over_fetch = 1

    def __init__(
        self,
        inner: RetrieverLike,
        *,
        share: float = 0.5,
        limit: int = 2000,
        length: Callable[[str], int] = count_tokens,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(inner, top_k=top_k, **output)
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
        whole(limit, "limit", 1)
        if not callable(length):
            raise TypeError(
                f"length must be a function from a text to a number, got {length!r:.80}"
            )
        self.share, self.limit, self.length = share, limit, length

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Complete the documents that have enough of the hits."""
        by_document: dict[tuple[int, str], Results] = {}
        for hit in hits:
            by_document.setdefault((id(hit.node.graph), hit.node.document_id), []).append(hit)
        replacements: dict[int, ScoredNode | None] = {}  # by the id of a hit
        for of_document in by_document.values():
            if len(of_document) < max(2, self.share * len(hits)):
                continue
            nodes = [hit.node for hit in of_document]
            node = self._completed_node(nodes, conditions(of_document))
            if node is not None:
                replacements.update(dict.fromkeys(map(id, of_document)))
                replacements[id(of_document[0])] = merge_hits(node, of_document)
        results = [replacements.get(id(hit), hit) for hit in hits]
        return [result for result in results if result is not None][:limit]

    def _completed_node(self, nodes: list[Node], conditions: Conditions) -> Node | None:
        """Return the document of nodes, or its span from the first to the last, if short enough.

        What has nodes that do not meet the conditions is not returned.
        """
        best = nodes[0]
        if best.graph is None or not best.document_id:
            return None
        try:
            with best.graph.reader.reading(*{node.group for node in nodes}):
                root = best.graph.node(best.document_id)
                if self.length(root.text) <= self.limit and conditions.allow_whole(root, nodes):
                    return root
                # Of nodes with an equal start, the longest comes first.
                ordered = sorted(nodes, key=lambda node: (node.start or 0, -(node.end or 0)))
                node = span_node(ordered, best, root.text)
                if node is None or self.length(node.text) > self.limit:
                    return None
                span = range(node.start or 0, node.end or 0)
                return node if conditions.allow_whole(root, nodes, span) else None
        except LookupError:  # removed after the retrieval
            return None
