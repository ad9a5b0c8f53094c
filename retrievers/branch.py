"""The individual searches of a query, which open indexes and rank the targets of matching nodes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product, repeat
from typing import Any, NamedTuple, cast

from ..nodegraph.graph import NodeGraph
from ..nodegraph.graph_reader import GraphReader
from ..nodegraph.models.embedder import Vectors
from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import Node
from .filters import Filter
from .hits import FoundBy, HitKind, Key, Ranking, Row, fused, highest, lifted
from .protocols import Index, Similarity, Snapshot
from .ranking import Lift, logged_messages
from .results import Hits
from .retrieval_conditions import Conditions

logger = logging.getLogger(__name__)

QueryVectors = Mapping[tuple[NodeGraph, str], Vectors]
"""The vectors of queries with shape (queries, dimension), by graph and embedding."""

FUSED = 50
"""The minimum number of targets per kind of score if scores of words and vectors are fused."""

_FETCH = 3  # the number of matching nodes per target in the first attempt

_PORTION = 40  # the number of matching nodes whose targets are read together

# The number of matching nodes after which a search ends if it has found all existing targets. It
# avoids reading all matching nodes of a few large documents.
_ENOUGH = 1_000


class Scoring(NamedTuple):
    """The similarity and the embedding by which nodes are scored.

    Attributes:
        similarity: The similarity.
        key: The name of the embedding, or None if words are compared.
    """

    similarity: Similarity
    key: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One of the searches whose rankings are combined, such as the search for words in sentences.

    Attributes:
        graphs: The graphs to search.
        groups: The names of the groups to search.
        target: The name of the group that the results belong to.
        scorings: The similarities and embeddings by which nodes are scored. If all scores are of
            the same kind, the score of a target is the highest score of its nodes. Otherwise, the
            scores are fused.
        conditions: The conditions for matching nodes and their targets.
        min_score: The minimum score of a matching node, by embedding (None for words). If the
            mapping is empty, there is no minimum.
        lift: The method that computes the score of a target.
        fetch_k: The number of matching nodes per scoring. If None, as many are fetched as the
            targets require.
        refers: A function that returns the reference of a node, or None if it has none. A node with
            a reference is not replaced by a target.
    """

    graphs: Sequence[NodeGraph]
    groups: Sequence[str]
    target: str
    scorings: Sequence[Scoring]
    conditions: Conditions
    min_score: Mapping[str | None, float]
    lift: Lift = "max"
    fetch_k: int | None = None
    refers: Callable[[Node], object] | None = None

    @property
    def is_fused(self) -> bool:
        """Whether scores of several kinds are combined."""
        if len(self.scorings) == 1:
            return False
        return len({scoring.similarity.mode for scoring in self.scorings}) > 1

    @property
    def is_lifted(self) -> bool:
        """Whether the matching nodes and their targets belong to different groups."""
        return any([group != self.target for group in self.groups])

    @property
    def embeddings(self) -> list[tuple[NodeGraph, str]]:
        """Pairs of a graph and an embedding that is searched in it."""
        keys = [scoring.key for scoring in self.scorings if scoring.key is not None]
        if not keys:
            return []
        pairs = product(self.graphs, keys)
        return [(graph, key) for graph, key in pairs if key in graph.embeddings.embedders]

    def open(self) -> list[list[OpenIndex]]:
        """Open the indexes of each scoring. No lock is held."""
        indexes = []
        for scoring in self.scorings:
            of_scoring = []
            for group in self.groups:
                for number, graph in enumerate(self.graphs):
                    if scoring.key is None or scoring.key in graph.embeddings.embedders:
                        index = scoring.similarity.open(graph, group, scoring.key)
                        index.ready()
                        of_scoring.append(OpenIndex(number, graph, group, index))
            indexes.append(of_scoring)
        return indexes


def words_branch(graph: NodeGraph, group: str, similarity: Similarity) -> Branch:
    """Return the search for words in a group, without conditions."""
    return Branch([graph], [group], group, [Scoring(similarity, None)], Conditions.of(), {})


@dataclass(frozen=True, slots=True, eq=False)
class OpenIndex:
    """An index of one group in one graph.

    Attributes:
        number: The number of the graph.
        graph: The graph.
        group: The name of the group.
        index: The index.
    """

    number: int
    graph: NodeGraph
    group: str
    index: Index[Any]


class SearchedIndex(NamedTuple):
    """An index in one state of its graph, with the queries that are searched in it.

    Attributes:
        branch: The search that the index belongs to.
        scoring: The similarity and the embedding.
        opened: The index, which may have changed since the snapshot.
        kind: The fields that the evidence of all matching nodes has in common.
        queries: The queries, prepared for the index.
        snapshot: The arrays of the index for these queries.
    """

    branch: Branch
    scoring: Scoring
    opened: OpenIndex
    kind: HitKind
    queries: Sequence[Any]
    snapshot: Snapshot

    def targets(self, ids: Sequence[str]) -> Iterable[Sequence[Key]]:
        """Return the targets of each matching node."""
        branch = self.branch
        number = self.opened.number
        graph = self.opened.graph
        if self.opened.group == branch.target:
            return [((number, node_id),) for node_id in ids]
        if branch.refers is None and self._has_targets_as_parents():
            parents = self._allowed_parents(ids)
            return [() if parent is None else ((number, parent),) for parent in parents]
        path = path_to(graph, branch.target)
        targets: list[Sequence[Key]] = []
        with graph.reader.reading():
            for node in graph.reader.nodes_by_id(ids):
                is_target = branch.refers is not None and branch.refers(node) is not None
                relatives = [node] if is_target else kin(graph, path, node)
                allowed = [other for other in relatives if branch.conditions.allow(other, node)]
                targets.append([(number, other.id) for other in allowed])
        return targets

    def _has_targets_as_parents(self) -> bool:
        lineage = self.opened.graph.reader.lineage(self.opened.group)
        if not lineage:  # documents
            return False
        group = lineage[-1]
        return group.scope != "group" and group.parent == self.branch.target

    def _allowed_parents(self, ids: Sequence[str]) -> Sequence[str | None]:
        """Return the parent of each matching node, or None if it does not meet the conditions."""
        parents = [*self.snapshot.parents(ids)]
        conditions = self.branch.conditions
        if not conditions:
            return parents
        inherits = self.snapshot.inherits
        is_like_parent = [False] * len(ids) if inherits is None else inherits(ids)
        unsure: dict[int, str] = {}  # the parents to read, by the position of the matching node
        for at, parent in enumerate(parents):
            if parent is not None and not is_like_parent[at]:
                unsure[at] = parent
        if unsure:
            reader = self.opened.graph.reader
            with reader.reading():
                hits = reader.nodes_by_id([ids[at] for at in unsure])
                others = reader.nodes_by_id([*unsure.values()])
                for at, hit, other in zip(unsure, hits, others, strict=True):
                    if not conditions.allow(other, hit):
                        parents[at] = None
        return parents


def take(
    branch: Branch,
    scoring: Scoring,
    opened: Sequence[OpenIndex],
    queries: Sequence[str],
    vectors: QueryVectors,
) -> list[SearchedIndex]:
    """Prepare queries for indexes, and take snapshots of the indexes."""
    sources = []
    for each in opened:
        if scoring.key is None:  # the statistics of a group are combined over all graphs
            same = [other.index for other in opened if other.group == each.group]
            prepared = [scoring.similarity.prepare(query, same) for query in queries]
        else:
            of_queries = vectors[each.graph, scoring.key]
            prepared = [scoring.similarity.prepare(vector, [each.index]) for vector in of_queries]
        filter = branch.conditions.filter
        snapshot = take_snapshot(each.index, each.graph.reader, prepared, filter)
        kind = HitKind(
            scoring.similarity.name,
            scoring.key,
            getattr(each.index, "uses_search_text", False),
            branch.conditions.filters,
        )
        sources.append(SearchedIndex(branch, scoring, each, kind, prepared, snapshot))
    return sources


def rank_branch(
    sources: Sequence[Sequence[SearchedIndex]], numbers: Sequence[int], limit: int
) -> list[Ranking]:
    """Return the ranking of each query in one search.

    Args:
        sources: The indexes, grouped by scoring.
        numbers: The positions of the queries in the batch.
        limit: The maximum number of targets.
    """
    branch = sources[0][0].branch
    most = max(limit, FUSED) if branch.is_fused else limit
    found = [_find(of_scoring, numbers, most) for of_scoring in sources]
    rankings = [_joined(branch, of_query, limit) for of_query in zip(*found, strict=True)]
    if branch.min_score and not any(ranking.scores for ranking in rankings):
        _log_threshold(branch, [*chain.from_iterable(sources)], numbers)
    return rankings


def _find(sources: Sequence[SearchedIndex], numbers: Sequence[int], limit: int) -> list[Ranking]:
    """Rank the targets of each query by one kind of score.

    More matching nodes are fetched until enough targets are found, or all targets that exist.

    Args:
        sources: The indexes.
        numbers: The positions of the queries in the batch.
        limit: The maximum number of targets.
    """
    branch = sources[0].branch
    least = branch.min_score.get(sources[0].scoring.key, -math.inf)
    if len(sources) == 1 and not branch.is_lifted:
        return [
            _own_targets(sources[0], hits, limit, least)
            for hits in sources[0].snapshot.search(numbers, limit)
        ]
    first: int | None = limit
    is_final = False
    if branch.is_lifted:
        is_final = branch.fetch_k is not None or branch.lift != "max"
        first = branch.fetch_k if is_final else _FETCH * limit
    of_sources = [source.snapshot.search(numbers, first) for source in sources]
    rankings = []
    for number, hits in zip(numbers, zip(*of_sources, strict=True), strict=True):
        count = first
        while True:
            found = _merged(sources, hits, count, least)
            ranking = lifted(found.rows, branch.lift, limit, branch.fetch_k is not None)
            is_enough = is_final or not found.has_more or len(ranking.scores) >= limit
            if count is None or is_enough:
                break
            if count >= _ENOUGH and _has_all_targets(branch, ranking):
                break
            count *= 4
            hits = tuple(source.snapshot.search([number], count)[0] for source in sources)
        rankings.append(ranking)
    return rankings


def _has_all_targets(branch: Branch, ranking: Ranking) -> bool:
    """Return whether a ranking contains all nodes of the target group."""
    if branch.refers is not None:  # nodes with a reference are targets as well
        return False
    count = sum(graph.reader.count(branch.target) for graph in branch.graphs)
    return len(ranking.scores) >= count


def _own_targets(source: SearchedIndex, hits: Hits, limit: int, min_score: float) -> Ranking:
    """Rank matching nodes that are themselves the targets."""
    scores = hits.scores[:limit]
    if scores and scores[-1] < min_score:
        scores = [score for score in scores if score >= min_score]
    kind = source.kind
    number = source.opened.number
    keys = [(number, node_id) for node_id in hits.ids[: len(scores)]]
    found = {key: [(score, kind, key, (key,))] for key, score in zip(keys, scores, strict=True)}
    return Ranking(dict(zip(keys, scores, strict=True)), [FoundBy(found, {})])


class _Merged(NamedTuple):
    """The best nodes that were found in several indexes.

    Attributes:
        rows: The matching nodes, best first.
        has_more: Whether further nodes may match.
    """

    rows: Iterable[Row]
    has_more: bool


def _merged(
    sources: Sequence[SearchedIndex], hits: Sequence[Hits], limit: int | None, min_score: float
) -> _Merged:
    """Return the best nodes of several indexes, with their targets."""
    of_sources: list[Iterable[Row]] = []
    size = 0
    has_more = False
    for source, (ids, scores) in zip(sources, hits, strict=True):
        is_cut = bool(scores) and scores[-1] < min_score
        count = sum(score >= min_score for score in scores) if is_cut else len(scores)
        portions = _portions(source, ids[:count], scores)
        of_sources.append(chain.from_iterable(portions))
        size += count
        has_more = has_more or (len(ids) == limit and not is_cut)
    if len(sources) == 1:
        return _Merged(of_sources[0], has_more)
    rows = sorted(chain.from_iterable(of_sources), key=lambda row: -row[0])
    return _Merged(rows[:limit], has_more or size > (limit or math.inf))


def _portions(
    source: SearchedIndex, ids: Sequence[str], scores: Sequence[float]
) -> Iterator[Iterable[Row]]:
    """Yield the matching nodes and their targets in batches.

    The targets of a batch are looked up when the batch is reached. Later batches are rarely needed.
    """
    number = source.opened.number
    for first in range(0, len(ids), _PORTION):
        part = slice(first, first + _PORTION)
        keys = [(number, node_id) for node_id in ids[part]]
        targets = source.targets(ids[part])
        yield zip(scores[part], repeat(source.kind), keys, targets, strict=False)


def _joined(branch: Branch, rankings: Sequence[Ranking], limit: int) -> Ranking:
    """Combine the rankings of all scorings into one ranking."""
    if len(rankings) == 1:
        return rankings[0]
    if branch.is_fused:
        return fused(rankings, "relative", [1.0] * len(rankings)).first(limit)
    return highest(rankings, limit)


def _log_threshold(
    branch: Branch, sources: Iterable[SearchedIndex], numbers: Sequence[int]
) -> None:
    """Log a message, once per graph, if no node reaches the minimum score."""
    message = (len(branch.graphs), *branch.groups, repr(branch.min_score))
    logged = [logged_messages(graph) for graph in branch.graphs]
    if all(message in of_graph for of_graph in logged):
        return
    hits = chain.from_iterable(source.snapshot.search(numbers, 1) for source in sources)
    best = max((score for _, scores in hits for score in scores), default=None)
    if best is not None:
        for of_graph in logged:
            of_graph.add(message)
        logger.warning(
            "no result: the lowest score is %s, and the best node of %r scores %.4f",
            min(branch.min_score.values()),
            " + ".join(branch.groups),
            best,
        )


def take_snapshot(
    index: Index[Any], reader: GraphReader, queries: Sequence[Any], filter: Filter
) -> Snapshot:
    """Return a snapshot of an index.

    If the index does not support snapshots, the lock of the graph is held during its search.
    """
    if hasattr(index, "snapshot"):
        return cast(Snapshot, index.snapshot(queries, filter))

    def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
        with reader.reading():
            return [index.search(queries[number], limit, filter) for number in numbers]

    return Snapshot(search, reader.parent_ids)
