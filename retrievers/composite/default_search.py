"""Rank and collect the results of the default search in one snapshot of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ...nodegraph.node import Node
from ..hits import Key, Ranking
from ..indexes.bm25_weights import Floats
from ..indexes.nearest_vectors import unit
from ..ranking import in_document_order
from ..results import Results
from ..search import View
from . import relevance
from .evidence_fusion import DEPTH, EvidenceFusion, lack_identifiers, with_note
from .trust import mean_scores

_SPARE = 4  # the number of additional results that are read, since texts can be repeated

_FEW = 6  # the number of results up to which relative scores are unreliable

_CLEARLY = 1.15  # the required factor by which the relevance exceeds the first result's relevance

_DEEPEST = 16  # the multiple of the limit at which a search for distinct texts stops


Finish = Callable[[View, Results], Results]
"""A function that converts the results of a query while the lock is held, such as into windows."""


class Groups(NamedTuple):
    """Results that are grouped by equal texts.

    Attributes:
        positions: For each group, the positions of its results, best first.
        is_enough: Whether reading more results would not add a group.
    """

    positions: Sequence[Sequence[int]]
    is_enough: bool


@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of results to return, and whether results with equal texts are joined.

    Attributes:
        limit: The maximum number of results.
        collapse: Whether results with equal texts are joined.
    """

    limit: int
    collapse: bool

    @property
    def depth(self) -> int:
        """The number of results that are read first."""
        return self.limit + _SPARE if self.collapse else self.limit

    def groups(self, nodes: Sequence[Node], depth: int) -> Groups:
        """Group results by equal texts.

        Args:
            nodes: The results, best first.
            depth: The number of results that were requested.
        """
        if not self.collapse:
            return Groups([[at] for at in range(len(nodes))], True)
        same = relevance.same_texts([node.text for node in nodes])
        is_enough = len(same) >= self.limit or len(nodes) < depth
        is_deep = depth >= _DEEPEST * self.limit
        return Groups(same[: self.limit], is_enough or is_deep)


class EvidenceSearch:
    """A search that weights words and vectors by their evidence.

    Args:
        fusion: The fusion of the rankings by words and vectors.
        backgrounds: The vectors of random sentences, by embedding.
        distinct: The number of results, and whether equal texts are joined.
        finish: A function that converts the results while the lock is held. If None, the results
            are only put in order.
    """

    def __init__(
        self,
        fusion: EvidenceFusion,
        backgrounds: Mapping[str, relevance.Vectors],
        distinct: Distinct,
        finish: Finish | None,
    ) -> None:
        self._fusion = fusion
        self._backgrounds = backgrounds
        self._distinct = distinct
        self._finish = finish

    def __call__(self, view: View) -> Results:
        """Return the results of a query in one snapshot of the graph."""
        depth = self._distinct.depth
        while True:
            ranking = self._ranked(view, depth)
            keys = [key for key, score in ranking.scores.items() if score > 0]
            scores = relevance.descending([ranking.scores[key] for key in keys])
            with view.reading(keys[:depth]):
                nodes = [*view.nodes(keys[:depth]).values()]
                groups = self._distinct.groups(nodes, depth)
                if groups.is_enough:
                    results = self._results(view, ranking, keys, scores, nodes, groups)
                    return results if self._finish is None else self._finish(view, results)
            depth *= 2

    def _ranked(self, view: View, depth: int) -> Ranking:
        """Return the first part of the ranking of a query, with scores from 0 to 1."""
        ranking, trust, term_scores = self._fusion.fuse(view, max(depth, DEPTH))
        words = self._fusion.branches.words
        keys = [*islice(ranking.scores, max(depth, relevance.COMPARED))]
        if term_scores is None:
            # All found passages are checked for identifiers if vectors are compared.
            has_vectors = bool(self._fusion.branches.vectors)
            term_scores = view.term_scores(words, [*ranking.scores] if has_vectors else keys)
        scores = relevance.word_scores(view.prepared(words), term_scores[: len(keys)])
        near = self._vector_scores(view, keys, max(depth, DEPTH))
        if near:
            scores = relevance.joined(scores * trust[: len(keys)], near)
            lacks = lack_identifiers(view.prepared(words), term_scores > 0)
            scores = relevance.without_identifiers(scores, lacks[: len(keys)])
        scores = relevance.below_unknown(scores, view.prepared(words))
        relevances = dict(zip(keys, scores.tolist(), strict=True))
        if not near:
            relevances = _most_relevant_first(relevances)
        return ranking._replace(scores=relevances)

    def _vector_scores(self, view: View, keys: Sequence[Key], depth: int) -> list[Floats]:
        """Return the relevance of targets according to each embedding."""
        branches = self._fusion.branches
        size = int(view.source(branches.words).snapshot.size)
        near = []
        for key, background in self._backgrounds.items():
            of_key = branches.of_key(key)
            if of_key:
                rankings = [view.ranking(branch, depth).scores for branch in of_key]
                cosines = mean_scores(rankings, keys, DEPTH)
                query = unit(view.prepared(of_key[0]))
                deviation = self._fusion.deviations[key]
                near.append(relevance.vector_scores(cosines, query, background, deviation, size))
        return near

    def _results(
        self,
        view: View,
        ranking: Ranking,
        keys: Sequence[Key],
        scores: Sequence[float],
        nodes: Sequence[Node],
        groups: Groups,
    ) -> Results:
        """Return one result for each group of equal texts, with the other texts as copies."""
        best = [at for at, *_ in groups.positions]
        results = view.results(ranking, [keys[at] for at in best], [scores[at] for at in best])
        results = with_note(results, view.query, ranking.note)
        words = view.prepared(self._fusion.branches.words)
        results = with_note(results, view.query, relevance.unknown_note(words))
        collapsed = []
        for result, (_, *others) in zip(results, groups.positions, strict=True):
            if others:
                copies = [(nodes[at], scores[at]) for at in others]
                result = relevance.with_copies(result, copies, view.query)
            collapsed.append(result)
        if self._finish is None and self._distinct.collapse:
            return in_document_order(collapsed)
        return collapsed


def _most_relevant_first(scores: dict[Key, float]) -> dict[Key, float]:
    """If there are few results, move a clearly more relevant result to the first place.

    The fusion adds relative scores, which are extreme if only a few results of different length are
    found. Without this correction, a good sentence in a long passage would count less than a single
    word in a short passage.
    """
    if not 0 < len(scores) <= _FEW:
        return scores
    first = next(iter(scores))
    best = max(scores, key=scores.__getitem__)
    if scores[best] < _CLEARLY * scores[first]:
        return scores
    return {best: scores[best], **scores}
