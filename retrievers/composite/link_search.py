"""Follow links from the first results of a query in one snapshot of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple, cast

import numpy as np

from ...nodegraph.errors import MissingNodeError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..branch import Branch
from ..indexes.bm25_weights import Floats
from ..indexes.text_index import TextIndex
from ..results import Evidence, Results, ScoredNode
from ..retrieval_conditions import Conditions
from ..search import View
from .link_index import LinkIndex
from .link_scores import (
    Connections,
    Pair,
    QueryWords,
    best_pairs,
    least_repeating,
    link_matrix,
    read_connections,
    score_scale,
)

NAMED = "named"
"""The ``similarity`` in the evidence for a passage whose title occurs in the query."""

FOLLOW_LINKS = "follow links"
"""The name of the span in traces."""

SEEDS = 10
"""The default number of results from which links are followed."""

_NAMED = 2  # the maximum number of passages per title that are ranked first

_GO_ON = 5  # the number of linked passages from which links are followed once more


@dataclass(frozen=True, slots=True, eq=False)
class LinkSearch:
    """The links of a graph, with settings that determine how they are followed.

    Attributes:
        graph: The graph.
        words: The search for words in passages.
        links: The index of names in passages. If None, only direct links between passages are
            followed.
        seeds: The number of first results from which links are followed.
        repetition: The factor by which repeated query words reduce the score of a passage.
    """

    graph: NodeGraph
    words: Branch
    links: LinkIndex | None
    seeds: int
    repetition: float

    def follow(
        self,
        view: View,
        hits: Results,
        limit: int,
        conditions: Conditions,
        attributes: dict[str, Any],
    ) -> Results:
        """Rank the results of a query together with the passages that are linked to them.

        The lock is held only for short reads, so links can be newer than the rankings. If a passage
        was changed in the meantime, the search must be repeated.

        Args:
            view: The rankings of the query in one snapshot of the graph.
            hits: The results, at least one.
            limit: The maximum number of results to return.
            conditions: The conditions that seeds and linked passages must meet.
            attributes: The attributes of a trace span, to which the numbers of passages and pairs
                are added.

        Raises:
            MissingNodeError: If a passage was changed in the meantime, so that the search must be
                repeated.
        """
        query = _LinkedQuery(self, view, hits, limit, conditions)
        query.rank_named_titles_first()
        linked = query.linked(attributes)
        ranking = query.ranked(linked.pairs)
        if self.repetition:
            ranking = query.without_repetition(ranking, linked.scale)
        return query.with_links(ranking[:limit])

    def own_id(self, result: ScoredNode) -> str:
        """Return the id of a node in this graph, or an empty string for nodes of other graphs."""
        return result.node.id if result.node.graph is self.graph else ""


class _Linked(NamedTuple):
    """The pairs and paths that were found for a query.

    Attributes:
        pairs: The best pair or path of each passage.
        scale: The factor that converts BM25 scores to the scale of the results' scores.
    """

    pairs: Mapping[str, Pair]
    scale: float


class _Ranked(NamedTuple):
    """A result with the source of its score.

    Attributes:
        result: The result.
        own_score: The score without links.
        pair: The pair or path that determines the score. If None, the score is ``own_score``.
    """

    result: ScoredNode
    own_score: float
    pair: Pair | None

    @property
    def is_named(self) -> bool:
        """Whether the title of the passage occurs in the query."""
        evidence = self.result.evidence
        return bool(evidence) and evidence[0].similarity == NAMED


class _LinkedQuery:
    """A query for which links are followed.

    Args:
        search: The links of the graph.
        view: The rankings of the query in one snapshot of the graph.
        hits: The results from which links are followed.
        limit: The maximum number of results to return.
        conditions: The conditions that seeds and linked passages must meet.
    """

    def __init__(
        self,
        search: LinkSearch,
        view: View,
        hits: Results,
        limit: int,
        conditions: Conditions,
    ) -> None:
        self._search = search
        self._view = view
        self._hits = hits
        # The scores of a reranker can be negative.
        self._lowest = min(0.0, min(hit.score for hit in hits))
        self._count = max(limit, search.seeds)
        self._conditions = conditions
        self._passages = cast(TextIndex, view.source(search.words).opened.index)
        with view.reading():
            self._table = self._passages.table
            self._size = len(self._table)
            self._meets = self._passages.meeting(conditions.filter)
            self._titles = [] if search.links is None else search.links.named(view.query)
            self._words = QueryWords(view, search.words, search.graph, self._titles)

    def rank_named_titles_first(self) -> None:
        """Move passages whose title occurs in the query to the beginning."""
        first = self._hits[0].score
        hits = self._words.without_parts_of_names(self._hits, self._lowest)
        named = self._named(first)
        evidence = {self._search.own_id(hit): hit.evidence for hit in hits}
        ranked = []
        for passage, match in named.items():
            matches = (match, *evidence.get(passage, ()))
            ranked.append(ScoredNode(match.node, match.score, matches))
        ranked += [hit for hit in hits if self._search.own_id(hit) not in named]
        self._hits = ranked

    def _named(self, score: float) -> dict[str, Evidence]:
        """Return the passages whose title occurs in the query, at most two for each title."""
        named: dict[str, Evidence] = {}
        for title in self._titles:
            about = self._allowed_passages(title.about)
            order = np.argsort(-self._words.scores(about).sum(axis=1), kind="stable")
            best = [about[at] for at in order[:_NAMED]]
            for node in self._view.nodes([(0, passage) for passage in best]).values():
                filters = self._conditions.filters
                named[node.id] = Evidence(node, score, NAMED, self._view.query, filters=filters)
        return named

    def _allowed_passages(self, passages: Iterable[str]) -> list[str]:
        """Return the passages that exist and meet the conditions."""
        with self._view.reading():
            return [passage for passage in passages if self._is_allowed(passage)]

    def _is_allowed(self, passage: str) -> bool:
        """Return whether a passage exists in this state of the graph and meets the conditions."""
        return self._is_known(passage) and (self._meets is None or self._meets(passage))

    def _is_known(self, passage: str) -> bool:
        """Return whether a passage was indexed in this state of the graph and still exists."""
        return 0 <= self._table.row_of(passage) < self._size

    def linked(self, attributes: dict[str, Any]) -> _Linked:
        """Return the pairs of results and linked passages, and the paths that use two links."""
        scores = {self._search.own_id(hit): hit.score - self._lowest for hit in self._hits}
        with self._view.reading():
            seeds = self._allowed_passages(scores)[: self._search.seeds]
            connections = self._connections(seeds)
        if not seeds:
            return _Linked({}, 0.0)
        seed_scores = [scores[seed] for seed in seeds]
        matrix = link_matrix(connections)
        terms = self._words.scores(matrix.passages)
        scale = score_scale(seed_scores, terms[: len(seeds)].sum(axis=1))
        terms *= scale
        pairs = best_pairs(matrix, seed_scores, terms, max(self._count, _GO_ON))
        attributes.update(passages=len(matrix.passages), pairs=len(pairs), paths=0)
        linked = [(passage, pair) for passage, pair in pairs.items() if passage not in seeds]
        second = dict(nlargest(_GO_ON, linked, key=lambda item: item[1].score))
        if second:
            of_seeds = dict(zip(seeds, terms, strict=False))
            paths = self._paths(second, of_seeds, scale)
            attributes.update(paths=len(paths))
            for passage, path in paths.items():
                if passage not in pairs or path.score > pairs[passage].score:
                    pairs[passage] = path
        return _Linked(pairs, scale)

    def _connections(self, passages: Sequence[str]) -> Connections:
        """Read the connections of passages. The lock of the graph must be held."""
        search = self._search
        return read_connections(
            search.graph, self._passages, self._is_allowed, search.links, passages
        )

    def _paths(
        self, second: Mapping[str, Pair], of_seeds: Mapping[str, Floats], scale: float
    ) -> dict[str, Pair]:
        """Follow links from the second passages of pairs."""
        with self._view.reading():
            connections = self._connections([*second])
        matrix = link_matrix(connections)
        terms = scale * self._words.scores(matrix.passages)
        partners = np.array([of_seeds[pair.partner] for pair in second.values()])
        covered = np.maximum(terms[: len(second)], partners)
        scores = [pair.score for pair in second.values()]
        return best_pairs(matrix, scores, terms, self._count, covered)

    def ranked(self, pairs: Mapping[str, Pair]) -> list[_Ranked]:
        """Rank results and linked passages by the score of their best pair or their own score."""
        ranking = []
        hit_ids = set()
        for hit in self._hits:
            own_id = self._search.own_id(hit)
            hit_ids.add(own_id)
            pair = pairs.get(own_id)
            if pair is not None and pair.score + self._lowest > hit.score:
                result = replace(hit, score=pair.score + self._lowest)
                ranking.append(_Ranked(result, hit.score, pair))
            else:
                ranking.append(_Ranked(hit, hit.score, None))
        others = [(passage, pair) for passage, pair in pairs.items() if passage not in hit_ids]
        linked = nsmallest(
            self._count, others, key=lambda item: (-item[1].score, -item[1].own_score)
        )
        nodes = self._view.nodes([(0, passage) for passage, _ in linked])
        for node, (_, pair) in zip(nodes.values(), linked, strict=True):
            result = ScoredNode(node, pair.score + self._lowest)
            ranking.append(_Ranked(result, pair.own_score + self._lowest, pair))
        ranking.sort(key=_by_score)
        return ranking[: self._count]

    def without_repetition(self, ranking: Sequence[_Ranked], scale: float) -> list[_Ranked]:
        """Rerank passages so that repetitions of words or titles in earlier passages come later."""
        ids = [self._search.own_id(ranked.result) for ranked in ranking]
        links = self._search.links
        with self._view.reading():
            native = [at for at, own_id in enumerate(ids) if self._is_known(own_id)]
            titles = [None if links is None else links.title(own_id) for own_id in ids]
        of_native = self._words.scores([ids[at] for at in native])
        terms = np.zeros((len(ranking), of_native.shape[1]))
        terms[native] = scale * of_native
        order_and_scores = least_repeating(
            [ranked.result.score for ranked in ranking],
            terms,
            self._search.repetition,
            [ranked.is_named for ranked in ranking],
            titles,
        )
        return [
            ranking[at]._replace(result=replace(ranking[at].result, score=score))
            for at, score in order_and_scores
        ]

    def with_links(self, ranking: Sequence[_Ranked]) -> Results:
        """Return the results, with the links that determined their scores as the first evidence."""
        links = self._search.links
        pairs = [ranked.pair for ranked in ranking if ranked.pair is not None]
        names = [pair.connection[1] for pair in pairs]
        with self._view.reading():
            keys = dict.fromkeys((0, pair.partner) for pair in pairs)
            nodes = self._view.nodes(keys)
            of_names = {}
            if links is not None:
                of_names = {name: self._name_node(links, name) for name in names if name}
        results = []
        for result, _, pair in ranking:
            if pair is None:
                results.append(result)
                continue
            kind, name = pair.connection
            ends = [nodes[0, pair.partner]]
            if name in of_names:
                ends.append(of_names[name])
            filters = self._conditions.filters
            matches = [
                Evidence(end, result.score, f"link {kind!r}", self._view.query, filters=filters)
                for end in ends
            ]
            results.append(replace(result, evidence=(*matches, *result.evidence)))
        return results

    def _name_node(self, links: LinkIndex, name: str) -> Node:
        """Return the node that represents a name. The lock of the graph must be held.

        Raises:
            MissingNodeError: If the name no longer connects any passages.
        """
        if links.entity(name) is None:
            raise MissingNodeError(f"the name {name!r} was removed")
        return links.node(name)


def _by_score(ranked: _Ranked) -> tuple[float, float, bool, int]:
    return -ranked.result.score, -ranked.own_score, not ranked.is_named, ranked.result.node.order
