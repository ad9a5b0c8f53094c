"""A retriever that follows links from the first hits to passages that do not match the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nlargest, nsmallest
from typing import Any

import numpy as np

from ...nodegraph.graph import NodeGraph
from ..base_retriever import BaseRetriever
from ..filters import Filters, all_of, parse_filters
from ..foreign.foreign_retriever import as_retriever, check_in_graph
from ..indexes.current import current
from ..indexes.synced_index import SyncedIndex
from ..indexes.text_index import TextIndex
from ..plans.effects import find_all
from ..plans.plan import Do
from ..protocols import RetrieverLike
from ..results import Evidence, Results, ScoredNode
from ..retrieval_conditions import Conditions, HitConditions
from ..similarities.bm25 import Bm25
from ..token_budget import without_budget
from ..tracing import start_span
from ..validation import check_top_k, number, whole
from .link_index import Entity, LinkIndex
from .link_scores import Pair, QueryWords, best_pairs, connect, least_repeating, score_scale

NAMED = "named"
"""The ``similarity`` of evidence for a passage whose title the query names."""

_NAMED = 2  # passages per title that rank before the hits

_GO_ON = 5  # linked passages with a second hop


class LinkRetriever(BaseRetriever):
    """A retriever that follows links from the first hits and ranks pairs of linked passages.

    Use it for multi-hop questions: one passage names the author of a book, and another passage,
    found by this name, contains the place of his studies. Questions with an answer in one passage
    keep their first hit. To follow longer chains of links, nest a ``LinkRetriever`` in another.

    Passages whose title occurs in the query, word for word, get the score of the first hit and
    rank before it. If several passages have this title, the two best by words are used. The words
    of the title count only in passages that contain the whole title.

    Each of the first ``seeds`` hits forms a pair with each passage that is linked to it, directly
    or through an entity. A pair's score is the sum of the hit's score and a gain. It is lower if
    the connection is weak::

        pair(hit, other) = 0.9 * sqrt(strength) * (score(hit) + gain(other | hit))

    For each term of the query, ``gain`` adds the amount by which the BM25 score of the other
    passage exceeds the score of the hit. If the hits' scores are of another kind, the gain is
    scaled to them by the best BM25 score of the seeds. A passage has the score of its best pair, or
    its own score if this is higher. Ties are ranked by the passages' own scores.

    The strength of a connection through an entity is the entity's rarity,
    ``log((N + 1) / n) / log(N + 1)`` for N passages of which n mention it. If the entity is a
    name and the title of neither passage, the strength is 2/3 of the rarity, or 3/4 if the name
    is in the title of one among other words. The strength of a direct link is its weight, at most
    1. Links are followed in both directions.

    From the best five linked passages, links are followed once more, to passages that have words
    of the query which both passages of the pair lack. Such a path scores like a pair::

        path(hit, second, third) = 0.75 * sqrt(strength)
                                   * (pair(hit, second) + gain(third | hit, second))

    At the end, passages that repeat query words of the passages before them are ranked lower, and
    so is the third passage of one title (``repetition``).

    The scores of paths follow Asai et al., "Learning to retrieve reasoning paths over Wikipedia
    graph", 2020, and Godbole et al., "Multi-step entity-centric information retrieval for
    multi-hop question answering", 2019, but by words instead of a trained model.

    Args:
        inner: The retriever of the first hits, passages of ``graph``.
        graph: The node graph whose links are followed.
        via: The group of an ``EntityExtractor``, whose names link the passages. None: only links
            from passage to passage.
        top_k: The maximum number of results.
        seeds: The number of first hits from which links are followed.
        repetition: How much a passage's score is lowered by query words that passages before it
            have, and, in parts of the first score, by two passages before it with the same title.
        bm25: The weights of the query's words. None: the inner retriever's ``Bm25`` if it has one.
        filters: Conditions on metadata, for hits and linked passages. Linked passages also meet
            the conditions of the retrievers that found the hits.

    Raises:
        UnknownGroupError: If the graph has no group ``via``.
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or ``via`` has another transform. In a retrieval,
            if the hits are not of the group that ``via`` links.

    Example:
        >>> from nodekin.nodegraph import EntityExtractor, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nBorn in Skien."])
        >>> graph.create_node_group("entity", EntityExtractor())
        >>> retriever = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")
        >>> [result.node.text.split("\\n")[0] for result in retriever("Who wrote the play Brand?")]
        ['Brand', 'Henrik Ibsen']
    """

    name = "follow links"

    def __init__(
        self,
        inner: RetrieverLike,
        graph: NodeGraph,
        *,
        via: str | None = None,
        top_k: int = 6,
        seeds: int = 10,
        repetition: float = 0.15,
        bm25: Bm25 | None = None,
        filters: Filters | None = None,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        if via is not None:
            LinkIndex.open(graph, via)
        self.inner = as_retriever(inner)
        check_in_graph(self.inner, "LinkRetriever")
        self.graph = graph
        self.via = via
        self.seeds = whole(seeds, "seeds", 1)
        self.repetition = number(repetition, "repetition")
        retriever = self.inner
        inherited = getattr(retriever, "similarity", None) or getattr(retriever, "bm25", None)
        self.bm25 = bm25 or (inherited if isinstance(inherited, Bm25) else Bm25())
        parse_filters(filters)
        self.filters = filters

    def __repr__(self) -> str:
        return f"LinkRetriever({self.inner!r}, via={self.via!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        assert limit is not None
        conditions = all_of(self.filters, filters)
        with without_budget():
            hits = await find_all(self.inner, queries, max(limit, self.seeds), conditions)
        follow = partial(self._follow_links, limit=limit, conditions=HitConditions(conditions))
        return await Do(lambda: [*map(follow, queries, hits)])

    def _follow_links(
        self, query: str, hits: Results, limit: int, conditions: HitConditions
    ) -> Results:
        """Rank hits and the passages that are linked to the first hits."""
        with start_span(self.name, query=query, via=self.via, hits=len(hits)) as span:
            results = hits[:limit]
            if own := [hit for hit in hits if self._own_id(hit)]:
                group = own[0].node.group
                parent = self.via and self.graph.reader.lineage(self.via)[-1].parent
                if parent not in (None, group):
                    raise ValueError(
                        f"the hits must be of group {parent!r}, which {self.via!r} links, got "
                        f"{group!r}; set target={parent!r} in the inner retriever"
                    )
                met = conditions(own)
                passages = self.bm25.open(self.graph, group)
                links = None if self.via is None else LinkIndex.open(self.graph, self.via)
                groups = [group] if self.via is None else [group, self.via]
                indexes: list[SyncedIndex] = [passages] if links is None else [passages, links]
                with current({self.graph: groups}, indexes):
                    results = self._ranked(
                        query, hits, passages, links, limit, met, span.attributes
                    )
            span.attributes["results"] = len(results)
        return results

    def _ranked(
        self,
        query: str,
        hits: Results,
        passages: TextIndex,
        index: LinkIndex | None,
        limit: int,
        conditions: Conditions,
        attributes: dict[str, Any],
    ) -> Results:
        """Return the results; the graph is held.

        Args:
            query: The query.
            hits: The hits.
            passages: The words of the passages.
            index: The names in the passages.
            limit: The maximum number of results.
            conditions: The conditions of seeds and of linked passages.
            attributes: The attributes of the span.
        """
        titles: list[Entity] = []
        if index is not None:
            titles = index.named(query)
        allowed, existing = passages.meeting(conditions.filter), passages.table.rows

        def is_allowed(passage: str) -> bool:
            return passage in existing and (allowed is None or allowed(passage))

        words = QueryWords(query, self.bm25, passages, self.graph, titles)
        lowest = min(0.0, min(hit.score for hit in hits))  # a reranker's scores may be negative
        first = hits[0].score
        hits = words.without_parts_of_names(hits, lowest)
        named: dict[str, Evidence] = {}
        for title in titles:
            about = [*filter(is_allowed, title.about)]
            order = np.argsort(-words.scores(about).sum(axis=1), kind="stable")[:_NAMED]
            for node in self.graph.reader.nodes_by_id([about[at] for at in order]):
                named[node.id] = Evidence(node, first, NAMED, query, filters=conditions.filters)
        evidence = {self._own_id(hit): hit.evidence for hit in hits}
        hits = [
            *(ScoredNode(m.node, m.score, (m, *evidence.get(i, ()))) for i, m in named.items()),
            *(hit for hit in hits if self._own_id(hit) not in named),
        ]
        scores = {self._own_id(hit): hit.score - lowest for hit in hits}
        seeds = [*filter(is_allowed, scores)][: self.seeds]
        follow = partial(connect, self.graph, passages, allowed, index)
        positions = max(limit, self.seeds)
        best: dict[str, Pair] = {}
        scale = 0.0
        if seeds:
            matrix, seed_scores = follow(seeds), [scores[seed] for seed in seeds]
            terms = words.scores(matrix.passages)
            scale = score_scale(seed_scores, terms[: len(seeds)].sum(axis=1))
            terms *= scale
            best = best_pairs(matrix, seed_scores, terms, max(positions, _GO_ON))
            attributes.update(passages=len(matrix.passages), pairs=len(best), paths=0)
            linked = [item for item in best.items() if item[0] not in seeds]
            if second := nlargest(_GO_ON, linked, key=lambda item: item[1].score):
                of_seeds = dict(zip(seeds, terms, strict=False))
                matrix = follow([i for i, _ in second])
                terms = scale * words.scores(matrix.passages)
                covered = np.array([of_seeds[pair.partner] for _, pair in second])
                covered = np.maximum(terms[: len(second)], covered)
                pair_scores = [pair.score for _, pair in second]
                paths = best_pairs(matrix, pair_scores, terms, positions, covered)
                attributes.update(paths=len(paths))
                better = (i for i, p in paths.items() if i not in best or p.score > best[i].score)
                best |= {i: paths[i] for i in better}
        ranking, pairs = self._rank(hits, best, lowest, positions)
        if self.repetition:
            native = [at for at, result in enumerate(ranking) if self._own_id(result) in existing]
            of_native = words.scores([ranking[at].node.id for at in native])
            terms = np.zeros((len(ranking), of_native.shape[1]))
            terms[native] = scale * of_native
            order_and_scores = least_repeating(
                [result.score for result in ranking],
                terms,
                self.repetition,
                [_is_named(result) for result in ranking],
                [None if index is None else index.title(self._own_id(r)) for r in ranking],
            )
            ranking = [replace(ranking[at], score=score) for at, score in order_and_scores]
        deciding = [pairs.get(self._own_id(result)) for result in ranking[:limit]]
        partners = dict.fromkeys(pair.partner for pair in deciding if pair is not None)
        nodes = {node.id: node for node in self.graph.reader.nodes_by_id([*partners])}
        results = []
        for result, pair in zip(ranking, deciding, strict=False):
            if pair is not None:
                kind, entity = pair.connection
                ends = [nodes[pair.partner]]
                if index is not None and entity is not None:
                    ends.append(index.node(entity))
                link = result.score, f"link {kind!r}", query
                matches = [Evidence(end, *link, filters=conditions.filters) for end in ends]
                result = replace(result, evidence=(*matches, *result.evidence))
            results.append(result)
        return results

    def _rank(
        self, hits: Results, pairs: Mapping[str, Pair], lowest: float, limit: int
    ) -> tuple[Results, dict[str, Pair]]:
        """Rank hits and linked passages by their best pair or their own score.

        Returns:
            The ranking, and the pairs of passages whose pair decides.
        """
        used = dict(pairs)
        rows: list[tuple[float, ScoredNode]] = []  # pairs of the own score and the result
        for hit in hits:
            pair = used.get(self._own_id(hit))
            if pair is not None and pair.score + lowest > hit.score:
                rows.append((hit.score, replace(hit, score=pair.score + lowest)))
            else:
                used.pop(self._own_id(hit), None)
                rows.append((hit.score, hit))
        hit_ids = {*map(self._own_id, hits)}
        linked = [item for item in pairs.items() if item[0] not in hit_ids]
        linked = nsmallest(limit, linked, key=lambda item: (-item[1].score, -item[1].own_score))
        nodes = self.graph.reader.nodes_by_id([i for i, _ in linked])
        for node, (_, pair) in zip(nodes, linked, strict=True):
            rows.append((pair.own_score + lowest, ScoredNode(node, pair.score + lowest)))
        rows.sort(
            key=lambda row: (-row[1].score, -row[0], not _is_named(row[1]), row[1].node.order)
        )
        return [result for _, result in rows[:limit]], used

    def _own_id(self, result: ScoredNode) -> str:
        """Return the id of a node of the graph. Other graphs may have nodes with the same id."""
        return result.node.id if result.node.graph is self.graph else ""


def _is_named(result: ScoredNode) -> bool:
    return bool(result.evidence) and result.evidence[0].similarity == NAMED
