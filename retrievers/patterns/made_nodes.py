"""Nodes that the graph does not hold: what stands between other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...nodegraph import Node
from ..scored_node import ScoredNode


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
