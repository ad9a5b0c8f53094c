"""Give hits their surroundings: neighbours, or the whole document where hits cluster in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..nodegraph import Node, NodeGraph, count_tokens
from .answering import Answering, check_queries
from .filters import Filters
from .output import OutputFormat, check_top_k
from .protocols import Retrieves
from .scored_node import ScoredNode
from .trace import stage

OVER_FETCH = 4  # hits that are asked for, for each result that is wanted


class Around(Answering):
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
        inner: Retrieves,
        *,
        top_k: int | None,
        output_format: OutputFormat | None,
        join: bool | str,
    ) -> None:
        if not all(callable(getattr(inner, n, None)) for n in ("retrieve", "aretrieve")):
            raise TypeError(
                f"inner is an object with retrieve() and aretrieve(), not {inner!r:.80}"
            )
        self.inner = inner
        self.top_k = None if top_k is None else check_top_k(top_k)
        self._answer_in(output_format, join)

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
        with stage(self.name, query=query) as done:
            found = self.inner.retrieve(query, top_k=asked, filters=filters)
            results = self.regroup(found, limit)
            done.facts.update(hits=len(found), results=len(results))
        return results

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        limit, asked = self._limits(top_k)
        with stage(self.name, query=query) as done:
            found = await self.inner.aretrieve(query, top_k=asked, filters=filters)
            results = await asyncio.to_thread(self.regroup, found, limit)
            done.facts.update(hits=len(found), results=len(results))
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

    def _limits(self, top_k: int | None) -> tuple[int | None, int | None]:
        limit = self.top_k if top_k is None else check_top_k(top_k)
        return limit, None if limit is None else self.over_fetch * limit


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
        inner: Retrieves,
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
        inner: Retrieves,
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
                completed[id(hits[0])] = _joined(whole, hits)
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
            return _joined(best, hits)
        try:
            made = span(self.nodes, best, best.root.text)
        except LookupError:  # removed since it was found
            made = None
        return _joined(made or _together(self.nodes, best), hits)


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


def _together(nodes: Sequence[Node], like: Node) -> Node:
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


def _joined(node: Node, hits: Sequence[ScoredNode]) -> ScoredNode:
    """Return a result with the best score and the evidence of all hits."""
    evidence = dict.fromkeys(match for hit in hits for match in hit.evidence)
    return ScoredNode(node, max(hit.score for hit in hits), tuple(evidence))


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
