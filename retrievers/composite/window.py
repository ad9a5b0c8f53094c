"""Give hits their surroundings: neighbours, or the whole document where hits cluster in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...nodegraph import Node, NodeGraph
from ..protocols import RetrieverProtocol
from ..results import OutputFormat, ScoredNode
from .postprocessing import Around, joined, span, together


class WindowRetriever(Around):
    """Widen every hit by its neighbours; make one result of windows that overlap or touch.

    Choose it for small nodes that are found precisely and understood only in their surroundings;
    ``target=`` where those have a group of their own (a section). Only hits were compared with
    the query, and only they have to meet the filters.

    A window of several nodes is a node that the graph does not hold. Its text is the span of the
    document from the first node to the last, ``root.text[start:end]``; the nodes' texts joined
    by line breaks where they were not all cut out of the document. Its id is that of the first
    node, ``..`` and that of the last. Group, metadata and parent are those of its best hit; it
    knows its ``parent`` and ``root``, but ``graph.find`` does not know it: its evidence has the
    hits, from which to go on. Its score is that of its best hit.

    Args:
        inner: Any retriever.
        before: How many nodes of its group to put before a hit.
        after: How many to put after it.
        merge: Whether windows of one document that overlap, or follow on each other, are one
            result. Windows that are equal are one in any case.
        within: How far a window goes at most: ``"document"``, or the ``"parent"`` of the hit.
        top_k: How many results at most. Four times as many hits are asked for, and read best
            first until the windows are enough. None for what becomes of as many hits as the inner
            retriever gives on its own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If ``inner`` is no retriever, or a number no whole number.
        ValueError: If a number is out of range, or there is no such ``within``.

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
        LlamaIndex's ``SentenceWindowNodeParser``, which keeps windows as metadata of each node.
    """

    name = "window"

    def __init__(
        self,
        inner: RetrieverProtocol,
        before: int = 1,
        after: int = 1,
        *,
        merge: bool = True,
        within: Literal["document", "parent"] = "document",
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(inner, top_k=top_k, output_format=output_format, join=join)
        for name, number in (("before", before), ("after", after)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{name} is a whole number of nodes, not {number!r}")
            if number < 0:
                raise ValueError(f"{name} must be 0 or more, not {number!r}")
        if within not in ("document", "parent"):
            raise ValueError(f"within is 'document' or 'parent', not {within!r}")
        self.before, self.after, self.merge, self.within = before, after, merge, within

    def regroup(self, found: list[ScoredNode], limit: int | None) -> list[ScoredNode]:
        """Make windows of hits, best first, until there are ``limit``."""
        windows: list[_Window] = []
        for place, hit in enumerate(found):
            if len(windows) == limit:
                break
            window = _Window([(place, hit)], self._nodes(hit.node), self._home(hit.node))
            joined = [each for each in windows if each.joins(window, self.merge)]
            first = windows.index(joined[0]) if joined else len(windows)
            windows = [each for each in windows if each not in joined]
            windows.insert(first, _Window.of([*joined, window]))
        return [each.result() for each in windows]

    def _home(self, node: Node) -> tuple[object, ...]:
        """Return what windows that are to be one have in common."""
        home = (id(node.graph), node.group, node.document_id or node.id)
        return home if self.within == "document" else (*home, node.parent_id)

    def _nodes(self, node: Node) -> list[Node]:
        """Return a hit and its neighbours; the hit alone where its graph does not have it."""
        if node.graph is None or node.parent_id is None:
            return [node]
        far = self.within == "document"
        try:
            with node.graph.reading(node.group):
                here = node.graph.node(node.id)
                before = _some(_neighbours(node.graph, here, -1, far), self.before)
                after = _some(_neighbours(node.graph, here, 1, far), self.after)
        except LookupError:  # removed since it was found, or made by a retriever
            return [node]
        return [*before[::-1], here, *after]


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """Nodes that follow on each other, and the hits among them with their places."""

    hits: list[tuple[int, ScoredNode]]
    nodes: list[Node]
    home: tuple[object, ...]

    @classmethod
    def of(cls, windows: Sequence[_Window]) -> _Window:
        """Make one of windows that overlap or touch."""
        nodes = {node.id: node for each in windows for node in each.nodes}
        hits = sorted((row for each in windows for row in each.hits), key=lambda row: row[0])
        return cls(hits, sorted(nodes.values(), key=lambda node: node.order), windows[0].home)

    def joins(self, other: _Window, merge: bool) -> bool:
        """Tell whether two windows are to be one."""
        mine, others = self.nodes, other.nodes
        if self.home != other.home:
            return False
        if not merge or "" in (mine[0].document_id, others[0].document_id):
            return (mine[0].id, mine[-1].id) == (others[0].id, others[-1].id)
        # A document's nodes of a group are numbered without gaps.
        return mine[0].order <= others[-1].order + 1 and others[0].order <= mine[-1].order + 1

    def result(self) -> ScoredNode:
        """Return the nodes as one."""
        hits = [hit for _, hit in self.hits]
        best = hits[0].node
        if len(self.nodes) == 1:
            return joined(best, hits)
        try:
            made = span(self.nodes, best, best.root.text)
        except LookupError:  # removed since it was found
            made = None
        return joined(made or together(self.nodes, best), hits)


def _neighbours(graph: NodeGraph, node: Node, step: Literal[-1, 1], far: bool) -> Iterator[Node]:
    """Yield the nodes of a group before or after one, nearest first, in its parent or document."""
    if node.parent_id is None:
        return
    parent = graph.node(node.parent_id)
    siblings = graph.children_in(node.group, parent)
    place = next((at for at, each in enumerate(siblings) if each.id == node.id), None)
    if place is None:
        return
    yield from siblings[place + 1 :] if step == 1 else siblings[:place][::-1]
    if far:
        for uncle in _neighbours(graph, parent, step, far):
            yield from graph.children_in(node.group, uncle)[::step]


def _some(nodes: Iterator[Node], number: int) -> list[Node]:
    return [node for _, node in zip(range(number), nodes, strict=False)]
