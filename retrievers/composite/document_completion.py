"""Answer with the whole of a document, or a span of it, where hits cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...nodegraph import Node, count_tokens
from ..protocols import RetrieverProtocol
from ..results import OutputFormat, ScoredNode
from .postprocessing import Around, joined, span


class CompletionRetriever(Around):
    """Where hits cluster in a document, answer with all of it, or with what lies between them.

    Choose it for questions about a document as a whole (a summary, a comparison of its parts),
    for which single passages are not enough. A document that has at least two hits, and at least
    ``share`` of all, becomes one result in the place of its best hit and with the evidence of
    all: the document, a node of ``ROOT``, if it is no longer than ``limit``; else the span from
    its first hit to its last, if that is no longer; else its hits stay as they are. A span is a
    node as ``WindowRetriever`` makes them.

    Args:
        inner: Any retriever; asked for as many results as are wanted.
        share: The share of the hits that makes a cluster, above 0, at most 1. With 0.5 two
            documents can have one, with 0.3 three.
        limit: How long a document or span may be.
        length: Measures that: ``count_tokens``, ``len`` for characters, a model's own counter.
        top_k: How many hits to ask for; None for as many as the inner retriever gives.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If ``inner`` is no retriever, or ``length`` no callable.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea. Hot tea. Cups.", "Iced tea.", "Rivers."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> completed = CompletionRetriever(Retriever(graph, "sentence"))
        >>> [result.node.text for result in completed("tea")]
        ['Green tea. Hot tea. Cups.', 'Iced tea.']

    Source:
        QAnything completes a document when its retrieved passages come from one or two files.
    """

    name = "complete"
    over_fetch = 1

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        share: float = 0.5,
        limit: int = 2000,
        length: Callable[[str], int] = count_tokens,
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(inner, top_k=top_k, output_format=output_format, join=join)
        if not 0 < share <= 1:
            raise ValueError(f"share is above 0 and at most 1, not {share!r}")
        if not limit >= 1:
            raise ValueError(f"limit must be 1 or more, not {limit!r}")
        if not callable(length):
            raise TypeError(f"length is a callable from a text to a number, not {length!r:.80}")
        self.share, self.limit, self.length = share, limit, length

    def regroup(self, found: list[ScoredNode], limit: int | None) -> list[ScoredNode]:
        """Complete the documents that have enough of the hits."""
        by_document: dict[tuple[int, str], list[ScoredNode]] = {}
        for hit in found:
            by_document.setdefault((id(hit.node.graph), hit.node.document_id), []).append(hit)
        completed: dict[int, ScoredNode] = {}  # by the id of the best hit
        gone: set[int] = set()
        for hits in by_document.values():
            whole = None
            if len(hits) >= 2 and len(hits) >= self.share * len(found):
                whole = self._completed(hits)
            if whole is not None:
                completed[id(hits[0])] = joined(whole, hits)
                gone.update(id(hit) for hit in hits[1:])
        results = [completed.get(id(hit), hit) for hit in found if id(hit) not in gone]
        return results[:limit]

    def _completed(self, hits: Sequence[ScoredNode]) -> Node | None:
        nodes = [hit.node for hit in hits]
        graph = nodes[0].graph
        if graph is None or not nodes[0].document_id:
            return None
        try:
            root = graph.node(nodes[0].document_id)
        except LookupError:  # removed meanwhile
            return None
        if self.length(root.text) <= self.limit:
            return root
        # Of those that begin together the longest comes first.
        nodes.sort(key=lambda node: (node.start or 0, -(node.end or 0)))
        cut = span(nodes, hits[0].node, root.text)
        return cut if cut is not None and self.length(cut.text) <= self.limit else None
