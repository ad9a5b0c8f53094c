"""Replace results with their parent node if enough of its children were found."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ...nodegraph.navigation import path_to
from ...nodegraph.node import ROOT, Node
from ..indexes.current import reading
from ..protocols import RetrieverLike, by_score
from ..ranking import Lift, lifted_score, merge
from ..results import Results
from ..retrieval_conditions import HitConditions
from ..validation import check_number, choice
from .postprocess_retriever import PostprocessRetriever

if TYPE_CHECKING:
    from ...nodegraph.graph import NodeGraph

Key = tuple[int, str]
"""The key of a node: the id of its graph object, and the id of the node."""

_DIRECT = 2  # the number of groups on a path from documents to their direct children


class AutoMergeRetriever(PostprocessRetriever):
    """A retriever that replaces results with their parent if most of its children were found.

    A parent replaces its children if the share of results among them is above ``ratio``. Use this
    retriever to return small nodes if only a few match, and their parent if many of them match. (In
    contrast, the ``target`` of a ``Retriever`` replaces every result with its parent.) Merging is
    repeated on all levels up to ``target``, so that no result is an ancestor of another result. A
    parent is never returned if some of its children do not match the filters.

    Children are counted per group. For example, a parent of sentences and chunks is used if enough
    sentences or enough chunks were found.

    Args:
        inner: Any retriever.
        ratio: The share of a parent's children in one group that must be exceeded. The value must
            be at least 0 and below 1.
        target: The highest group to merge into, such as ``"ROOT"`` for whole documents. If None, it
            is the highest group below the documents, or ``"ROOT"`` if all results are direct
            children of documents.
        lift: The method that computes the score of a merged node from the scores of the results
            below it: ``"max"``, ``"mean"`` or ``"sum"``, as in ``Retriever``. LlamaIndex uses the
            mean, which ranks a merged node behind its best child.
        top_k: The maximum number of results. Four times as many candidates are retrieved, and
            processed in order of score until enough results exist. If None, all results of the
            inner retriever are used.

    Raises:
        TypeError: If ``inner`` is not a retriever, or a number has the wrong type.
        ValueError: If a number is out of range, or ``lift`` is unknown.
        UnknownGroupError: During retrieval, if the graph has no group named ``target``.

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
        ``AutoMergingRetriever`` of LlamaIndex. It also inserts missing nodes between two results,
        for which ``WindowRetriever`` is intended here.
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
        """Merge the best candidates until there are ``limit`` results."""
        groups: dict[NodeGraph, set[str]] = defaultdict(set)
        for hit in hits:
            if hit.node.graph is not None:
                groups[hit.node.graph].add(hit.node.group)
        hierarchy = _Hierarchy(hits, self.ratio, self._highest_group(groups), conditions)
        results: Results = []
        enough = len(hits) if limit is None else limit
        read = 0
        with reading(groups):
            while len(results) < enough and read < len(hits):
                # Each candidate adds at most one result, so no candidate is read unnecessarily.
                read += enough - len(results)
                results = self._merged(hits[:read], hierarchy)
        return results

    def _highest_group(self, groups: Mapping[NodeGraph, set[str]]) -> str | None:
        """Return the highest group to merge into, or None for any group below the documents."""
        if self.target is not None:
            for graph in groups:
                graph.reader.lineage(self.target)  # raises if the group is unknown
            return self.target
        for graph, names in groups.items():
            if any(len(path_to(graph, name)) > _DIRECT for name in names):
                return None
        return ROOT

    def _merged(self, hits: Results, hierarchy: _Hierarchy) -> Results:
        """Return a result for each node that remains after merging."""
        tops = hierarchy.merged(hits)
        by_top: dict[Key, Results] = defaultdict(list)
        for hit in hits:
            by_top[hierarchy.highest(hit.node, tops)].append(hit)
        results = []
        for key, below in by_top.items():
            # If a node was found twice, its best score is used.
            scores = {_key(hit.node): hit.score for hit in reversed(below)}
            score = lifted_score([*scores.values()], self.lift)
            results.append(merge(hierarchy.nodes[key], below, score))
        return results if self.lift == "max" else by_score(results)


class _Hierarchy:
    """The ancestors of the nodes that were found for a query. The graphs must be locked.

    Attributes:
        nodes: The nodes that were found, and all ancestors that have been read.
    """

    def __init__(
        self, hits: Results, ratio: float, target: str | None, conditions: HitConditions
    ) -> None:
        self.nodes: dict[Key, Node] = {}
        self._paths: dict[Key, list[Key]] = {}  # the keys on the path from a node to its document
        self._least_counts: dict[tuple[Key, str], float] = {}
        self._hits = hits
        self._ratio = ratio
        self._target = target
        self._conditions = conditions

    def merged(self, hits: Results) -> set[Key]:
        """Replace nodes with their parent if enough of its children were found, level by level.

        The keys of the remaining nodes are returned.
        """
        keys = {self._path(hit.node)[0] for hit in hits}
        new = keys
        while new:
            keys = keys | new
            keys = {key for key in keys if keys.isdisjoint(self._paths[key][1:])}
            counts: Counter[tuple[Key, str]] = Counter()
            for key in keys:
                group = self.nodes[key].group
                counts.update([(parent, group) for parent in self._paths[key][1:2]])
            new = {
                parent
                for (parent, group), count in counts.items()
                if count > self._least_count(parent, group)
            }
        return keys

    def highest(self, node: Node, keys: set[Key]) -> Key:
        """Return the highest of the given nodes on the path from a node to its document."""
        return next(key for key in reversed(self._path(node)) if key in keys)

    def _path(self, node: Node) -> list[Key]:
        key = _key(node)
        if key not in self._paths:
            self.nodes[key] = node
            try:
                parent = node.parent
            except LookupError:  # the node was removed after the retrieval
                parent = None
            above = [] if parent is None else self._path(parent)
            self._paths[key] = [key, *above]
        return self._paths[key]

    def _least_count(self, key: Key, group: str) -> float:
        """Return how many matching children must be exceeded so that their parent replaces them."""
        if (key, group) not in self._least_counts:
            self._least_counts[key, group] = self._compute_least_count(key, group)
        return self._least_counts[key, group]

    def _compute_least_count(self, key: Key, group: str) -> float:
        parent = self.nodes[key]
        assert parent.graph is not None
        above = path_to(parent.graph, group)[:-1]
        is_in_target = len(above) > 1 if self._target is None else self._target in above
        if not is_in_target or not self._allows(key):
            return math.inf
        return self._ratio * parent.graph.reader.count_children(group, parent)

    def _allows(self, key: Key) -> bool:
        """Return whether a node may replace all results below it."""
        parent = self.nodes[key]
        below = self._hits_below[key]
        return all(self._conditions([hit]).allow_whole(parent, [hit.node]) for hit in below)

    @cached_property
    def _hits_below(self) -> Mapping[Key, Results]:
        """The results below each of their ancestors."""
        below: dict[Key, Results] = defaultdict(list)
        for hit in self._hits:
            for ancestor in self._path(hit.node)[1:]:
                below[ancestor].append(hit)
        return below


def _key(node: Node) -> Key:
    return id(node.graph), node.id
