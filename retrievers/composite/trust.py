"""Weight the word and vector matches of a question by their evidence.

BM25 scores and cosines have different scales, and a larger corpus has higher chance matches. Scores
of both kinds become comparable if they are measured against the chance matches of the same
question: among these, the number of passages above a score falls exponentially. The scale of this
decay is estimated from the ranks after the first results (Rényi, "On the theory of order
statistics", 1953). A score in units of this scale is evidence in nats: one unit more is e times
less likely by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..hits import Key
from ..indexes.bm25_scores import Floats, TermWeights

_FIRST = 10
"""The rank from which hits count as chance matches. Passages before it may contain answers."""

_CHANCE = 2.0
"""The evidence of the best word match that is expected by chance, in nats."""

_MOST_COVERAGE = 0.6
"""The share of a question's weight that is evidence even for the shortest question."""

_COVERAGE = 1.2
"""The share that is evidence for a question of one term.

It falls with the square root of the number of terms: the more terms there are, the less the share
varies that a passage covers by chance.
"""

# A small corpus has few ranks after the first, so the usual scale of chance counts as additional
# ranks. The scale of independent terms is 1 nat. Terms that depend on each other, such as a
# character and its pairs, double this scale.
_USUAL_SCALE = 2.0

_RANKS_OF_WORDS = 10

_RANKS_OF_VECTORS = 30

_LEAST_WORDS = 1e-6  # smaller differences of BM25 scores are noise

_LEAST_COSINES = 1e-3

_SMALLEST = 3  # passages; with fewer, the logarithm is too small

_SENTENCES = 0.5  # share of sentences in word and vector scores; passages have the rest


class PassageHits(NamedTuple):
    """The scores of passages, best first.

    Attributes:
        sentences: The scores of the passages' best sentences.
        passages: The scores of the passages' own texts.
        counts: The numbers of sentences of the passages in ``sentences``. Empty if unknown.
    """

    sentences: Mapping[Key, float]
    passages: Mapping[Key, float]
    counts: Mapping[Key, int] = {}


class PassageEvidence(NamedTuple):
    """The evidence that passages contain the answer.

    Attributes:
        values: The evidence in nats, 0 or more, shape (passages,).
        highest: The highest evidence, compared with chance.
        of_sentences: The share that sentences contributed, shape (passages,). The passages
            contributed the rest.
    """

    values: Floats
    highest: float
    of_sentences: Floats


def word_evidence(
    hits: PassageHits, keys: Sequence[Key], limit: int, size: int, query: TermWeights
) -> PassageEvidence:
    """Return the evidence from words.

    Words are evidence if a passage stands out from chance and covers enough of the question. A few
    words in common are likely chance matches if the answer uses different words.

    Args:
        hits: The BM25 scores.
        keys: The keys of the passages.
        limit: The number of hits that were requested.
        size: The number of passages in the corpus.
        query: The terms of the question.
    """
    sentences = _filled(hits.sentences, keys, limit, missing=0.0)
    passages = _filled(hits.passages, keys, limit, missing=0.0)
    scores = _SENTENCES * sentences + (1 - _SENTENCES) * passages
    highest = np.sort(scores[scores > 0])[::-1][: min(limit, size)]
    base, scale = _chance(highest, size, _USUAL_SCALE, _RANKS_OF_WORDS)
    scale = max(scale, _LEAST_WORDS)
    beyond_chance = (scores - base) / scale - _CHANCE
    beyond_coverage = (scores - _least_coverage(query) * query.total) / scale
    values: Floats = np.logaddexp(0.0, np.minimum(beyond_chance, beyond_coverage))
    of_sentences = _share(_SENTENCES * sentences, scores)
    return PassageEvidence(values, float(values.max(initial=0.0)), of_sentences)


def _least_coverage(query: TermWeights) -> float:
    """Return the smallest share of a question's weight that is evidence.

    A few heavy terms count as the number of terms of equal weight with the same deviation (Kish,
    "Survey Sampling", 1965).
    """
    squares = sum(weight**2 for weight in query.weights.values())
    squares += query.missing * query.highest
    if not squares:
        return _MOST_COVERAGE
    terms = query.total**2 / squares
    return min(_MOST_COVERAGE, _COVERAGE / math.sqrt(terms))


def vector_evidence(
    hits: PassageHits, keys: Sequence[Key], limit: int, size: int, deviation: float
) -> PassageEvidence:
    """Return the evidence from vectors. The last passage has no evidence.

    The more sentences a passage has, the more likely one of them is near by chance. The best of
    ``n`` sentences is then higher by ``log(n)`` units, which are subtracted.

    Args:
        hits: The cosines, of sentences, of passages, or of both.
        keys: The keys of the passages.
        limit: The number of hits that were requested.
        size: The number of passages in the corpus.
        deviation: The standard deviation of the cosines of unrelated texts.
    """
    # The highest of many normal values fall exponentially, with this scale (Cramér, 1946).
    usual = deviation / math.sqrt(2 * math.log(max(size, _SMALLEST)))
    sentences = _without_chances(hits, limit, size, usual)
    found = [ranking for ranking in (sentences, hits.passages) if ranking]
    if not found:
        return PassageEvidence(np.zeros(len(keys)), 0.0, np.zeros(len(keys)))
    cosines = mean_scores(found, keys, limit)
    best = np.sort(cosines)[::-1][:limit]
    base, scale = _chance(best, size, usual, _RANKS_OF_VECTORS)
    scale = max(scale, _LEAST_COSINES)
    values: Floats = (cosines - cosines.min()) / scale
    of_sentences = np.full(len(keys), bool(sentences) / len(found))
    return PassageEvidence(values, float((best[0] - base) / scale), of_sentences)


def _without_chances(
    hits: PassageHits, limit: int, size: int, usual_scale: float
) -> Mapping[Key, float]:
    """Return the cosines of best sentences, corrected for the number of sentences."""
    if not hits.counts:
        return hits.sentences
    best = np.sort([*hits.sentences.values()])[::-1][:limit]
    _, scale = _chance(best, size, usual_scale, _RANKS_OF_VECTORS)
    return {
        key: cosine - scale * math.log(max(1, hits.counts[key]))
        for key, cosine in hits.sentences.items()
    }


def probability(evidence: Floats) -> Floats:
    """Return the probability that a match with this evidence in nats is not a chance match."""
    values: Floats = -np.expm1(-evidence)
    return values


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

    Passages after the last hit have the last hit's score as a bound, unless all hits are known.
    """
    last = min(ranking.values(), default=0.0)
    if missing is not None and len(ranking) < limit:
        last = missing
    return np.array([ranking.get(key, last) for key in keys], np.float64)


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return shares


def _chance(best: Floats, size: int, usual_scale: float, usual_ranks: int) -> tuple[float, float]:
    """Return the score that chance reaches, and the scale of chance scores.

    Args:
        best: The best scores, best first.
        size: The number of passages in the corpus.
        usual_scale: The scale that is expected before the scores are known.
        usual_ranks: The number of ranks as which the usual scale counts.
    """
    last = min(max(0, len(best) - 1), size // 3)
    first = min(_FIRST, last // 3)
    count = last - first
    measured = float(best[first:last].mean() - best[last]) if count else 0.0
    scale = (measured * count + usual_scale * usual_ranks) / (count + usual_ranks)
    base = float(best[_FIRST]) if len(best) > _FIRST else 0.0
    return base, scale
