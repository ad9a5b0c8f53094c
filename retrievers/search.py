"""The search path: indexes -> hits -> targets -> one ranking -> nodes with evidence."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, Generic, NamedTuple, TypeVar

from ..nodegraph.graph import NodeGraph
from ..nodegraph.locking import with_deferred_work
from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import ROOT, Node
from .protocols import IndexSnapshot, Similarity
from .ranking import (
    RANK_CONSTANT,
    Lift,
    Mode,
    fused_scores,
    in_document_order,
    lifted_score,
    merge_hits,
    scaled,
)
from .results import Evidence, Results, ScoredNode
from .retrieval_conditions import Conditions
from .tracing import is_observed, start_span

logger = logging.getLogger(__name__)

GraphT = TypeVar("GraphT", bound=NodeGraph)

T = TypeVar("T")

Key = Any
"""A target: the id of its node. In searches over several graphs, the graph's number and the id."""

Hit = tuple[float, int, str]
"""The score of a hit, the number of its index in the branch, and the id of its node."""

MAX_QUERIES = 64
"""The number of queries that are searched in one turn."""

_FETCH = 3  # hits per target, at first


def reading(groups: Mapping[NodeGraph, Iterable[str]]) -> AbstractContextManager[None]:
    """Hold the locks of several graphs, with groups built, until the block ends.

    All threads lock the graphs in the same order, to avoid deadlocks.

    Args:
        groups: The names of the groups to build, by graph.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TransformError: If a transform raises while a group is built.
    """
    if len(groups) == 1:
        ((graph, names),) = groups.items()
        return graph.reader.reading(*names)
    return _reading_all(groups)


@contextmanager
def _reading_all(groups: Mapping[NodeGraph, Iterable[str]]) -> Iterator[None]:
    ordered = sorted(groups, key=id)
    for graph in ordered[1:]:  # built before any lock is held
        with graph.reader.reading(*groups[graph]):
            pass
    with ExitStack() as locks:
        for graph in ordered:
            locks.enter_context(graph.reader.reading(*groups[graph]))
        yield


@dataclass(frozen=True, slots=True)
class Search:
    """The search of one retriever in one call.

    It has a branch for each embedding, and one for words.

    Attributes:
        graphs: The graphs.
        groups: The searched groups.
        target: The group of the results.
        similarity: The similarity.
        keys: The embedding of each branch; None for words.
        limit: The maximum number of targets per branch.
        conditions: The conditions of hits and targets.
        min_score: The lowest score of a hit; a number, or one for each embedding.
        lift: The score of a target.
        fetch_k: The number of hits of each branch; None for as many as ``limit`` targets need.
        top_k: The number of targets after fusing branches; None for all.
        stays: A function from a hit to whether the hit itself is its target.
    """

    graphs: Sequence[NodeGraph]
    groups: Sequence[str]
    target: str
    similarity: Similarity
    keys: Sequence[str | None]
    limit: int
    conditions: Conditions
    min_score: float | Mapping[str, float] | None = None
    lift: Lift = "max"
    fetch_k: int | None = None
    top_k: int | None = None
    stays: Callable[[Node], bool] | None = None

    @property
    def lifting(self) -> bool:
        """Whether hits are replaced by their relatives in the target group."""
        return {*self.groups} != {self.target}

    def built_groups(self, graph: NodeGraph) -> list[str]:
        """Return the groups to build: the searched groups, their text sources and the target."""
        searched = [name for group in self.groups for name in graph.reader.searched_groups(group)]
        return [*dict.fromkeys((*searched, self.target))]

    def least_score(self, key: str | None) -> float:
        """Return the lowest score of a hit in a branch."""
        number = self.min_score
        if isinstance(number, Mapping):
            number = None if key is None else number.get(key)
        return -math.inf if number is None else number

    def key_of(self, graph: NodeGraph, node_id: str) -> Key:
        """Return the key of a target."""
        return node_id if len(self.graphs) == 1 else (self.graphs.index(graph), node_id)

    def node_of(self, key: Key) -> tuple[NodeGraph, str]:
        """Return the graph and the id of a target."""
        return (self.graphs[0], key) if len(self.graphs) == 1 else (self.graphs[key[0]], key[1])

    def ranking(self, founds: Sequence[Found]) -> Ranking:
        """Merge the hits of all branches for a query into one ranking."""
        if len(founds) == 1:
            return Ranking(founds[0].scores, [Part(founds, {})])
        if self.similarity.mode == "both":
            rankings = [Ranking(found.scores, [Part([found], {})]) for found in founds]
            return fused(rankings, "relative", [1.0] * len(founds)).first(self.top_k)
        highest: dict[Key, float] = {}
        for found in founds:
            for key, score in found.scores.items():
                highest[key] = max(score, highest.get(key, score))
        return Ranking(self.best(highest), [Part(founds, {})])

    def best(self, scores: Mapping[Key, float], limit: int | None = None) -> dict[Key, float]:
        """Return the best targets, ties by graph and document order."""
        nodes = read_nodes(self, scores)
        order = {key: (self.graphs.index(n.graph), n.order) for key, n in nodes.items()}
        ranked = sorted(scores, key=lambda key: (-scores[key], order[key]))
        return {key: scores[key] for key in ranked[:limit]}


def has_embedding(graph: NodeGraph, key: str | None) -> bool:
    """Return whether a graph has an embedding; True for words."""
    return key is None or key in graph.embeddings.embedders


class Branch:
    """A part of a search with one kind of scores: words, or the vectors of one embedding.

    Args:
        search: The search.
        key: The embedding; None for words.
    """

    def __init__(self, search: Search, key: str | None) -> None:
        self.search, self.key = search, key
        self.graphs = [graph for graph in search.graphs if has_embedding(graph, key)]
        self.sources = [(graph, group) for graph in self.graphs for group in search.groups]
        self.indexes = [search.similarity.open(*source, key) for source in self.sources]
        self.prepared: list[list[Any]] = []  # the queries, by index
        self._name = search.similarity.name
        if search.similarity.mode == "both":
            self._name = "bm25" if key is None else "cosine"
        self._uses_search_text = [getattr(i, "uses_search_text", False) for i in self.indexes]
        self._snapshots: list[IndexSnapshot] = []
        self.best_score = -math.inf  # of all queries, before the lowest score applies

    def take(self, queries: Sequence[str], vectors: Sequence[Any]) -> bool:
        """Prepare queries and take the arrays of the indexes; the graphs are held.

        Args:
            queries: The queries.
            vectors: The vectors of the queries, by graph; empty for words.

        Returns:
            Whether all indexes can be searched without the locks of the graphs.
        """
        from .indexes.synced_index import HeldIndex, take_snapshot

        search, prepare = self.search, self.search.similarity.prepare
        if self.key is None:
            count = len(search.groups)
            self.prepared = (
                [  # by the statistics of one group of all graphs
                    [prepare(query, self.indexes[position::count]) for query in queries]
                    for position in range(count)
                ]
                * len(self.graphs)
            )
        else:
            of_indexes = [of_graph for of_graph in vectors for _ in search.groups]
            self.prepared = [
                [prepare(vector, [index]) for vector in of_index]
                for index, of_index in zip(self.indexes, of_indexes, strict=True)
            ]
        self._snapshots = [
            take_snapshot(graph, index, prepared, search.conditions.filter)
            for (graph, _), index, prepared in zip(
                self.sources, self.indexes, self.prepared, strict=True
            )
        ]
        return not any(isinstance(snapshot, HeldIndex) for snapshot in self._snapshots)

    def find(self, seen: Sequence[_Seen]) -> list[Found]:
        """Return the targets of each query.

        Args:
            seen: The targets of each query in other branches.
        """
        search = self.search
        if not search.lifting:
            first: int | None = search.limit
        elif search.lift == "max" or search.fetch_k is not None:
            first = search.fetch_k or _FETCH * search.limit
        else:
            first = None
        exactly = search.fetch_k if search.lifting else None
        least = search.least_score(self.key)
        every = range(len(seen))
        of_indexes = [snapshot.search(every, first) for snapshot in self._snapshots]
        founds = []
        highest = [score for hits in of_indexes for _, scores in hits for score in scores[:1]]
        self.best_score = max(highest, default=-math.inf)
        for number, hits in enumerate(zip(*of_indexes, strict=True)):
            limit = first
            while True:
                rows, more = merge_hits(hits, limit, least)
                found = self._lifted(rows[:exactly], number, seen[number])
                if not more or exactly or limit is None or len(found.scores) >= search.limit:
                    break
                limit *= 4
                hits = tuple(s.search([number], limit)[0] for s in self._snapshots)
            founds.append(found)
        return founds

    def term_scores(self, number: int, ids: Sequence[str]) -> Any:
        """Return the scores of nodes by each term of a query, (nodes, terms).

        Args:
            number: The number of the query.
            ids: The ids of nodes in the first index.
        """
        snapshot: Any = self._snapshots[0]
        return snapshot.term_scores(number, ids)

    def evidence(self, hit: Hit, node: Node, query: str, share: float | None) -> Evidence:
        """Return the evidence of a hit."""
        filters, searched = self.search.conditions.filters, self._uses_search_text[hit[1]]
        return Evidence(node, hit[0], self._name, query, self.key, share, (), searched, filters)

    def _lifted(self, rows: Sequence[Hit], number: int, seen: _Seen) -> Found:
        """Return the targets of hits, best first."""
        search = self.search
        if not search.lifting and len(search.graphs) == 1:
            return Found(self, number, {node_id: score for score, _, node_id in rows}, None)
        takes_all = search.lift != "max" or search.fetch_k is not None
        targets: dict[Key, list[Hit]] = {}
        is_single = len(search.graphs) == 1
        for hit, of_hit in zip(rows, self._targets(rows), strict=True):
            for target in of_hit:
                key = target if is_single else _first(search, seen, target)
                if key in targets:
                    targets[key].append(hit)
                elif takes_all or len(targets) < search.limit:
                    targets[key] = [hit]
            if not takes_all and len(targets) == search.limit:
                break
        if search.lift == "max":
            best = islice(targets.items(), search.limit)
            return Found(self, number, {key: hits[0][0] for key, hits in best}, targets)
        scores = {
            key: lifted_score([score for score, *_ in hits], search.lift)
            for key, hits in targets.items()
        }
        return Found(self, number, search.best(scores, search.limit), targets)

    def _targets(self, rows: Sequence[Hit]) -> Iterable[Sequence[Key]]:
        """Return the targets of each hit."""
        if len(self.sources) == 1:
            return self._targets_in(0, [node_id for _, _, node_id in rows])
        ids: dict[int, list[str]] = {}
        for _, source, node_id in rows:
            ids.setdefault(source, []).append(node_id)
        targets = {source: iter(self._targets_in(source, of_it)) for source, of_it in ids.items()}
        return [next(targets[source]) for _, source, _ in rows]

    def _targets_in(self, source: int, ids: Sequence[str]) -> Iterable[Sequence[Key]]:
        search, (graph, group) = self.search, self.sources[source]
        if not search.lifting:
            return [(search.key_of(graph, node_id),) for node_id in ids]
        conditions, stays = search.conditions, search.stays
        if _is_child(graph, group, search.target) and not conditions and stays is None:
            parents = self._snapshots[source].parents(ids)
            if len(search.graphs) == 1:
                return [() if i is None else (i,) for i in parents]
            return [() if i is None else (search.key_of(graph, i),) for i in parents]
        path = path_to(graph, search.target)
        targets: list[Sequence[Key]] = []
        with graph.reader.reading():
            for node in graph.reader.nodes_by_id(ids):
                relatives = [node] if stays and stays(node) else kin(graph, path, node)
                allowed = (other for other in relatives if conditions.allow(other, node))
                targets.append([search.key_of(graph, other.id) for other in allowed])
        return targets


def _is_child(graph: NodeGraph, group: str, parent: str) -> bool:
    """Return whether the nodes of a group are derived from single nodes of another group."""
    declared = graph.reader.lineage(group)[-1:]  # empty for documents
    return any(each.scope != "group" and each.parent == parent for each in declared)


_Seen = dict[str, list[Key]]
"""The targets of a query by id, in several graphs, which may have the same documents."""


def _first(search: Search, seen: _Seen, key: Key) -> Key:
    """Return the first target with the same id and text."""
    others = seen.setdefault(key[1], [])
    if key in others:
        return key
    for other in others:
        nodes = read_nodes(search, [other, key])
        if nodes[other].text == nodes[key].text:
            return other
    others.append(key)
    return key


@dataclass(frozen=True, slots=True)
class Found:
    """The targets that a branch has found for a query.

    Attributes:
        branch: The branch.
        number: The number of the query.
        scores: The scores of the targets, best first.
        hits: The hits for each target, best first; None if hits are targets.
    """

    branch: Branch
    number: int
    scores: dict[Key, float]
    hits: Mapping[Key, Sequence[Hit]] | None

    @property
    def query(self) -> Any:
        """The query as prepared for the first index: weighed terms, or a vector."""
        return self.branch.prepared[0][self.number]

    def hits_for(self, key: Key) -> Sequence[Hit]:
        """Return the hits for a target."""
        if key not in self.scores:
            return ()
        if self.hits is None:
            return [(self.scores[key], 0, str(key))]
        return self.hits[key]


class Part(NamedTuple):
    """A part of a ranking.

    Attributes:
        founds: The targets that the branches of a search have found.
        shares: The part of each target's score that the search contributes; empty without fusion.
    """

    founds: Sequence[Found]
    shares: Mapping[Key, float]

    def hits(self, key: Key) -> list[tuple[Branch, Hit]]:
        """Return the hits for a target."""
        hits = [(found.branch, hit) for found in self.founds for hit in found.hits_for(key)]
        if len(self.founds) > 1:
            hits.sort(key=lambda hit: -hit[1][0])
        return hits


class Ranking(NamedTuple):
    """A ranking of targets.

    Attributes:
        scores: The scores of the targets, best first.
        parts: The searches that have found them.
    """

    scores: Mapping[Key, float]
    parts: Sequence[Part]

    def first(self, count: int | None) -> Ranking:
        """Return the first targets."""
        return self._replace(scores=dict(islice(self.scores.items(), count)))


def fused(
    rankings: Sequence[Ranking],
    mode: Mode,
    weights: Sequence[float],
    rank_constant: float = RANK_CONSTANT,
) -> Ranking:
    """Fuse the rankings of several searches; see ``fuse``."""
    scores, shares = fused_scores([r.scores for r in rankings], mode, weights, rank_constant)
    parts = [
        Part(part.founds, of_ranking)
        for ranking, of_ranking in zip(rankings, shares, strict=True)
        for part in ranking.parts
    ]
    return Ranking(scores, parts)


Rank = Callable[[str, Sequence[Ranking]], Ranking]
"""Makes one ranking of the rankings of all searches."""

Select = Callable[["Reader"], T]
"""Returns the result of a query, while the graphs are held."""


def one_ranking(query: str, rankings: Sequence[Ranking]) -> Ranking:
    """Return the ranking of a single search."""
    return rankings[0]


def all_results(reader: Reader) -> Results:
    """Return all targets of a ranking as results."""
    return reader.results([*reader.ranking.scores])


def ordered_results(reader: Reader) -> Results:
    """Return all targets; equal scores of a document by position, which fused scores ignore."""
    return in_document_order(all_results(reader))


def search(
    searches: Sequence[Search],
    queries: Sequence[str],
    vectors: Sequence[Sequence[Sequence[Any]]],
    rank: Rank,
    select: Select[T],
) -> list[T]:
    """Search for embedded queries; return the result of each query.

    The graphs are held twice: to update the indexes and take their arrays, and to read the
    results. If a result was changed or removed in between, the search runs again in one turn.

    Args:
        searches: The searches, of the same graphs and the same target.
        queries: The queries, none of which is blank.
        vectors: By search, embedding and graph, an array (queries, dimension).
        rank: Makes one ranking of the rankings of all searches.
        select: Reads the result of a query from its ranking.
    """
    results: list[T] = []
    for start in range(0, len(queries), MAX_QUERIES):
        part = slice(start, start + MAX_QUERIES)
        of_part = [
            [[of_graph[part] for of_graph in of_key] for of_key in of_search]
            for of_search in vectors
        ]
        turns = _Turns(searches, queries[part], of_part, rank, select)
        results += with_deferred_work(turns.run)
    return results


@dataclass(frozen=True, slots=True)
class _Turns(Generic[T]):
    """The two turns of a search; see ``search``."""

    searches: Sequence[Search]
    queries: Sequence[str]
    vectors: Sequence[Sequence[Sequence[Any]]]
    rank: Rank
    select: Select[T]

    def run(self) -> list[T]:
        branches = [[Branch(search, key) for key in search.keys] for search in self.searches]
        for index in (index for of_search in branches for b in of_search for index in b.indexes):
            index.ready()
        groups: dict[NodeGraph, dict[str, None]] = {}
        for search in self.searches:
            for graph in search.graphs:
                groups.setdefault(graph, {}).update(dict.fromkeys(search.built_groups(graph)))
        try:
            with reading(groups):
                if not self._take(branches):
                    return self._selected(self._rankings(branches))
                states = [graph.reader.held_state() for graph in groups]
                revisions = {graph: graph.reader.revision(ROOT) for graph in groups}
            rankings = self._rankings(branches)
            with reading(dict.fromkeys(groups, ())):
                is_same = states == [graph.reader.held_state() for graph in groups]
                if is_same or not self._are_outdated(rankings, revisions):
                    return self._selected(rankings)
        except LookupError:  # a node was removed in between
            pass
        with reading(groups):
            self._take(branches)
            return self._selected(self._rankings(branches))

    def _take(self, branches: Sequence[Sequence[Branch]]) -> bool:
        """Update the indexes and take their arrays; False if one can only be searched now."""
        is_free = True
        for of_search, of_vectors in zip(branches, self.vectors, strict=True):
            vectors = iter(of_vectors)
            for branch in of_search:
                for index in branch.indexes:
                    index.sync()
                of_branch = () if branch.key is None else next(vectors)
                is_free = branch.take(self.queries, of_branch) and is_free
        return is_free

    def _rankings(self, branches: Sequence[Sequence[Branch]]) -> list[Ranking]:
        """Return one ranking for each query."""
        of_searches = []
        for search, of_search in zip(self.searches, branches, strict=True):
            with start_span(
                "search",
                queries=self.queries,
                group=" + ".join(search.groups),
                similarity=search.similarity.name,
                target=search.target,
            ) as span:
                seen: list[_Seen] = [{} for _ in self.queries]
                founds = [branch.find(seen) for branch in of_search]
                rankings = [search.ranking(of_query) for of_query in zip(*founds, strict=True)]
                of_searches.append(rankings)
                if not any(ranking.scores for ranking in rankings):
                    _log_threshold(search, of_search)
                if is_observed():
                    readers = map(Reader, repeat(search), self.queries, rankings)
                    span.set_results([*map(all_results, readers)])
        per_query = zip(*of_searches, strict=True)
        return [self.rank(*of_query) for of_query in zip(self.queries, per_query, strict=True)]

    def _are_outdated(
        self, rankings: Sequence[Ranking], revisions: Mapping[NodeGraph, int]
    ) -> bool:
        """Return whether the document of a target or hit has changed since the first turn.

        A node may be the same while its document has new metadata.

        Raises:
            LookupError: If a target or hit is gone.
        """
        documents = {}
        for graph, revision in revisions.items():
            changed = graph.reader.changed_ids(ROOT, revision)
            if changed is None:
                return True
            documents[graph] = {*chain.from_iterable(changed)}
        ids: dict[NodeGraph, set[str]] = {graph: set() for graph in revisions}
        for ranking in rankings:
            for key in ranking.scores:
                graph, node_id = self.searches[0].node_of(key)
                ids[graph].add(node_id)
                for branch, (_, source, hit_id) in chain.from_iterable(
                    part.hits(key) for part in ranking.parts
                ):
                    ids[branch.sources[source][0]].add(hit_id)
        return any(
            node.document_id in documents[graph]
            for graph, of_graph in ids.items()
            for node in graph.reader.nodes_by_id([*of_graph])
        )

    def _selected(self, rankings: Sequence[Ranking]) -> list[T]:
        """Return the result of each query; the graphs are held."""
        readers = map(Reader, repeat(self.searches[0]), self.queries, rankings)
        return [*map(self.select, readers)]


_LOGGED: set[tuple[Any, ...]] = set()


def _log_threshold(search: Search, branches: Sequence[Branch]) -> None:
    """Log once that no hit reaches a lowest score."""
    best = max(branch.best_score for branch in branches)
    key = (*search.groups, search.similarity.name, repr(search.min_score))
    if best > -math.inf and search.min_score is not None and key not in _LOGGED:
        _LOGGED.add(key)
        logger.warning(
            "no result: the lowest score is %s, and the best node of %r scores %.4f",
            *(search.min_score, " + ".join(search.groups), best),
        )


def read_nodes(search: Search, keys: Iterable[Key]) -> dict[Key, Node]:
    """Return the nodes of targets."""
    if len(search.graphs) == 1:
        ids = list(keys)
        return dict(zip(ids, search.graphs[0].reader.nodes_by_id(ids), strict=True))
    nodes: dict[Key, Node] = {}
    for key in keys:
        graph, node_id = search.node_of(key)
        (nodes[key],) = graph.reader.nodes_by_id([node_id])
    return nodes


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the targets of a ranking, while the graphs are held.

    Args:
        search: A search of the ranking.
        query: The query.
        ranking: The ranking.
    """

    search: Search
    query: str
    ranking: Ranking

    def nodes(self, keys: Sequence[Key]) -> list[Node]:
        """Return the nodes of targets."""
        nodes = read_nodes(self.search, keys)
        return [nodes[key] for key in keys]

    def results(self, keys: Sequence[Key], scores: Sequence[float] | None = None) -> Results:
        """Return targets with their evidence.

        Args:
            keys: The targets.
            scores: Replacements for the scores of the ranking. Shares are scaled to them.
        """
        search, query, ranking = self.search, self.query, self.ranking
        targets = read_nodes(search, keys)
        hits = [[part.hits(key) for part in ranking.parts] for key in keys]
        ids: dict[NodeGraph, list[str]] = {graph: [] for graph in search.graphs}
        for branch, (_, source, node_id) in chain.from_iterable(chain.from_iterable(hits)):
            ids[branch.sources[source][0]].append(node_id)
        nodes = {
            graph: dict(zip(of_graph, graph.reader.nodes_by_id(of_graph), strict=True))
            for graph, of_graph in ids.items()
        }
        results = []
        for at, key in enumerate(keys):
            shares = [part.shares.get(key) for part in ranking.parts]
            score = ranking.scores[key]
            if scores is not None:
                score = scores[at]
                shares = scaled(shares, score)
            evidence = [
                branch.evidence(hit, nodes[branch.sources[hit[1]][0]][hit[2]], query, share)
                for share, of_part in zip(shares, hits[at], strict=True)
                for branch, hit in of_part
            ]
            results.append(ScoredNode(targets[key], score, tuple(evidence)))
        return results
