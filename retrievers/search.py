"""The search path: indexes -> hits -> targets -> one ranking -> nodes with evidence."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, repeat, takewhile
from typing import Any, NamedTuple, TypeVar, cast

from ..nodegraph.concurrency import with_deferred_work
from ..nodegraph.errors import MissingNodeError
from ..nodegraph.graph import NodeGraph
from ..nodegraph.graph_reader import GraphReader
from ..nodegraph.models.embedder import Vectors
from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import ROOT, Node
from .filters import Filter
from .indexes.current import current, reading
from .protocols import Index, Similarity, Snapshot
from .ranking import (
    RANK_CONSTANT,
    Lift,
    Mode,
    fused_scores,
    in_document_order,
    lifted_score,
    logged_messages,
    scaled,
)
from .results import Evidence, Hits, Results, ScoredNode
from .retrieval_conditions import Conditions
from .tracing import is_observed, start_span

logger = logging.getLogger(__name__)

T = TypeVar("T")

Key = tuple[int, str]
"""The number of a graph in a search, and the id of a node."""

Hit = tuple[float, "TakenIndex", Key, Sequence[Key]]
"""The score of a hit, its source, its node, and its targets."""

QueryVectors = Mapping[tuple[NodeGraph, str], Vectors]
"""The vectors of queries, (queries, dimension), by graph and embedding."""

MAX_QUERIES = 64
"""The number of queries that are searched in one turn."""

# Words are searched in one turn up to this number of nodes times queries. The turn takes 0.5 ms for
# one query, and up to 10 ms for 64 queries.
_AT_ONCE = 100_000

_ATTEMPTS = 2  # searches without the lock, before one that holds it

_FETCH = 3  # hits per target, at first


@dataclass(frozen=True, slots=True)
class Search:
    """The search of one retriever in one call.

    Attributes:
        graphs: The graphs.
        groups: The searched groups.
        target: The group of the results.
        branches: The similarities with their embeddings; None for words.
        limit: The maximum number of targets per branch.
        conditions: The conditions of hits and targets.
        min_score: The lowest score of a hit by embedding; None for words. Empty for any score.
        lift: The score of a target.
        fetch_k: The number of hits of each branch; None for as many as ``limit`` targets need.
        top_k: The number of targets after fusing branches; None for all.
        refers: A function from a hit to its reference, or None. A hit with a reference is its own
            target.
    """

    graphs: Sequence[NodeGraph]
    groups: Sequence[str]
    target: str
    branches: Sequence[tuple[Similarity, str | None]]
    limit: int
    conditions: Conditions
    min_score: Mapping[str | None, float]
    lift: Lift = "max"
    fetch_k: int | None = None
    top_k: int | None = None
    refers: Callable[[Node], object] | None = None

    def open(self) -> list[list[TakenIndex]]:
        """Open the indexes of each branch, without a lock."""
        branches = [
            [
                TakenIndex(self, number, group, similarity, key, similarity.open(graph, group, key))
                for group in self.groups
                for number, graph in enumerate(self.graphs)
                if key is None or key in graph.embeddings.embedders
            ]
            for similarity, key in self.branches
        ]
        for source in chain.from_iterable(branches):
            source.index.ready()
        return branches


@dataclass(eq=False, slots=True)
class TakenIndex:
    """An index of a search: one group of one graph, and its words or one embedding.

    Attributes:
        search: The search.
        number: The number of the graph.
        group: The group.
        similarity: The similarity.
        key: The embedding; None for words.
        index: The index.
        queries: The queries, prepared for the index.
        snapshot: The arrays of the index for these queries.
    """

    search: Search
    number: int
    group: str
    similarity: Similarity
    key: str | None
    index: Index[Any]
    queries: Sequence[Any] = ()
    snapshot: Snapshot = field(init=False)

    @property
    def graph(self) -> NodeGraph:
        """The graph."""
        return self.search.graphs[self.number]

    def take(
        self, branch: Sequence[TakenIndex], queries: Sequence[str], vectors: QueryVectors
    ) -> None:
        """Prepare the queries and take the arrays of the index; the graph is held.

        Args:
            branch: All sources of the branch, which are updated.
            queries: The queries.
            vectors: Their vectors.
        """
        if self.key is None:  # the statistics of a group are joined
            same = [other.index for other in branch if other.group == self.group]
            self.queries = [self.similarity.prepare(query, same) for query in queries]
        else:
            of_queries = vectors[self.graph, self.key]
            self.queries = [self.similarity.prepare(v, [self.index]) for v in of_queries]
        filter = self.search.conditions.filter
        self.snapshot = take_snapshot(self.index, self.graph.reader, self.queries, filter)

    def targets(self, hits: Sequence[Key]) -> Iterable[Sequence[Key]]:
        """Return the targets of each hit."""
        search, number, graph = self.search, self.number, self.graph
        if self.group == search.target:
            return zip(hits, strict=True)
        ids = [node_id for _, node_id in hits]
        conditions, refers = search.conditions, search.refers
        derived = graph.reader.lineage(self.group)[-1:]  # empty for documents
        is_child = any(g.scope != "group" and g.parent == search.target for g in derived)
        if is_child and not conditions and refers is None:
            parents = self.snapshot.parents(ids)
            return [() if parent is None else ((number, parent),) for parent in parents]
        path = path_to(graph, search.target)
        targets: list[Sequence[Key]] = []
        with graph.reader.reading():
            for node in graph.reader.nodes_by_id(ids):
                is_target = refers is not None and refers(node) is not None
                relatives = [node] if is_target else kin(graph, path, node)
                targets.append(
                    [(number, other.id) for other in relatives if conditions.allow(other, node)]
                )
        return targets

    def evidence(self, score: float, node: Node, query: str, share: float | None) -> Evidence:
        """Return the evidence of a hit."""
        by_text = getattr(self.index, "uses_search_text", False)
        filters = self.search.conditions.filters
        return Evidence(
            node, score, self.similarity.name, query, self.key, share, (), by_text, filters
        )


class Part(NamedTuple):
    """The targets of one search in a ranking.

    Attributes:
        hits: The hits for each target, best first.
        shares: The part of each target's score that the search contributes; empty without fusion.
    """

    hits: Mapping[Key, Sequence[Hit]]
    shares: Mapping[Key, float]


class Ranking(NamedTuple):
    """A ranking of targets.

    Attributes:
        scores: The scores of the targets, best first.
        parts: The searches that have found them.
        note: What decided the ranking, in words.
    """

    scores: Mapping[Key, float]
    parts: Sequence[Part]
    note: str | None = None

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
        Part(part.hits, of_ranking)
        for ranking, of_ranking in zip(rankings, shares, strict=True)
        for part in ranking.parts
    ]
    return Ranking(scores, parts)


Rank = Callable[[int, Sequence[Ranking], Sequence[TakenIndex]], Ranking]
"""Fuses rankings of a query: its number, and the ranking and first source of each search."""

Select = Callable[["Reader"], T]
"""Returns the result of a query, while the graphs are held."""


def all_results(reader: Reader) -> Results:
    """Return all targets of a ranking as results."""
    return reader.results([*reader.ranking.scores])


def first_results(reader: Reader, top_k: int) -> Results:
    """Return the first targets; equal scores of a document are ordered by position.

    Only targets with the scores of the first ``top_k`` are read.
    """
    scores = reader.ranking.scores
    keys = [*islice(scores, top_k)]
    if keys:
        last = scores[keys[-1]]
        keys += takewhile(lambda key: scores[key] == last, islice(scores, top_k, None))
    return in_document_order(reader.results(keys))[:top_k]


def search(
    searches: Sequence[Search],
    queries: Sequence[str],
    vectors: QueryVectors,
    rank: Rank | None,
    select: Select[T],
) -> list[T]:
    """Search for embedded queries; return the result of each query.

    A search of words in up to ``_AT_ONCE`` nodes takes one turn. Other searches lock the graphs
    twice: first to update the indexes and take their arrays, then to read the results. If a result
    was changed or removed in between, the search runs again, at last in one turn.

    Args:
        searches: The searches, of the same graphs and the same target.
        queries: The queries, none of which is blank.
        vectors: By graph and embedding, an array (queries, dimension).
        rank: Makes one ranking of the rankings of all searches. None: there is one search.
        select: Reads the result of a query from its ranking.
    """
    results: list[T] = []
    for start in range(0, len(queries), MAX_QUERIES):
        part = slice(start, start + MAX_QUERIES)
        of_part = {name: array[part] for name, array in vectors.items()}
        turn = partial(_search, searches, queries[part], of_part, rank, select)
        results += with_deferred_work(turn)
    return results


def _search(
    searches: Sequence[Search],
    queries: Sequence[str],
    vectors: QueryVectors,
    rank: Rank | None,
    select: Select[T],
) -> list[T]:
    graphs = searches[0].graphs
    opened = [search.open() for search in searches]
    groups: dict[NodeGraph, dict[str, None]] = {graph: {} for graph in graphs}
    for graph, names in groups.items():
        for search in searches:
            searched = map(graph.reader.searched_groups, search.groups)
            names.update(dict.fromkeys([*chain.from_iterable(searched), search.target]))

    def take() -> None:
        for branch in chain.from_iterable(opened):
            for source in branch:
                source.take(branch, queries, vectors)

    def rankings() -> list[Ranking]:
        found = [_rank_search(search, of_search, queries) for search, of_search in pairs]
        if rank is None:
            return found[0]
        firsts = [of_search[0][0] for of_search in opened]
        return [rank(at, of_query, firsts) for at, of_query in enumerate(zip(*found, strict=True))]

    def selected(ranked: Sequence[Ranking], changed: Mapping[int, set[str]]) -> list[T]:
        of_queries = zip(queries, ranked, strict=True)
        return [select(Reader(graphs, *of_query, changed)) for of_query in of_queries]

    def attempt() -> list[T]:
        with current(groups, indexes):
            take()
            sizes = [s.snapshot.size for s in chain.from_iterable(chain.from_iterable(opened))]
            if sum(sizes) * len(queries) <= _AT_ONCE and not is_observed():  # observers may wait
                return selected(rankings(), {})
            before = [(graph.reader.held_state(), graph.reader.revision(ROOT)) for graph in groups]
        ranked = rankings()
        with reading(dict.fromkeys(groups, ())):
            changed = {}
            for number, (graph, (state, revision)) in enumerate(zip(groups, before, strict=True)):
                if graph.reader.held_state() != state:
                    ids = graph.reader.changed_ids(ROOT, revision)
                    if ids is None:
                        raise MissingNodeError("a found node was changed")
                    changed[number] = {*chain.from_iterable(ids)}
            return selected(ranked, changed)

    pairs = [*zip(searches, opened, strict=True)]
    indexes = {s.index: None for s in chain.from_iterable(chain.from_iterable(opened))}
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except MissingNodeError:
            pass
    with current(groups, indexes):
        try:
            take()
            return selected(rankings(), {})
        except MissingNodeError as error:  # the file of an index has other ids than the graph
            if not any([index.distrust(error) for index in indexes if hasattr(index, "distrust")]):
                raise
        with current(groups, indexes):
            take()
            return selected(rankings(), {})


def _rank_search(
    search: Search, branches: Sequence[Sequence[TakenIndex]], queries: Sequence[str]
) -> list[Ranking]:
    """Return the ranking of one search for each query."""
    names = dict.fromkeys(similarity.name for similarity, _ in search.branches)
    with start_span(
        "search",
        queries=queries,
        group=" + ".join(search.groups),
        similarity=" + ".join(names),
        target=search.target,
    ) as span:
        found = [_find(search, sources, len(queries)) for sources in branches]
        rankings = [_joined(search, of_query) for of_query in zip(*found, strict=True)]
        if search.min_score and not any(ranking.scores for ranking in rankings):
            _log_threshold(search, chain.from_iterable(branches), range(len(queries)))
        if is_observed():
            readers = map(Reader, repeat(search.graphs), queries, rankings)
            span.set_results([*map(all_results, readers)])
    return rankings


def _find(search: Search, sources: Sequence[TakenIndex], count: int) -> list[Ranking]:
    """Return the targets of each query in one branch."""
    if not sources:
        return [Ranking({}, [])] * count
    least = search.min_score.get(sources[0].key, -math.inf)
    first: int | None = search.limit
    is_final = False
    if {*search.groups} != {search.target}:
        is_final = search.fetch_k is not None or search.lift != "max"
        first = search.fetch_k if is_final else _FETCH * search.limit
    of_sources = [source.snapshot.search(range(count), first) for source in sources]
    rankings = []
    for number, hits in enumerate(zip(*of_sources, strict=True)):
        limit = first
        while True:
            rows, has_more = _merged(sources, hits, limit, least)
            ranking = _lifted(search, rows)
            if limit is None or is_final or not has_more or len(ranking.scores) >= search.limit:
                break
            limit *= 4
            hits = tuple(source.snapshot.search([number], limit)[0] for source in sources)
        rankings.append(ranking)
    return rankings


def _merged(
    sources: Sequence[TakenIndex], hits: Sequence[Hits], limit: int | None, min_score: float
) -> tuple[list[Hit], bool]:
    """Return the best hits of several sources, and whether more hits may exist."""
    rows: list[Hit] = []
    has_more = False
    for source, (ids, scores) in zip(sources, hits, strict=True):
        is_cut = bool(scores) and scores[-1] < min_score
        count = sum(score >= min_score for score in scores) if is_cut else len(scores)
        best = [(source.number, node_id) for node_id in ids[:count]]
        rows += zip(scores, repeat(source), best, source.targets(best), strict=False)
        has_more = has_more or (len(ids) == limit and not is_cut)
    if len(sources) > 1:
        rows.sort(key=lambda row: -row[0])
    return rows[:limit], has_more or len(rows) > (limit or math.inf)


def _lifted(search: Search, rows: Sequence[Hit]) -> Ranking:
    """Return the targets of hits, best first."""
    is_cut = search.lift == "max" and search.fetch_k is None
    limit = search.limit if is_cut else math.inf
    hits: dict[Key, list[Hit]] = {}
    for hit in rows:
        for target in hit[3]:
            if target in hits:
                hits[target].append(hit)
            else:
                hits[target] = [hit]
        if len(hits) >= limit:
            break
    if search.lift == "max":
        hits = dict(islice(hits.items(), search.limit))
        scores = {key: of_key[0][0] for key, of_key in hits.items()}
    else:
        lifted = {key: lifted_score([h[0] for h in hits[key]], search.lift) for key in hits}
        scores = _best(lifted, search.limit)
        hits = {key: hits[key] for key in scores}
    return Ranking(scores, [Part(hits, {})])


def _joined(search: Search, rankings: Sequence[Ranking]) -> Ranking:
    """Merge the rankings of all branches into one ranking: the highest score, or the fused one."""
    if len(rankings) == 1:
        return rankings[0]
    if len({similarity.mode for similarity, _ in search.branches}) > 1:
        return fused(rankings, "relative", [1.0] * len(rankings)).first(search.top_k)
    hits: dict[Key, list[Hit]] = {}
    for ranking in rankings:
        for key, of_key in ranking.parts[0].hits.items():
            hits.setdefault(key, []).extend(of_key)
    for of_key in hits.values():
        of_key.sort(key=lambda hit: -hit[0])
    scores = {key: max(r.scores.get(key, -math.inf) for r in rankings) for key in hits}
    best = _best(scores, search.top_k)
    return Ranking(best, [Part({key: hits[key] for key in best}, {})])


def _best(scores: Mapping[Key, float], limit: int | None = None) -> dict[Key, float]:
    """Return the best targets. Ties keep their order."""
    return dict(sorted(scores.items(), key=lambda item: item[1], reverse=True)[:limit])


def _log_threshold(search: Search, sources: Iterable[TakenIndex], numbers: Sequence[int]) -> None:
    """Log once per graph that no hit reaches a lowest score."""
    message = (len(search.graphs), *search.groups, repr(search.min_score))
    logged = [logged_messages(graph) for graph in search.graphs]
    if all(message in of_graph for of_graph in logged):
        return
    hits = chain.from_iterable(source.snapshot.search(numbers, 1) for source in sources)
    best = max((score for _, scores in hits for score in scores), default=None)
    if best is not None:
        for of_graph in logged:
            of_graph.add(message)
        logger.warning(
            "no result: the lowest score is %s, and the best node of %r scores %.4f",
            min(search.min_score.values()),
            " + ".join(search.groups),
            best,
        )


def take_snapshot(
    index: Index[Any], reader: GraphReader, queries: Sequence[Any], filter: Filter
) -> Snapshot:
    """Return the snapshot of an index, or a search that holds the lock of the graph."""
    if hasattr(index, "snapshot"):
        return cast(Snapshot, index.snapshot(queries, filter))

    def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
        with reader.reading():
            return [index.search(queries[number], limit, filter) for number in numbers]

    return Snapshot(search, reader.parent_ids)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the targets of a ranking, while the graphs are held.

    Args:
        graphs: The graphs.
        query: The query.
        ranking: The ranking.
        changed: The ids of the documents that have changed since the ranking, by graph.
    """

    graphs: Sequence[NodeGraph]
    query: str
    ranking: Ranking
    changed: Mapping[int, set[str]] = field(default_factory=dict)

    def nodes(self, keys: Iterable[Key]) -> dict[Key, Node]:
        """Return the nodes of targets.

        Raises:
            MissingNodeError: If a node is gone, or its document has changed.
        """
        keys = [*dict.fromkeys(keys)]
        nodes: dict[Key, Node] = {}
        for number, graph in enumerate(self.graphs):
            of_graph = [key for key in keys if key[0] == number]
            found = graph.reader.nodes_by_id([node_id for _, node_id in of_graph])
            nodes.update(zip(of_graph, found, strict=True))
            changed = self.changed.get(number)
            if changed and any(node.document_id in changed for node in found):
                raise MissingNodeError("a found node was changed")
        return nodes

    def results(self, keys: Sequence[Key], scores: Sequence[float] | None = None) -> Results:
        """Return targets with their evidence.

        Args:
            keys: The targets.
            scores: Replacements for the scores of the ranking. Shares are scaled to them.
        """
        parts = self.ranking.parts
        of_parts = chain.from_iterable(part.hits.get(key, ()) for part in parts for key in keys)
        nodes = self.nodes([*keys, *(hit[2] for hit in of_parts)])
        results = []
        for at, key in enumerate(keys):
            score = self.ranking.scores[key]
            shares = [part.shares.get(key) for part in parts]
            if scores is not None:
                score = scores[at]
                shares = scaled(shares, score)
            evidence = [
                source.evidence(hit_score, nodes[node_key], self.query, share)
                for share, part in zip(shares, parts, strict=True)
                for hit_score, source, node_key, _ in part.hits.get(key, ())
            ]
            results.append(ScoredNode(nodes[key], score, tuple(evidence)))
        return results
