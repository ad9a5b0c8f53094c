"""Replace hits by their parent where enough of its children are hits, level by level."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING

from ...nodegraph.navigation import path_to
from ...nodegraph.node import ROOT, Node
from ..indexes.current import reading
from ..protocols import RetrieverLike, by_score
from ..ranking import Lift, lifted_score, merge
from ..results import Results
from ..retrieval_conditions import HitConditions
from ..validation import check_number, choice
from .window import PostprocessRetriever

if TYPE_CHECKING:
    from ...nodegraph.graph import NodeGraph

Key = tuple[int, str]
"""The id of a graph object and of a node."""


class AutoMergeRetriever(PostprocessRetriever):
    """A retriever that replaces hits by their parent if most of its children are hits.

    A parent requires a share of hits above ``ratio``. Use it to return small nodes if few match,
    and their parent if many match. The ``target`` of a retriever lifts every hit instead. Merging
    repeats on all levels up to ``target``. A result represents all hits below it: no result is an
    ancestor of another result. A parent with children that fail the filters is never returned.

    Children are counted per group: a parent of sentences and chunks merges if enough nodes of
    either group are hits.

    Args:
        inner: Any retriever.
        ratio: The exclusive minimum share of hits among a parent's children of one group, from 0
            to below 1.
        target: The highest group to merge into, ``"ROOT"`` for whole documents. None: the highest
            group below the documents, or ``"ROOT"`` if all hits are direct children of documents.
        lift: The score of a merged node from its hits: ``"max"``, ``"mean"`` or ``"sum"``, as in
            ``Retriever``. LlamaIndex uses the mean, which ranks a merged node behind its best
            child.
        top_k: The maximum number of results. Four times as many hits are retrieved, and read in
            order of score until enough results exist. None: the results of all hits of the inner
            retriever.

    Raises:
        TypeError: If ``inner`` is not a retriever, or a number has a wrong type.
        ValueError: If a number is out of range, or ``lift`` is unknown.
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
        LlamaIndex's ``AutoMergingRetriever``. It adds missing nodes between two hits as well, for
        which nodekin has ``WindowRetriever``.
    """

    name = "merge"

    def __init__(
        self,
        inner: RetrieverLike,
        *,
        ratio: float = 0.5,
        target: str | None = None,
        lift: Lift = "max",
        top_k: int | None = None,
    ) -> None:
        super().__init__(inner, top_k=top_k)
        check_number(ratio, "ratio")
        if not 0 <= ratio < 1:
            raise ValueError(
                f"ratio must be from 0 to below 1, got {ratio!r}: a parent replaces its children "
                "if more than this share of them are hits"
            )
        self.ratio = ratio
        self.target = target
        self.lift = choice(lift, "lift", ("max", "sum", "mean"))

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Merge the best hits, as many as ``limit`` results require."""
        groups: dict[NodeGraph, set[str]] = defaultdict(set)
        for hit in hits:
            if hit.node.graph is not None:
                groups[hit.node.graph].add(hit.node.group)
        target = self.target
        if target is not None:
            for graph in groups:
                graph.reader.lineage(target)  # raises if the group is unknown
        elif all(len(path_to(graph, n)) < 3 for graph, names in groups.items() for n in names):
            target = ROOT
        nodes: dict[Key, Node] = {}
        paths: dict[Key, list[Key]] = {}  # keys from a node to its document

        def path_up(node: Node) -> list[Key]:
            key = _key(node)
            if key not in paths:
                nodes[key] = node
                try:
                    parent = node.parent
                except LookupError:  # removed after the retrieval
                    parent = None
                paths[key] = [key, *(path_up(parent) if parent is not None else ())]
            return paths[key]

        @cache
        def least_count(key: Key, group: str) -> float:
            """Return the exclusive minimum of hits among the children of a node in a group."""
            parent = nodes[key]
            assert parent.graph is not None
            above = path_to(parent.graph, group)[:-1]
            if not (len(above) > 1 if target is None else target in above):
                return math.inf
            below = [hit for hit in hits if key in path_up(hit.node)[1:]]
            if not all(conditions([hit]).allow_whole(parent, [hit.node]) for hit in below):
                return math.inf
            return self.ratio * len(parent.graph.reader.children_in(group, parent))

        def merged(some: Results) -> Results:
            """Merge hits until nothing merges, without results inside other results."""
            keys = {path_up(hit.node)[0] for hit in some}
            new = keys
            while new:
                keys = keys | new
                keys = {key for key in keys if keys.isdisjoint(paths[key][1:])}
                pairs = ((up, nodes[key].group) for key in keys for up in paths[key][1:2])
                new = {
                    up for (up, group), n in Counter(pairs).items() if n > least_count(up, group)
                }
            by_top: dict[Key, Results] = defaultdict(list)
            for hit in some:
                by_top[next(key for key in path_up(hit.node)[::-1] if key in keys)].append(hit)
            results = []
            for key, below in by_top.items():
                # If a node is a hit twice, its best score counts.
                scores = {_key(hit.node): hit.score for hit in reversed(below)}
                score = lifted_score([*scores.values()], self.lift)
                results.append(merge(nodes[key], below, score))
            return results if self.lift == "max" else by_score(results)

        results: Results = []
        enough = len(hits) if limit is None else limit
        read = 0
        with reading(groups):
            while len(results) < enough and read < len(hits):
                # Each further hit adds at most one result, so no hit is read unnecessarily.
                read += enough - len(results)
                results = merged(hits[:read])
        return results


def _key(node: Node) -> Key:
    return id(node.graph), node.id
