"""Replace hits by their parent where enough of its children were found, level by level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import ExitStack

from ...nodegraph import ROOT, Node
from ...nodegraph.navigation import path_to
from ..protocols import RetrieverProtocol
from ..ranking import Lift
from ..results import OutputFormat, ScoredNode
from .postprocessing import Around

Key = tuple[int, str]
"""A node of one of several graphs."""


class AutoMergeRetriever(Around):
    """Climb to the parent where more than ``ratio`` of its children were found, and on from there.

    Choose it to answer with small nodes where few match, and with their whole where many do;
    ``target=`` of a retriever lifts every hit. Parents merge into theirs by the same rule, any
    number of levels up, until nothing merges. A result stands for all that was found below it:
    no result is within another one.

    Children are counted by group: a parent with sentences and chunks merges when enough of
    either are found.

    Args:
        inner: Any retriever.
        ratio: The share of a group's children of one parent that has to be exceeded, from 0 to
            below 1.
        target: The highest group to climb to.
        lift: What a merged node scores, of the hits it stands for: ``"max"``, the ``"mean"`` or
            the ``"sum"``. LlamaIndex has the mean, by which a merged node comes behind its own
            best child.
        top_k: How many results at most. Four times as many hits are asked for, and read best
            first until the results are enough. None for what becomes of as many hits as the inner
            retriever gives on its own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If ``inner`` is no retriever, or a number no number.
        ValueError: If a number is out of range, or there is no such way to lift.
        UnknownGroupError: In a retrieval, if the graph has no group ``target``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea. Black tea. Cups.\\nRivers. Seas. Tea boats.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", lambda text: text.split(". "), parent="line")
        >>> merging = AutoMergeRetriever(Retriever(graph, "word"), target="line")
        >>> [result.node.text for result in merging("tea")]
        ['Green tea. Black tea. Cups.', 'Tea boats.']

    Source:
        LlamaIndex's ``AutoMergingRetriever``, which besides fills in a node that is missing
        between two hits; ``WindowRetriever`` does that.
    """

    name = "merge"

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        ratio: float = 0.5,
        target: str = ROOT,
        lift: Lift = "max",
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(inner, top_k=top_k, output_format=output_format, join=join)
        if isinstance(ratio, bool) or not isinstance(ratio, int | float):
            raise TypeError(f"ratio is a number, not {ratio!r:.80}")
        if not 0 <= ratio < 1:
            raise ValueError(
                f"ratio is from 0 to below 1, not {ratio!r}: a parent merges when more than this "
                "share of its children were found"
            )
        if not isinstance(target, str):
            raise TypeError(f"target is the name of a group, not {target!r:.80}")
        if lift not in ("max", "sum", "mean"):
            raise ValueError(f"lift is 'max', 'sum' or 'mean', not {lift!r}")
        self.ratio, self.target, self.lift = ratio, target, lift

    def regroup(self, found: list[ScoredNode], limit: int | None) -> list[ScoredNode]:
        """Merge hits, of the best first as many as it takes for ``limit`` results."""
        family = _Family(self.target, {hit.node.group for hit in found})
        with ExitStack() as held:
            graphs = {hit.node.graph for hit in found if hit.node.graph is not None}
            for graph in sorted(graphs, key=id):  # in one order, or two could deadlock
                graph.ancestry(self.target)
                groups = {hit.node.group for hit in found if hit.node.graph is graph}
                held.enter_context(graph.reading(*sorted(groups)))
            read = len(found) if limit is None else min(limit, len(found))
            results = self._merged(found[:read], family)
            while limit is not None and len(results) < limit and read < len(found):
                # Another hit makes one more result at most, so none is read too many.
                read = min(len(found), read + limit - len(results))
                results = self._merged(found[:read], family)
        return results

    def _merged(self, found: Sequence[ScoredNode], family: _Family) -> list[ScoredNode]:
        nodes = family.merge([hit.node for hit in found], self.ratio)
        hits: dict[Key, list[ScoredNode]] = defaultdict(list)
        for hit in found:
            top = next(key for key in family.line(hit.node)[::-1] if key in nodes)
            hits[top].append(hit)
        results = [self._result(nodes[key], some) for key, some in hits.items()]
        if self.lift == "max":
            return results  # in the order of their best hits
        return sorted(results, key=lambda result: -result.score)

    def _result(self, node: Node, hits: Sequence[ScoredNode]) -> ScoredNode:
        scores = list({_key(hit.node): hit.score for hit in reversed(hits)}.values())
        score = max(scores) if self.lift == "max" else sum(scores)
        if self.lift == "mean":
            score /= len(scores)
        evidence = dict.fromkeys(match for hit in hits for match in hit.evidence)
        return ScoredNode(node, score, tuple(evidence))


class _Family:
    """Know the parents of hits and how many children those have; what was asked is kept.

    Args:
        target: The highest group to climb to.
        groups: The groups of the hits, which may be higher.
    """

    def __init__(self, target: str, groups: Collection[str]) -> None:
        self._target = target
        self._groups = groups
        self._lines: dict[Key, list[Key]] = {}
        self._nodes: dict[Key, Node] = {}
        self._sizes: dict[tuple[Key, str], int] = {}
        self._above: dict[tuple[int, str], list[str]] = {}

    def line(self, node: Node) -> list[Key]:
        """Return a node and its ancestors, as far as they matter, from below."""
        key = _key(node)
        if key not in self._lines:
            self._nodes[key] = node
            parent = self._parent(node)
            self._lines[key] = [key, *(self.line(parent) if parent is not None else ())]
        return self._lines[key]

    def merge(self, nodes: Sequence[Node], ratio: float) -> dict[Key, Node]:
        """Return the nodes that are left when all that can be merged is, none above another."""
        left = dict.fromkeys(self.line(node)[0] for node in nodes)
        while True:
            left = {key: None for key in left if not any(k in left for k in self._lines[key][1:])}
            found: dict[tuple[Key, str], int] = defaultdict(int)
            for key in left:
                if self._target in self._groups_above(self._nodes[key]) and self._lines[key][1:]:
                    found[self._lines[key][1], self._nodes[key].group] += 1
            merged = [
                parent
                for (parent, group), number in found.items()
                if number > ratio * self._size(parent, group)
            ]
            if not merged:
                return {key: self._nodes[key] for key in left}
            left.update(dict.fromkeys(merged))

    def _parent(self, node: Node) -> Node | None:
        """Return the parent, None where no group above is the target or has hits."""
        above = self._groups_above(node)
        if node.graph is None or node.parent_id is None:
            return None
        if self._target not in above and not any(name in self._groups for name in above):
            return None
        try:
            return node.graph.node(node.parent_id)
        except LookupError:  # removed since it was found
            return None

    def _groups_above(self, node: Node) -> list[str]:
        key = (id(node.graph), node.group)
        if key not in self._above:
            path = [] if node.graph is None else path_to(node.graph, node.group)
            self._above[key] = [name for name in path if name != node.group]
        return self._above[key]

    def _size(self, parent: Key, group: str) -> int:
        if (parent, group) not in self._sizes:
            node = self._nodes[parent]
            assert node.graph is not None
            self._sizes[parent, group] = len(node.graph.children_in(group, node))
        return self._sizes[parent, group]


def _key(node: Node) -> Key:
    return id(node.graph), node.id
