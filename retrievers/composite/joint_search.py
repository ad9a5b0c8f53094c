"""Search plain retrievers of one graph together: ids and scores, then nodes of what is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.passage_vectors import embed_ahead
from ...nodegraph.navigation import kin, path_to
from ...nodegraph.node import Node
from ..filters import Filters
from ..plans.effects import Compute, Work
from ..plans.plan import Plan
from ..protocols import Index
from ..ranking import FusedIds
from ..results import Evidence, Match, Results, deferred_node
from ..retriever import Retriever
from ..search import MAX_QUERIES, Search, SearchPlan, search_held, search_index
from .relevance import rescaled

T = TypeVar("T")

_FETCH = 3  # hits for each target that is wanted, at first


def can_join(retrievers: Sequence[object]) -> bool:
    """Return whether retrievers can be searched together.

    They are plain ones of one graph and target, each with one index, and score by the best hit.
    """
    plain = [item for item in retrievers if type(item) is Retriever]
    return len(plain) == len(retrievers) and all(
        item.graphs == plain[0].graphs
        and item.target == plain[0].target
        and item.settings.lift == "max"
        and len(item.graphs) == 1
        and len(item.embed_keys) < 2
        and item.similarity.mode != "both"
        for item in plain
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What a retriever has found for a query.

    Attributes:
        query: The query as its index takes it: a vector, or weighed terms.
        index: The index.
        scores: Those of the targets, best first, by id.
        hits: The ids of the nodes that were found for each target, with their scores, best first;
            None where targets themselves were found.
    """

    query: Any
    index: Any
    scores: dict[str, float]
    hits: Mapping[str, Sequence[tuple[str, float]]] | None = None

    def hits_for(self, target: str) -> Sequence[tuple[str, float]]:
        """Return the ids of the hits for a target, with their scores."""
        if self.hits is None:
            return [(target, self.scores[target])] if target in self.scores else ()
        return self.hits.get(target, ())


Read = Callable[[FusedIds, Sequence[str], Sequence[float] | None], Results]
"""Reads nodes of a fusion, with scores in place of their own, to which shares then add up."""

Rank = Callable[[str, Sequence[Found], Read], T]
"""Makes one ranking of what each retriever has found for a query, while the graph is held."""


def joint_search(
    retrievers: Sequence[Retriever],
    rank: Rank[T],
    queries: Sequence[str],
    limits: Sequence[int | None],
    filters: Filters | None,
) -> Plan[list[T]]:
    """Return what ``rank`` makes of each query as a plan, all of one state of the graph.

    Args:
        retrievers: Those that ``can_join``.
        rank: Makes one ranking of theirs, and reads the nodes that are wanted.
        queries: The queries, none of them blank.
        limits: How many targets each retriever finds at most; None for its own number.
        filters: Conditions beside the retrievers' own.
    """
    branches: list[_Branch] = []
    for retriever, limit in zip(retrievers, limits, strict=True):
        search = retriever.search_for(queries, limit, filters)
        vectors: Any = queries
        if retriever.embed_keys:
            of_graphs = yield from Compute.of(
                retriever.query_vectors, retriever.aquery_vectors, queries
            )
            vectors = of_graphs[0][0]
            if retriever.embeds_by_async_model:
                yield from Compute(lambda: None, partial(embed_ahead, search.ready))
        branches.append(_Branch(search, vectors))
    searches = [branch.search for branch in branches]

    def find() -> list[T]:
        results: list[T] = []
        for start in range(0, len(queries), MAX_QUERIES):
            part = slice(start, start + MAX_QUERIES)
            of_part = [_Branch(branch.search, branch.queries[part]) for branch in branches]
            results += search_held(searches, partial(_results, of_part, rank, queries[part]))
        return results

    return (yield from Work(find))


def _results(
    branches: Sequence[_Branch],
    rank: Rank[T],
    queries: Sequence[str],
    plans: Sequence[SearchPlan],
) -> list[T]:
    """Rank what is found for queries; the graph is held, and the indexes are up to date."""
    opened = [plan.indexes[0][0] for plan in plans]
    prepared = [  # one query after the other: its analysis serves all branches
        [
            branch.search.similarity.prepare(branch.queries[at], [index])
            for branch, index in zip(branches, opened, strict=True)
        ]
        for at in range(len(queries))
    ]
    founds = [
        branch.find([of_query[number] for of_query in prepared], opened[number])
        for number, branch in enumerate(branches)
    ]
    results = []
    for query, *found in zip(queries, *founds, strict=True):
        matches = [
            branch.search.match(branch.search.scopes[0], query, of_branch.index)
            for branch, of_branch in zip(branches, found, strict=True)
        ]
        results.append(
            rank(query, found, partial(_read, branches[0].search.graphs[0], found, matches))
        )
    return results


def _read(
    graph: NodeGraph,
    founds: Sequence[Found],
    matches: Sequence[Match],
    fused: FusedIds,
    targets: Sequence[str],
    scores: Sequence[float] | None,
) -> Results:
    """Return targets as results, with evidence of each retriever that has found them."""
    lifted = [found for found in founds if found.hits is not None]
    hits = (hit for i in targets for found in lifted for hit, _ in found.hits_for(i))
    ids = list(dict.fromkeys([*targets, *hits]))
    nodes = dict(zip(ids, graph.reader.nodes_by_id(ids), strict=True))
    results = []
    for at, target in enumerate(targets):
        score = None if scores is None else scores[at]
        evidence = partial(_evidence, nodes, founds, matches, fused, target, score)
        own = fused.scores[target] if score is None else score
        results.append(deferred_node(nodes[target], own, evidence))
    return results


def _evidence(
    nodes: Mapping[str, Node],
    founds: Sequence[Found],
    matches: Sequence[Match],
    fused: FusedIds,
    target: str,
    score: float | None,
) -> Iterable[Evidence]:
    """Return the evidence for a target, each piece once, with shares of its score."""
    shares = fused.shares(target)
    every = (
        Evidence(nodes[hit], of_hit, *matches[number]._replace(share=share))
        for number, share in (shares if score is None else rescaled(shares, score))
        for hit, of_hit in founds[number].hits_for(target)
    )
    return dict.fromkeys(every)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A search, and the queries as its similarity takes them."""

    search: Search
    queries: Sequence[Any]

    def find(self, prepared: Sequence[Any], index: Index[Any]) -> list[Found]:
        """Return what is found for queries, searched again where hits give too few targets."""
        search = self.search
        condition, lift = search.conditions.filter, self._lifting() if search.lifting else None
        cut_off = search.cut_off_of(search.scopes[0].key)
        limit = (search.hits or _FETCH * search.limit) if lift else search.limit
        founds = []
        for query, hits in zip(
            prepared, search_index(index, prepared, limit, condition), strict=True
        ):
            fetch = limit
            while True:
                more = len(hits.ids) == fetch and hits.scores[-1] >= cut_off
                ids, scores = hits
                if scores and scores[-1] < cut_off:
                    ids = ids[: sum(score >= cut_off for score in scores)]
                if lift is None:
                    founds.append(Found(query, index, dict(zip(ids, scores, strict=False))))
                    break
                targets = lift(ids, scores)
                if not more or search.hits or len(targets) >= search.limit:
                    best = {target: of_target[0][1] for target, of_target in targets.items()}
                    founds.append(Found(query, index, best, targets))
                    break
                fetch *= 4
                (hits,) = search_index(index, [query], fetch, condition)
        return founds

    def _lifting(self) -> _Lift:
        """Return what turns hits, best first, into targets with their hits."""
        search = self.search
        graph, conditions = search.graphs[0], search.conditions
        group = graph.reader.lineage(search.groups[0])[-1]
        is_child = group.scope != "group" and group.parent == search.target
        path = path_to(graph, search.target)

        def targets_of(hits: Sequence[str]) -> Iterable[Sequence[str | None]]:
            if is_child and conditions.filters is None:
                return zip(graph.reader.parent_ids(hits), strict=True)
            nodes = graph.reader.nodes_by_id(hits)
            return ([r.id for r in kin(graph, path, n) if conditions.allow(r, n)] for n in nodes)

        def lift(ids: Sequence[str], scores: Sequence[float]) -> _Lifted:
            targets: _Lifted = {}
            maximum = len(ids) if search.hits else search.limit
            for start in range(0, len(ids), search.limit):  # as many as may be enough, at once
                part = ids[start : start + search.limit]
                for hit, score, of_hit in zip(part, scores[start:], targets_of(part), strict=False):
                    for target in of_hit:
                        if target in targets:
                            targets[target].append((hit, score))
                        elif len(targets) < maximum and target:
                            targets[target] = [(hit, score)]
                    if len(targets) == maximum and not search.hits:
                        return targets
            return dict(islice(targets.items(), search.limit))

        return lift


_Lifted = dict[str, list[tuple[str, float]]]

_Lift = Callable[[Sequence[str], Sequence[float]], _Lifted]
