"""Search indexes, lift the hits, merge the results."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any, TypeVar

from ..nodegraph.errors import nearest_names
from ..nodegraph.graph import NodeGraph
from ..nodegraph.locking import with_deferred_work
from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import Kin, Node
from .filters import Filter
from .protocols import Index, Similarity
from .ranking import Lift, fuse, lift, lift_all, merge_hits, merge_results
from .results import Hits, Match, ScoredNode, scored_nodes
from .retrieval_conditions import Conditions
from .tracing import is_observed, start_span
from .validation import check_number

GraphT = TypeVar("GraphT", bound=Kin)

T = TypeVar("T")

MAX_QUERIES = 64
"""Queries that are searched while the graphs are held once."""


def reading(groups: Mapping[GraphT, Iterable[str]]) -> AbstractContextManager[None]:
    """Hold a consistent state of several graphs, with groups built, until the block ends.

    The graphs are locked in one order, whoever locks them: two threads can't wait for each other.

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
def _reading_all(groups: Mapping[GraphT, Iterable[str]]) -> Iterator[None]:
    with ExitStack() as locks:
        for graph in sorted(groups, key=id):
            locks.enter_context(graph.reader.reading(*groups[graph]))
        yield


@dataclass(frozen=True, slots=True)
class Search:
    """Answer queries whose embeddings are known.

    Attributes:
        graphs: The graphs.
        groups: The groups to search, as one.
        target: The group to answer with.
        similarity: Scores the nodes.
        scopes: What is searched together; each finds ``limit`` nodes.
        cut_off: Keeps scores from here, for all scopes or by their key.
        lift: What a target scores.
        limit: How many results for each query and scope.
        conditions: What hits must meet, and what is returned in their place.
        stays: Tells hits that are answered with as they are, and not lifted.
        pooled: Whether texts are scored as if all groups were one, or each by its own.
        hits: How many hits are read and lifted for each query and scope; None for as many as it
            takes to fill ``limit``.
        plans: Of earlier searches for the same, which are quicker to find ready.
        top_k: How many results for each query where words and vectors are fused.
    """

    graphs: Sequence[NodeGraph]
    groups: Sequence[str]
    target: str
    similarity: Similarity
    scopes: Sequence[SearchScope]
    cut_off: float | Mapping[str, float] | None
    lift: Lift
    limit: int
    conditions: Conditions
    stays: Callable[[Node], bool] | None = None
    pooled: bool = False
    hits: int | None = None
    plans: Plans = field(default_factory=lambda: Plans())
    top_k: int | None = None

    def __call__(
        self, queries: Sequence[str], vectors: Sequence[Sequence[Any]]
    ) -> list[list[ScoredNode]]:
        """Make the indexes ready, hold the graphs, search; return the results of each query.

        Args:
            queries: The queries, none of them blank.
            vectors: By scope and graph, an array (queries, dimension); none for texts.
        """
        if not queries:
            return []
        if not is_observed():
            return self._search(queries, vectors)
        group, similarity = " + ".join(self.groups), self.similarity.name
        with start_span(
            "search", queries=queries, group=group, similarity=similarity, target=self.target
        ) as span:
            results = self._search(queries, vectors)
            span.set_results(results)
        return results

    def _search(
        self, queries: Sequence[str], vectors: Sequence[Sequence[Any]]
    ) -> list[list[ScoredNode]]:
        if len(queries) <= MAX_QUERIES:
            return self._search_together(queries, vectors)
        results: list[list[ScoredNode]] = []
        for start in range(0, len(queries), MAX_QUERIES):
            part = slice(start, start + MAX_QUERIES)
            part_vectors = [[of_graph[part] for of_graph in scope] for scope in vectors]
            results += self._search_together(queries[part], part_vectors)
        return results

    def _search_together(
        self, queries: Sequence[str], vectors: Sequence[Sequence[Any]]
    ) -> list[list[ScoredNode]]:
        return search_held([self], lambda plans: self._search_held(queries, vectors, plans[0]))

    def ready(self) -> SearchPlan:
        """Open all indexes, and do what may take long: build groups, embed nodes."""
        indexes = [
            [self.similarity.open(*part, scope.key) for part in self._searched(scope)]
            for scope in self.scopes
        ]
        for index in chain.from_iterable(indexes):
            index.ready()
        groups = {graph: self._read_groups(graph) for graph in self.graphs}
        for graph in self.graphs[1:]:  # built before any is held: writers don't have to wait
            with graph.reader.reading(*groups[graph]):
                pass
        return SearchPlan(self, groups, indexes)

    def _search_held(
        self, queries: Sequence[str], vectors: Sequence[Sequence[Any]], plan: SearchPlan
    ) -> list[list[ScoredNode]]:
        """Search every scope; the graphs are held, and the indexes up to date."""
        prepare = self.similarity.prepare
        rankings = []
        for number, (scope, opened) in enumerate(zip(self.scopes, plan.indexes, strict=True)):
            if scope.key is None:
                every = 1 if self.pooled else len(self.groups)  # a group's, one for each graph
                prepared = [
                    [prepare(query, opened[position::every]) for query in queries]
                    for position in range(every)
                ] * (len(opened) // every)
            else:
                of_indexes = [of_graph for of_graph in vectors[number] for _ in self.groups]
                prepared = [
                    [prepare(vector, [index]) for vector in of_index]
                    for index, of_index in zip(opened, of_indexes, strict=True)
                ]
            rankings.append(self._search_scope(scope, queries, prepared, opened))
        if len(rankings) == 1:
            return rankings[0]
        if self.similarity.mode == "both":
            *of_vectors, of_words = rankings
            per_query = zip(of_words, *of_vectors, strict=True)  # words decide where scores tie
            return [fuse(of_query, "relative", top_k=self.top_k) for of_query in per_query]
        return [merge_results(of_query, self._place) for of_query in zip(*rankings, strict=True)]

    def _search_scope(
        self,
        scope: SearchScope,
        queries: Sequence[str],
        prepared: Sequence[Sequence[Any]],
        indexes: Sequence[Index[Any]],
    ) -> list[list[ScoredNode]]:
        """Search indexes, for more hits as long as a query's hits give too few targets."""
        lifting, cut_off = self.lifting, self.cut_off_of(scope.key)
        if not lifting and len(indexes) == 1:  # no node is there twice
            found = search_index(indexes[0], prepared[0], self.limit, self.conditions.filter)
            return [
                self._own_hits(scope, query, hits, cut_off, indexes[0])
                for query, hits in zip(queries, found, strict=True)
            ]
        exactly, targets = self.hits if lifting else None, self._targets()
        results: list[list[ScoredNode]] = [[] for _ in queries]
        fetch = 4 * self.limit if lifting else self.limit
        open_queries = list(range(len(queries)))
        while open_queries:
            limit = exactly or (None if lifting and self.lift != "max" else fetch)
            hits_by_index = [
                search_index(
                    index, [ready[at] for at in open_queries], limit, self.conditions.filter
                )
                for index, ready in zip(indexes, prepared, strict=True)
            ]
            short = []
            for at, *hits in zip(open_queries, *hits_by_index, strict=True):
                rows, more = merge_hits(hits, limit, cut_off)
                if exactly is not None:
                    rows, more = rows[:exactly], False
                nodes = self._hits(scope, queries[at], rows, indexes)
                if lifting and self.lift != "max":
                    results[at] = lift_all(nodes, targets, self.limit, self.lift, self._place)
                    continue
                # Hits that are to be looked at are evidence also behind the last target.
                maximum = self.limit if exactly is None else sys.maxsize
                results[at] = lift(nodes, targets, maximum)[: self.limit]
                if more and len(results[at]) < self.limit:
                    short.append(at)
            open_queries, fetch = short, 4 * fetch
        return results

    def _own_hits(
        self, scope: SearchScope, query: str, hits: Hits, cut_off: float, index: Index[Any]
    ) -> list[ScoredNode]:
        """Return the hits of the only index, down to a score."""
        ids, scores = hits
        scores = [score for score in scores if score >= cut_off]
        nodes = scope.graphs[0].reader.nodes_by_id(ids[: len(scores)])
        return scored_nodes(nodes, scores, self.match(scope, query, index))

    def match(self, scope: SearchScope, query: str, index: Index[Any]) -> Match:
        """Return what the evidence of all hits of a query has in common."""
        searched = getattr(index, "uses_search_text", False)
        filters = self.conditions.filters
        return Match(scope.name, query, scope.key, None, (), searched, filters)

    def _hits(
        self,
        scope: SearchScope,
        query: str,
        rows: Sequence[tuple[float, int, str]],
        indexes: Sequence[Index[Any]],
    ) -> Iterator[ScoredNode]:
        graphs = [graph for graph, _ in self._searched(scope)]
        matches = [self.match(scope, query, index) for index in indexes]
        for start in range(0, len(rows), self.limit):  # as many as may be enough, at once
            batch = rows[start : start + self.limit]
            if len(graphs) == 1:
                nodes_of_one = graphs[0].reader.nodes_by_id([i for _, _, i in batch])
                yield from scored_nodes(nodes_of_one, [score for score, _, _ in batch], matches[0])
                continue
            nodes = {
                graph: iter(
                    graph.reader.nodes_by_id([i for _, n, i in batch if graphs[n] is graph])
                )
                for graph in {graphs[at] for _, at, _ in batch}
            }
            for score, at, _ in batch:
                yield from scored_nodes([next(nodes[graphs[at]])], [score], matches[at])

    def _searched(self, scope: SearchScope) -> list[tuple[NodeGraph, str]]:
        """Return what each index of a scope is of: the graphs' groups, graph by graph."""
        return [(graph, group) for graph in scope.graphs for group in self.groups]

    def _read_groups(self, graph: NodeGraph) -> list[str]:
        """Return the groups to build and hold, with those whose texts are searched, too."""
        searched = [name for group in self.groups for name in graph.reader.searched_groups(group)]
        return [*dict.fromkeys((*searched, self.target))]

    @property
    def lifting(self) -> bool:
        """Whether hits are answered with their kin in another group."""
        return {*self.groups} != {self.target}

    def cut_off_of(self, key: str | None) -> float:
        """Return the least score of a scope's hits."""
        number = self.cut_off
        if number is None:
            return -math.inf
        if isinstance(number, Mapping):
            number = None if key is None else number.get(key)
        return -math.inf if number is None else number

    def _place(self, node: Node) -> tuple[int, int]:
        return next(at for at, graph in enumerate(self.graphs) if graph is node.graph), node.order

    def _targets(self) -> Callable[[Node], Sequence[Node]]:
        if not self.lifting:
            return lambda node: [node]
        stays, conditions = self.stays, self.conditions
        paths = {id(graph): path_to(graph, self.target) for graph in self.graphs}

        def targets(node: Node) -> list[Node]:
            if stays is not None and stays(node):
                return [node]
            graph = node.graph
            relatives = kin(graph, paths[id(graph)], node) if graph is not None else []
            if conditions.filters is None:
                return relatives
            return [relative for relative in relatives if conditions.allow(relative, node)]

        return targets


def search_index(
    index: Index[Any],
    prepared: Sequence[Any],
    limit: int | None,
    filter: Filter,
) -> list[Hits]:
    """Search an index for all queries, at once where it can."""
    search_many = getattr(index, "search_many", None)
    if search_many is not None:
        hits: list[Hits] = search_many(prepared, limit, filter)
        return hits
    return [index.search(query, limit, filter) for query in prepared]


def search_held(searches: Sequence[Search], work: Callable[[Sequence[SearchPlan]], T]) -> T:
    """Hold the graphs of searches, with all that these need built and up to date, and do some work.

    Args:
        searches: The searches.
        work: Gets the plan of each.
    """
    plans = [search.plans.latest for search in searches]
    known = [
        plan
        for plan, search in zip(plans, searches, strict=True)
        if plan is not None and plan.serves(search)
    ]
    if len(known) == len(searches):

        def current() -> list[T]:
            with reading(_groups_of(known)):
                return [work(known)] if all(plan.is_current() for plan in known) else []

        if done := with_deferred_work(current):
            return done[0]
    known = []
    for search in searches:
        search.plans.latest = search.ready()
        known.append(search.plans.latest)

    def synced() -> T:
        with reading(_groups_of(known)):
            for plan in known:
                plan.sync()
            return work(known)

    return with_deferred_work(synced)


def _groups_of(plans: Sequence[SearchPlan]) -> Mapping[NodeGraph, Sequence[str]]:
    """Return the groups that plans build and hold, by graph."""
    if len(plans) == 1:
        return plans[0].groups
    groups: dict[NodeGraph, list[str]] = {}
    for plan in plans:
        for graph, names in plan.groups.items():
            held = groups.setdefault(graph, [])
            held += [name for name in names if name not in held]
    return groups


class SearchPlan:
    """Hold what a search needs of its graphs, as long as nothing changes in them.

    Attributes:
        groups: What is to be built and held, by graph.
        indexes: Of each scope.
    """

    __slots__ = ("_of", "_states", "groups", "indexes")

    def __init__(
        self,
        search: Search,
        groups: Mapping[NodeGraph, Sequence[str]],
        indexes: Sequence[Sequence[Index[Any]]],
    ) -> None:
        self.groups, self.indexes = groups, indexes
        self._of = search.scopes, search.similarity, search.groups, search.target
        self._states: list[tuple[NodeGraph, object]] = []

    def serves(self, search: Search) -> bool:
        """Return whether a search needs the same."""
        scopes, similarity, groups, target = self._of
        return (
            scopes is search.scopes
            and similarity is search.similarity
            and groups == search.groups
            and target == search.target
        )

    def sync(self) -> None:
        """Bring the indexes up to date; the graphs are held."""
        for index in chain.from_iterable(self.indexes):
            index.sync()
        self._states = [(graph, graph.reader.held_state()) for graph in self.groups]

    def is_current(self) -> bool:
        """Return whether nothing has changed since ``sync``; the graphs are held."""
        for graph, state in self._states:
            if graph.reader.held_state() is not state:
                return False
        return bool(self._states)


class Plans:
    """Remember the plan of the latest search of a retriever; copies of it have none."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: SearchPlan | None = None

    def __reduce__(self) -> tuple[type[Plans], tuple[()]]:
        return Plans, ()


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Name graphs that are searched as one, by one embedding or by their texts.

    Attributes:
        key: The embedding, None where texts are compared.
        graphs: The graphs that are searched.
        name: What evidence calls the similarity.
    """

    key: str | None
    graphs: Sequence[NodeGraph]
    name: str


def search_scopes(
    similarity: Similarity, graphs: Sequence[NodeGraph], embed_keys: Sequence[str] | None
) -> list[SearchScope]:
    """Return the scopes of a similarity: one for each embedding, one for texts.

    Without ``embed_keys`` every graph is searched by all its own embeddings.

    Raises:
        ValueError: If keys are given to a similarity of texts, or none at all, or a graph has no
            embeddings, or not these.
    """
    if similarity.mode == "text":
        if embed_keys is not None:
            raise ValueError(
                f"embed_keys={embed_keys!r} choose among embeddings, and similarity "
                f"{similarity.name!r} compares texts; leave them out"
            )
        return [SearchScope(None, graphs, similarity.name)]
    has_words = similarity.mode == "both"
    keys_by_graph = [list(graph.embeddings.embedders) for graph in graphs]
    for graph, keys in zip(graphs, keys_by_graph, strict=True):
        if not keys and not has_words:
            raise ValueError(
                f"similarity {similarity.name!r} compares embeddings, and {graph!r:.80} has none; "
                "give it a model: NodeGraph(..., embed=...)"
            )
    if embed_keys is None:
        selected = list(dict.fromkeys(key for keys in keys_by_graph for key in keys))
    else:
        selected = [embed_keys] if isinstance(embed_keys, str) else list(dict.fromkeys(embed_keys))
        if not selected:
            raise ValueError("embed_keys=[] names no embedding; leave it out to search all")
        for key, keys in product(selected, keys_by_graph):
            if key not in keys:
                raise ValueError(
                    f"no embedding {key!r}; the graph has {nearest_names(str(key), keys)}: choose "
                    "embed_keys among them, or give it one: NodeGraph(..., embed={'key': model})"
                )
    name = "cosine" if has_words else similarity.name
    scopes = []
    for key in selected:
        having = [g for g, keys in zip(graphs, keys_by_graph, strict=True) if key in keys]
        scopes.append(SearchScope(key, having, name))
    return [*scopes, SearchScope(None, graphs, "bm25")] if has_words else scopes


def check_cut_off(
    cut_off: float | Mapping[str, float] | None, keys: Sequence[str], name: str
) -> float | dict[str, float] | None:
    """Return a cut-off as floats.

    Args:
        cut_off: A number for all, or one for each embedding key.
        keys: The keys that are searched; none where texts are compared.
        name: The similarity's.

    Raises:
        TypeError: If it is no number, or a dict where texts are compared.
        ValueError: If it is NaN or no cosine, or for an embedding that is not searched.
    """
    if cut_off is None:
        return None
    if not isinstance(cut_off, Mapping) or not keys:
        return _check_number(cut_off, keys, name)
    for key in cut_off:
        if key not in keys:
            raise ValueError(
                f"similarity_cut_off has the key {key!r}; the embeddings that are searched are "
                f"{nearest_names(str(key), keys)}"
            )
    return {key: _check_number(number, keys, name) for key, number in cut_off.items()}


def _check_number(cut_off: Any, keys: Sequence[str], name: str) -> float:
    allowed = ", or a dict with one for each key" if keys else " for a similarity of texts"
    check_number(cut_off, "similarity_cut_off", f"a number{allowed}")
    if math.isnan(cut_off):
        raise ValueError("similarity_cut_off is NaN, which no score reaches; give a number")
    if name in ("cosine", "auto") and not -1 <= cut_off <= 1:
        raise ValueError(
            f"similarity_cut_off is from -1 to 1 for cosines, not {cut_off!r}; BM25's scores have "
            "no upper end: similarity='bm25'"
        )
    return float(cut_off)
