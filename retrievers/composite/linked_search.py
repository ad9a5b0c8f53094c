"""The default search with links, in one snapshot of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..hits import Ranking, fused
from ..indexes.bm25_weights import Floats
from ..indexes.nearest_vectors import unit
from ..results import Results
from ..retrieval_conditions import HitConditions
from ..search import View
from ..tracing import start_span
from . import relevance
from .default_search import Distinct, Finish
from .evidence_fusion import DEPTH, SENTENCES, WHOLE, Branches, key_of, trust_in_words
from .link_search import FOLLOW_LINKS, LinkSearch


class FirstHits(NamedTuple):
    """The first results of a query, from which links are followed.

    The words of a multi-hop question are spread over several passages, so each passage contains
    little evidence. Therefore, words and vectors have fixed weights here. The weight of words is
    reduced if their matches may be random.

    Attributes:
        branches: The searches by words and by vectors.
        weights: The weights of the searches by vectors, relative to words with the weights 1 and 3.
        trust: The factor by which the weights of words are multiplied, from 0 to 1. If None, it is
            the probability that the matches of the question's words are not random.
    """

    branches: Branches
    weights: Sequence[float]
    trust: float | None

    def ranking(self, view: View, depth: int) -> Ranking:
        """Return the ranking of a query.

        Args:
            view: The rankings of the query in one snapshot of the graph.
            depth: The number of targets from each ranking.
        """
        rankings = [view.ranking(branch, depth) for branch in self.branches.all]
        if not self.branches.vectors:
            return fused(rankings, "relative", [SENTENCES, WHOLE])
        trust = self.trust
        if trust is None:
            trust = trust_in_words(view, self.branches, depth)
        weights = [SENTENCES * trust, WHOLE * trust, *self.weights]
        return fused(rankings, "relative", weights)


class LinkedSearch:
    """A search that follows links from its first results.

    Args:
        first: The first results.
        links: The links of the graph.
        conditions: The conditions that linked passages must meet.
        backgrounds: The vectors of random sentences, by embedding.
        deviations: The standard deviation of the cosine similarities of unrelated texts, by
            embedding.
        distinct: The number of results, and whether equal texts are joined.
        finish: A function that converts the results while the lock is held, or None.
    """

    def __init__(
        self,
        first: FirstHits,
        links: LinkSearch,
        conditions: HitConditions,
        backgrounds: Mapping[str, relevance.Vectors],
        deviations: Mapping[str, float],
        distinct: Distinct,
        finish: Finish | None,
    ) -> None:
        self._first = first
        self._links = links
        self._conditions = conditions
        self._backgrounds = backgrounds
        self._deviations = deviations
        self._distinct = distinct
        self._finish = finish

    def __call__(self, view: View) -> Results:
        """Return the results of a query in one snapshot of the graph."""
        depth = self._distinct.depth
        while True:
            linked = self._linked(view, max(depth, relevance.COMPARED))
            ranking = self._scored(view, linked)[:depth]
            groups = self._distinct.groups([result.node for result in ranking], depth)
            if groups.is_enough:
                break
            depth *= 2
        results = []
        for at, *others in groups.positions:
            copies = [(ranking[other].node, ranking[other].score) for other in others]
            results.append(relevance.with_copies(ranking[at], copies, view.query))
        with view.reading():
            self._check(view, results)
            return results if self._finish is None else self._finish(view, results)

    def _check(self, view: View, results: Results) -> None:
        """Check that the results, and the passages that link to them, still exist.

        Raises:
            MissingNodeError: If a result or a linking passage was removed or changed.
        """
        nodes = [result.node for result in results]
        nodes += [node for result in results if (node := relevance.linked_from(result))]
        view.nodes([(0, node.id) for node in nodes])

    def _linked(self, view: View, limit: int) -> Results:
        """Return the first results together with the passages that are linked to them."""
        count = max(limit, self._links.seeds)
        ranking = self._first.ranking(view, max(count, DEPTH))
        hits = view.first_results(ranking, count)
        with start_span(FOLLOW_LINKS, query=view.query, hits=len(hits)) as span:
            results: Results = []
            if hits:
                conditions = self._conditions(hits)
                results = self._links.follow(view, hits, limit, conditions, span.attributes)
            span.attributes["results"] = len(results)
        return results

    def _scored(self, view: View, results: Results) -> Results:
        """Return the results with scores from 0 to 1."""
        words = self._first.branches.words
        partners = [relevance.linked_from(result) for result in results]
        ids = [result.node.id for result in results]
        ids += [node.id for node in partners if node is not None]
        ids = [*dict.fromkeys(ids)]
        term_scores = view.term_scores(words, [(0, node_id) for node_id in ids])
        scores = relevance.word_scores(view.prepared(words), term_scores)
        count = len(results)
        scores[:count] = relevance.joined(scores[:count], self._vector_scores(view, results))
        scores = relevance.below_unknown(scores, view.prepared(words))
        return relevance.with_scores(results, dict(zip(ids, scores.tolist(), strict=True)))

    def _vector_scores(self, view: View, results: Results) -> list[Floats]:
        """Return the relevance of results according to each embedding that found any of them."""
        near = []
        size = int(view.source(self._first.branches.words).snapshot.size)
        for branch in self._first.branches.vectors:
            key = key_of(branch)
            cosines = np.array([relevance.mean_cosine(result, key) for result in results])
            if key in self._backgrounds and cosines.any():
                query = unit(view.prepared(branch))
                near.append(
                    relevance.vector_scores(
                        cosines,
                        query,
                        self._backgrounds[key],
                        self._deviations[key],
                        size,
                    )
                )
        return near
