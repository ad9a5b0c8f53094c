"""Combine words and vectors of a question, each by its evidence.

BM25 scores and cosines have different scales, and a larger corpus has higher matches by chance.
Both become comparable if they are measured by the chance of the same question: among matches by
chance, the number of passages above a score falls exponentially. The scale of this fall is
estimated from the ranks after the first results (Rényi, "On the theory of order statistics", 1953).
A score in units of this scale is evidence in nats: one unit more is e times less likely by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..indexes.bm25_scores import Floats
from ..search import Key

_FIRST = 10
"""The rank from which hits count as chance. The ranks before it may have answers."""

_CHANCE = 2.0
"""PassageEvidence of the best words that is expected by chance, in nats."""

_COVERAGE = 0.45
"""The least share of a question's weight that an answer in its words usually covers."""

# BM25 scores of a small corpus have few ranks after the first. The scale of independent terms is 1
# nat. Terms that depend on each other, such as a character and its pairs, count about twice.
_USUAL_SCALE, _USUAL_RANKS = 2.0, 10

_LEAST_WORDS, _LEAST_COSINES = 1e-6, 1e-3  # smaller differences are noise

_SENTENCES = 0.5  # share of sentences in the scores of words and vectors, the rest is of passages


class PassageHits(NamedTuple):
    """The scores of passages, best first.

    Attributes:
        sentences: The scores of passages by their best sentence.
        passages: The scores of the passages' own texts.
    """

    sentences: Mapping[Key, float]
    passages: Mapping[Key, float]


class PassageEvidence(NamedTuple):
    """The evidence for passages that they have the answer.

    Attributes:
        values: The evidence in nats, 0 or more, shape (passages,).
        highest: The highest evidence, compared with chance.
        of_sentences: The share that sentences gave, shape (passages,). The rest is of passages.
    """

    values: Floats
    highest: float
    of_sentences: Floats


def word_evidence(
    hits: PassageHits, keys: Sequence[Key], limit: int, size: int, total: float
) -> PassageEvidence:
    """Return the evidence by words.

    Words are evidence if a passage stands out from chance and covers enough of the question. A few
    words in common are likely by chance if the answer is in other words.

    Args:
        hits: The BM25 scores.
        keys: The keys of the passages.
        limit: The number of hits that were requested.
        size: The number of passages in the corpus.
        total: The weight of all terms of the question, including missing terms.
    """
    sentences = _filled(hits.sentences, keys, limit, missing=0.0)
    passages = _filled(hits.passages, keys, limit, missing=0.0)
    scores = _SENTENCES * sentences + (1 - _SENTENCES) * passages
    best = np.zeros(min(limit, size))
    highest = np.sort(scores)[::-1][: len(best)]
    best[: len(highest)] = highest
    base, scale = _chance(best, size, _USUAL_SCALE, _USUAL_RANKS)
    scale = max(scale, _LEAST_WORDS)
    beyond_chance = (scores - base) / scale - _CHANCE
    beyond_coverage = (scores - _COVERAGE * total) / scale
    values: Floats = np.logaddexp(0.0, np.minimum(beyond_chance, beyond_coverage))
    of_sentences = _share(_SENTENCES * sentences, scores)
    return PassageEvidence(values, float(values.max(initial=0.0)), of_sentences)


def vector_evidence(
    hits: PassageHits, keys: Sequence[Key], limit: int, size: int
) -> PassageEvidence:
    """Return the evidence by vectors. The last passage has none.

    Args:
        hits: The cosines, of sentences, of passages, or of both.
        keys: The keys of the passages.
        limit: The number of hits that were requested.
        size: The number of passages in the corpus.
    """
    found = [ranking for ranking in hits if ranking]
    if not found:
        return PassageEvidence(np.zeros(len(keys)), 0.0, np.zeros(len(keys)))
    cosines = mean_scores(found, keys, limit)
    best = np.sort(cosines)[::-1][:limit]
    base, scale = _chance(best, size)
    scale = max(scale, _LEAST_COSINES)
    values: Floats = (cosines - cosines.min()) / scale
    of_sentences = np.full(len(keys), len([*filter(None, [hits.sentences])]) / len(found))
    return PassageEvidence(values, float((best[0] - base) / scale), of_sentences)


def mean_scores(rankings: Sequence[Mapping[Key, float]], keys: Sequence[Key], limit: int) -> Floats:
    """Return the mean score of each passage. Passages after the last hit have its score."""
    mean: Floats = np.mean([_filled(ranking, keys, limit) for ranking in rankings], axis=0)
    return mean


def _filled(
    ranking: Mapping[Key, float],
    keys: Sequence[Key],
    limit: int,
    missing: float | None = None,
) -> Floats:
    """Return the score of each passage.

    Passages after the last hit have its score as a bound, unless all hits are known.
    """
    last = min(ranking.values(), default=0.0)
    if missing is not None and len(ranking) < limit:
        last = missing
    return np.array([ranking.get(key, last) for key in keys], np.float64)


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return shares


def _chance(
    best: Floats, size: int, usual_scale: float = 0.0, usual_ranks: int = 0
) -> tuple[float, float]:
    """Return the score that chance reaches, and the scale of scores by chance.

    Args:
        best: The best scores, best first.
        size: The number of passages in the corpus.
        usual_scale: The scale if no rank is known.
        usual_ranks: The number of ranks that the usual scale counts as.
    """
    hits = np.count_nonzero(best > 0) if usual_ranks else len(best)
    last = max(0, min(len(best), hits) - 1)
    last = min(last, size // 3)
    first = min(_FIRST, last // 3)
    count = last - first
    scale = float(best[first:last].mean() - best[last]) if count else 0.0
    if count + usual_ranks:
        scale = (scale * count + usual_scale * usual_ranks) / (count + usual_ranks)
    base = float(best[_FIRST]) if len(best) > _FIRST else 0.0
    return base, scale
