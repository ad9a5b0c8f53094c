"""Scores of passages by query words: single passages, linked pairs and later passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.extractors.entity_extractor import has_name
from ...nodegraph.graph import NodeGraph
from ..indexes.bm25_scores import Floats
from ..indexes.text_index import TextIndex
from ..results import Results, ScoredNode
from ..similarities.bm25 import Bm25
from .link_graph import LinkMatrix, PassageLink
from .name_index import Entity

STRENGTH_EXPONENT = 0.5
"""The effect of weak connections on the score of a pair: 0 for none, 1 for proportional."""

PAIR_WEIGHT = 0.9
"""The weight of a pair compared with a single passage.

Below 1, a passage that answers the question itself stays before pairs that are hardly better.
"""

PATH_WEIGHT = 0.75
"""The weight of the gain of a second link."""

SAME_TITLE = 2
"""The number of passages with the same title whose scores are not lowered."""


class Pair(NamedTuple):
    """The best pair of a passage, or its best path from a seed over a second passage.

    Attributes:
        score: The score of the pair.
        own_score: The score of the passage's own words, on the scale of the seeds' scores.
        partner: The id of the other passage. On a path: the id of the passage before.
        connection: The connection of the two passages.
    """

    score: float
    own_score: float
    partner: str
    connection: PassageLink


def score_scale(scores: Sequence[float], word_scores: Floats) -> float:
    """Return the factor from BM25 scores to the scale of other scores."""
    highest = float(word_scores.max()) if len(word_scores) else 0.0
    return max(scores) / highest if highest else 0.0


def best_pairs(
    matrix: LinkMatrix,
    seed_scores: Sequence[float],
    terms: Floats,
    limit: int,
) -> dict[str, Pair]:
    """Return the best pair of each passage that is in a pair, by the passage's id.

    Args:
        matrix: The connections of the seeds to passages.
        seed_scores: The scores of the seeds, 0 or more.
        terms: Array (passages, terms): the scores of terms, in the order of ``matrix.passages``.
        limit: The minimum number of passages in addition to the seeds.
    """
    seeds = len(seed_scores)
    if not seeds:
        return {}
    word_scores = terms.sum(axis=1)
    scale = score_scale(seed_scores, word_scores[:seeds])
    scores, _ = _scores(matrix, seed_scores, terms, terms, scale, PAIR_WEIGHT)
    own_scores = [*seed_scores, *(scale * word_scores[seeds:]).tolist()]
    partners = scores.argmax(axis=0)
    best = scores.max(axis=0)
    connections = matrix.strongest[partners, np.arange(len(partners))]
    for seed in range(seeds):  # a seed is the first passage of its pairs
        other = int(scores[seed].argmax())
        if scores[seed, other] > best[seed]:
            best[seed], partners[seed] = scores[seed, other], other
            connections[seed] = matrix.strongest[seed, other]
    columns = _best_columns(best, seeds, limit)
    return _pairs(matrix, best, own_scores, partners, connections, columns)


def best_paths(
    matrix: LinkMatrix,
    scores: Sequence[float],
    terms: Floats,
    covered: Floats,
    limit: int,
) -> dict[str, Pair]:
    """Return the best path of each passage that has further words of the query, by its id.

    Args:
        matrix: The connections of the second passages of some pairs.
        scores: The scores of the pairs.
        terms: Array (passages, terms): the scores of terms, in the order of ``matrix.passages``,
            on the scale of the pairs' scores.
        covered: Array (pairs, terms): the scores of terms in the pairs.
        limit: The minimum number of paths.
    """
    every, gains = _scores(matrix, scores, terms, covered, 1.0, PATH_WEIGHT)
    rows, linked = matrix.strengths.nonzero()
    nothing_new = gains <= 0
    every[rows[nothing_new], linked[nothing_new]] = -1.0
    partners, best = every.argmax(axis=0), every.max(axis=0)
    connections = matrix.strongest[partners, np.arange(len(partners))]
    columns = [column for column in _best_columns(best, 0, limit) if best[column] > 0]
    return _pairs(matrix, best, terms.sum(axis=1), partners, connections, columns)


def _scores(
    matrix: LinkMatrix,
    scores: Sequence[float],
    terms: Floats,
    covered: Floats,
    scale: float,
    weight: float,
) -> tuple[Floats, Floats]:
    """Return the scores by row and passage, -1 without a connection, and the gains."""
    rows, linked = matrix.strengths.nonzero()
    gains = np.maximum(terms[linked] - covered[rows], 0.0).sum(axis=1)
    strengths = matrix.strengths[rows, linked] ** STRENGTH_EXPONENT
    every = np.full_like(matrix.strengths, -1.0)
    every[rows, linked] = weight * strengths * (np.array(scores)[rows] + scale * gains)
    return every, gains


def _pairs(
    matrix: LinkMatrix,
    scores: Floats,
    own_scores: Sequence[float] | Floats,
    partners: npt.NDArray[np.int64],
    connections: npt.NDArray[np.int32],
    columns: Iterable[int],
) -> dict[str, Pair]:
    return {
        matrix.passages[column]: Pair(
            float(scores[column]),
            float(own_scores[column]),
            matrix.passages[partners[column]],
            matrix.connections[connections[column]],
        )
        for column in columns
    }


def _best_columns(scores: Floats, seeds: int, limit: int) -> list[int]:
    """Return the columns of the seeds and of the best other scores that are 0 or more."""
    others = scores[seeds:]
    lowest = 0.0
    if len(others) > limit:
        lowest = max(0.0, float(np.partition(others, -limit)[-limit]))
    others_kept = seeds + (others >= lowest).nonzero()[0]
    return [*(scores[:seeds] >= 0).nonzero()[0].tolist(), *others_kept.tolist()]


def least_repeating(
    scores: Sequence[float],
    terms: Floats,
    weight: float,
    exempt: Sequence[bool],
    titles: Sequence[str | None] = (),
) -> list[tuple[int, float]]:
    """Rank passages again, with repetitive passages lower. Return positions and scores.

    Maximal marginal relevance (Carbonell and Goldstein 1998) over the terms of the query: a
    score is lowered by ``weight`` times the score of the terms in earlier passages. It is
    lowered by ``weight`` times the first score if two earlier passages have the same title.

    Args:
        scores: The scores, best first.
        terms: Array (passages, terms): the scores of terms, on the scale of the scores.
        weight: How much repetition lowers a score.
        exempt: Whether a passage keeps its score.
        titles: The key of each passage's title. None without a title.
    """
    remaining = list(range(len(scores)))
    used: Counter[str | None] = Counter()
    covered = np.zeros(terms.shape[1])
    order: list[tuple[int, float]] = []
    while remaining:
        repeated = weight * np.minimum(terms[remaining], covered).sum(axis=1)
        if titles:
            often = [titles[at] is not None and used[titles[at]] >= SAME_TITLE for at in remaining]
            repeated = repeated + weight * scores[0] * np.array(often)
        lowered = [
            scores[at] - (0.0 if exempt[at] else float(less))
            for at, less in zip(remaining, repeated, strict=True)
        ]
        best = int(np.argmax(lowered))
        order.append((remaining.pop(best), lowered[best]))
        if titles:
            used[titles[order[-1][0]]] += 1
        covered = np.maximum(covered, terms[order[-1][0]])
    return order


class QueryWords:
    """The scores of passages by each term of a query. The graph's lock must be held.

    The words of a title that the query names count only in passages that mention the title:
    "Dodge City Regional Airport" does not ask for other things in a Dodge or a region. A passage
    mentions a title if it has the name, or the same words in sequence: "breast cancer" is the
    title of a passage, but no name in most texts. Titles of one word are not restricted.

    Args:
        query: The query.
        bm25: The weights of words.
        passages: The index of the passages' words, up to date with the graph.
        graph: The graph.
        titles: The titles that the query names.
    """

    def __init__(
        self,
        query: str,
        bm25: Bm25,
        passages: TextIndex,
        graph: NodeGraph,
        titles: Sequence[Entity] = (),
    ) -> None:
        self._passages = passages
        self._graph = graph
        self._weights = bm25.prepare(query, [passages])
        self._names: list[_NameInQuery] = []
        terms = list(self._weights.weights)
        for title in titles:
            of_name = bm25.prepare(title.key, [passages]).weights if " " in title.key else {}
            columns = np.array([i for i, term in enumerate(terms) if term in of_name], np.int64)
            if len(columns):
                self._names.append(_NameInQuery(title.key, columns, {*title.passages}, set()))

    def scores(self, ids: Sequence[str]) -> Floats:
        """Return an array (passages, terms): the scores of each term."""
        return self._of_names(ids, self._passages.term_scores(ids, self._weights))

    def _of_names(self, ids: Sequence[str], scores: Floats) -> Floats:
        """Set the scores of a name's words to 0 in passages without the name."""
        for name in self._names:
            have_all = np.flatnonzero((scores[:, name.columns] > 0).all(axis=1))
            self._look_up(name, [ids[position] for position in have_all.tolist()])
            without = [at for at, passage in enumerate(ids) if passage not in name.mentions]
            scores[np.ix_(np.array(without, np.int64), name.columns)] = 0.0
        return scores

    def _look_up(self, name: _NameInQuery, ids: Sequence[str]) -> None:
        """Find the passages that have the words of a name in sequence."""
        new = [i for i in ids if i not in name.mentions and i not in name.without]
        if not new:
            return
        texts = self._graph.reader.searched_texts(self._graph.reader.nodes_by_id(new))
        for passage, text in zip(new, texts, strict=True):
            (name.mentions if has_name(text, name.name) else name.without).add(passage)

    def without_parts_of_names(self, hits: Results, lowest: float) -> Results:
        """Subtract the scores of a name's single words from hits, and sort the hits again.

        Args:
            hits: The hits. A hit that is not a passage stays unchanged.
            lowest: The lowest score.
        """
        existing = self._passages.known() if self._names else ()
        native = [hit for hit in hits if hit.node.id in existing]
        if not native:
            return hits
        ids = [hit.node.id for hit in native]
        scores = self._passages.term_scores(ids, self._weights)
        all_words = scores.sum(axis=1)
        scale = score_scale([hit.score - lowest for hit in native], all_words)
        parts = scale * (all_words - self._of_names(ids, scores).sum(axis=1))
        less = {hit.node.id: float(part) for hit, part in zip(native, parts, strict=True) if part}
        lowered = [
            ScoredNode(hit.node, max(hit.score - less[hit.node.id], lowest), hit.evidence)
            if hit.node.id in less
            else hit
            for hit in hits
        ]
        return sorted(lowered, key=lambda hit: -hit.score) if less else hits


class _NameInQuery(NamedTuple):
    """A title that a query names.

    Attributes:
        name: The key of the title.
        columns: The positions of the title's words among the terms of the query.
        mentions: The ids of checked passages that mention the title.
        without: The ids of checked passages that do not mention the title.
    """

    name: str
    columns: npt.NDArray[np.int64]
    mentions: set[str]
    without: set[str]
