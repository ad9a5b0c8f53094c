"""Weight the matches of a question by words and by vectors according to their evidence.

BM25 scores and cosine similarities have different scales, and random matches score higher in a
larger corpus. Both kinds of scores can be compared if they are measured against the random matches
of the same question. Among these, the number of passages above a score decreases exponentially. The
scale of this decay is estimated from the ranks after the first results (Rényi, "On the theory of
order statistics", 1953). A score in units of this scale is evidence in nats: each additional unit
makes a random match less likely by a factor of e.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..hits import Key
from ..indexes.bm25_weights import Floats, TermWeights

_FIRST = 10
"""The rank from which matches are considered random. Passages before it may contain answers."""

_CHANCE = 2.0
"""The evidence of the best match by words that is expected at random, in nats."""

_MOST_COVERAGE = 0.6
"""The share of a question's weight that counts as evidence even for the shortest question."""

_COVERAGE = 1.2
"""The share of a question's weight that counts as evidence for a question of one term.

It decreases with the square root of the number of terms, because the share that random passages
cover varies less if there are more terms.
"""

# The widths of the transitions at which the evidence of words begins, in nats. The level of random
# matches is estimated from a few ranks, so evidence begins gradually. The covered share of a
# question is computed exactly, so this transition is narrower.
_CHANCE_WIDTH = 1.0

_COVERAGE_WIDTH = 0.5

# In a small corpus, only a few ranks follow the first results, so the usual scale of random matches
# is included in the estimate as additional ranks. The scale for independent terms is 1 nat. It is
# twice as large for dependent terms, such as a character and the pairs that contain it.
_USUAL_SCALE = 2.0

_RANKS_OF_WORDS = 10

_RANKS_OF_VECTORS = 30

_LEAST_WORDS = 1e-6  # smaller differences between BM25 scores are noise

_LEAST_COSINES = 1e-3

_SMALLEST = 3  # the minimum number of passages, so that the logarithm is large enough

# The share of sentences in the scores by words; the rest comes from passages as a whole.
_SENTENCES = 0.5


class PassageHits(NamedTuple):
    """The scores of the passages that were found, best first.

    Attributes:
        sentences: The score of the best sentence of each passage.
        passages: The score of the text of each passage as a whole.
        counts: The number of sentences of each passage in ``sentences``. It is empty if the numbers
            are unknown.
    """

    sentences: Mapping[Key, float]
    passages: Mapping[Key, float]
    counts: Mapping[Key, int] = {}


class PassageEvidence(NamedTuple):
    """The evidence that passages contain the answer to a question.

    Attributes:
        values: The evidence in nats, at least 0, with shape (passages,).
        highest: The highest evidence, relative to random matches.
        of_sentences: The share of the evidence that comes from sentences, with shape (passages,).
            The rest comes from passages as a whole.
    """

    values: Floats
    highest: float
    of_sentences: Floats


def word_evidence(
    hits: PassageHits, keys: Sequence[Key], limit: int, size: int, query: TermWeights
) -> PassageEvidence:
    """Return the evidence from matching words that passages are relevant.

    Words count as evidence if a passage clearly differs from random matches and covers enough of
    the question. If the answer uses different words than the question, a few words in common are
    probably random matches.

    Args:
        hits: The BM25 scores.
        keys: The keys of the passages.
        limit: The number of results that were requested.
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
    values: Floats = np.minimum(
        _gradual(beyond_chance, _CHANCE_WIDTH), _gradual(beyond_coverage, _COVERAGE_WIDTH)
    )
    of_sentences = _share(_SENTENCES * sentences, scores)
    return PassageEvidence(values, float(values.max(initial=0.0)), of_sentences)


def _gradual(evidence: Floats, width: float) -> Floats:
    """Return 0 for negative evidence and the evidence itself otherwise, with a smooth transition.

    Args:
        evidence: The evidence in nats.
        width: The width of the transition in nats.
    """
    smooth: Floats = width * np.logaddexp(0.0, evidence / width)
    return smooth


def _least_coverage(query: TermWeights) -> float:
    """Return the smallest share of a question's weight that counts as evidence.

    If a few terms have most of the weight, the effective number of terms is used, which is the
    number of equally weighted terms with the same deviation (Kish, "Survey Sampling", 1965).
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
    """Return the evidence from vectors that passages are relevant. It is 0 for the last passage.

    The more sentences a passage has, the more likely it is that one of them is similar at random.
    The score of the best of ``n`` sentences is then higher by ``log(n)`` units, which are
    subtracted.

    Args:
        hits: The cosine similarities of sentences, of passages, or of both.
        keys: The keys of the passages.
        limit: The number of results that were requested.
        size: The number of passages in the corpus.
        deviation: The standard deviation of the cosine similarities of unrelated texts.
    """
    # The highest of many normal values decrease exponentially with this scale (Cramér, 1946).
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
    """Return the cosine similarities of the best sentences, corrected for their number."""
    if not hits.counts:
        return hits.sentences
    best = np.sort([*hits.sentences.values()])[::-1][:limit]
    _, scale = _chance(best, size, usual_scale, _RANKS_OF_VECTORS)
    return {
        key: cosine - scale * math.log(max(1, hits.counts[key]))
        for key, cosine in hits.sentences.items()
    }


def probability(evidence: Floats) -> Floats:
    """Return the probability that a match is not random, given its evidence in nats."""
    values: Floats = -np.expm1(-evidence)
    return values


def mean_scores(rankings: Sequence[Mapping[Key, float]], keys: Sequence[Key], limit: int) -> Floats:
    """Return the mean score of each passage over several rankings.

    Passages that a ranking does not contain are assigned its lowest score.
    """
    mean: Floats = np.mean([_filled(ranking, keys, limit) for ranking in rankings], axis=0)
    return mean


def _filled(
    ranking: Mapping[Key, float],
    keys: Sequence[Key],
    limit: int,
    missing: float | None = None,
) -> Floats:
    """Return the score of each passage.

    If a passage was not found, its score is unknown, but at most the lowest score that was found.
    This bound is used, unless all matching passages were found.
    """
    last = min(ranking.values(), default=0.0)
    if missing is not None and len(ranking) < limit:
        last = missing
    return np.array([ranking.get(key, last) for key in keys], np.float64)


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return shares


def _chance(best: Floats, size: int, usual_scale: float, usual_ranks: int) -> tuple[float, float]:
    """Return the score that random matches reach, and the scale of their scores.

    Args:
        best: The best scores, in descending order.
        size: The number of passages in the corpus.
        usual_scale: The scale that is expected before the scores are known.
        usual_ranks: The number of ranks that the expected scale is worth in the estimate.
    """
    last = min(max(0, len(best) - 1), size // 3)
    first = min(_FIRST, last // 3)
    count = last - first
    measured = float(best[first:last].mean() - best[last]) if count else 0.0
    scale = (measured * count + usual_scale * usual_ranks) / (count + usual_ranks)
    base = float(best[_FIRST]) if len(best) > _FIRST else 0.0
    return base, scale
