"""Complete a document, or a span of it, where hits cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import count_tokens
from ..protocols import RetrieverLike
from ..results import OutputOptions, Results, ScoredNode
from ..retrieval_conditions import Conditions, HitConditions
from ..validation import whole
from .postprocessing import PostprocessRetriever, merge_hits, span_node

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DocumentCompletionRetriever(PostprocessRetriever):
    """Return the full document, or the span between its hits, where hits cluster.

    Choose it for questions about a document as a whole (a summary, a comparison of its parts),
    for which single passages are not enough. A document that has at least two hits, and at least
    ``share`` of all, becomes one result, at the rank of its best hit and with the evidence of all
    its hits: the document, a node of ``ROOT``, if it is no longer than ``limit``; else the span
    from its first hit to its last, if that is no longer; else its hits stay as they are. A span
    is a new node like those of ``WindowRetriever``. What contains nodes that do not meet the
    filters is not returned.

    Args:
        inner: Any retriever.
        share: The share of the hits that is a cluster, above 0, at most 1. With 0.5 at most two
            documents can have one, with 0.3 three.
        limit: The maximum length of a document or span.
        length: Measures the length: ``count_tokens``, ``len`` for characters, a model's tokenizer.
        top_k: How many hits to retrieve; None for the inner retriever's own number.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If ``inner`` is no retriever, or ``length`` no callable.
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
        QAnything completes a document when its retrieved passages come from one or two files.
    """

    name = "complete"
    over_fetch = 1
    needs_graph = True

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
            raise ValueError(f"share is above 0 and at most 1, not {share!r}")
        whole(limit, "limit", 1)
        if not callable(length):
            raise TypeError(f"length is a callable from a text to a number, not {length!r:.80}")
        self.share, self.limit, self.length = share, limit, length

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Complete the documents that have enough of the hits."""
        by_document: dict[tuple[int, str], Results] = {}
        for hit in hits:
            by_document.setdefault((id(hit.node.graph), hit.node.document_id), []).append(hit)
        completed: dict[int, ScoredNode] = {}  # by the id of the best hit
        replaced: set[int] = set()
        for document_hits in by_document.values():
            if len(document_hits) < max(2, self.share * len(hits)):
                continue
            nodes = [hit.node for hit in document_hits]
            node = self._completed_node(nodes, conditions(document_hits))
            if node is not None:
                completed[id(document_hits[0])] = merge_hits(node, document_hits)
                replaced.update(id(hit) for hit in document_hits[1:])
        results = [completed.get(id(hit), hit) for hit in hits if id(hit) not in replaced]
        return results[:limit]

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
                # Of nodes with the same start the longest comes first.
                ordered = sorted(nodes, key=lambda node: (node.start or 0, -(node.end or 0)))
                node = span_node(ordered, best, root.text)
                if node is None or self.length(node.text) > self.limit:
                    return None
                span = range(node.start or 0, node.end or 0)
                return node if conditions.allow_whole(root, nodes, span) else None
        except LookupError:  # removed after the retrieval
            return None
