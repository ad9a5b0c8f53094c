"""The evidence of scores does not depend on the size of a corpus, nor on the scale of a model."""

import numpy as np
import pytest

from nodekin.retrievers.composite.trust import PassageHits, vector_evidence, word_evidence
from nodekin.retrievers.indexes.bm25_weights import Saturation, TermWeights

LIMIT = 32


def hits_of(scores: list[float]) -> PassageHits:
    ranked = {(0, str(number)): score for number, score in enumerate(scores)}
    return PassageHits(ranked, ranked)


def question(count: int, total: float) -> TermWeights:
    """Return a question of terms with equal weights."""
    weights = {str(number): total / count for number in range(count)}
    return TermWeights(weights, Saturation(1.5, 0.75, 8.0), highest=total / count)


def falling(first: float, count: int = LIMIT, scale: float = 1.0) -> list[float]:
    """Return a first score, and scores by chance."""
    return [first, *(scale * float(np.log(100 / rank)) for rank in range(2, count + 1))]


@pytest.mark.parametrize(
    ("total", "is_evidence"),
    [(15.0, True), (60.0, False)],  # the first passage covers all or a quarter of the question
)
def test_word_evidence_requires_coverage(total: float, is_evidence: bool) -> None:
    hits = hits_of(falling(15.0))
    found = word_evidence(hits, [*hits.passages], LIMIT, 1_000, question(4, total))
    assert (found.values[0] > 3) == is_evidence


def test_longer_questions_require_less_coverage() -> None:
    hits = hits_of(falling(15.0))
    total = 35.0  # the first passage covers .43
    of_few = word_evidence(hits, [*hits.passages], LIMIT, 1_000, question(4, total))
    of_many = word_evidence(hits, [*hits.passages], LIMIT, 1_000, question(16, total))
    assert of_few.highest < 1
    assert of_many.highest > 2


def test_evidence_of_words_ends_soon_below_required_coverage() -> None:
    hits = hits_of(falling(15.0))
    total = 27.2  # the first passage covers .55, which is one nat below .6
    found = word_evidence(hits, [*hits.passages], LIMIT, 1_000, question(4, total))
    assert 0 < found.highest < 0.15


def test_word_evidence_requires_distance_from_chance() -> None:
    hits = hits_of(falling(4.7))
    found = word_evidence(hits, [*hits.passages], LIMIT, 1_000, question(4, 5.0))
    assert found.highest < 1.5


@pytest.mark.parametrize("scale", [0.01, 0.1])
def test_vector_evidence_ignores_scale_of_model(scale: float) -> None:
    hits = hits_of(falling(8 * scale, scale=scale))
    deviation = 3.7  # of 1,000 values whose highest fall with the scale 1
    found = vector_evidence(hits, [*hits.passages], LIMIT, 1_000, deviation * scale)
    whole = hits_of(falling(8.0))
    expected = vector_evidence(whole, [*whole.passages], LIMIT, 1_000, deviation)
    assert found.highest == pytest.approx(expected.highest)


@pytest.mark.parametrize("deviation", [0.0, 0.02])
def test_equal_cosines_have_no_evidence(deviation: float) -> None:
    hits = hits_of([0.5 + 1e-7 * n for n in range(LIMIT)])
    found = vector_evidence(hits, [*hits.passages], LIMIT, 1_000, deviation)
    assert found.values.max() < 0.01


def test_one_different_cosine_has_limited_evidence() -> None:
    hits = hits_of([0.5] + [0.48] * (LIMIT - 1))
    found = vector_evidence(hits, [*hits.passages], LIMIT, 1_000, 0.02)
    assert found.values[0] < 10  # the deviation of the model, not the equal cosines, is the unit


def test_best_of_many_sentences_has_less_evidence() -> None:
    ranked = {(0, str(number)): 0.9 - 0.01 * number for number in range(LIMIT)}
    few = PassageHits(ranked, {}, dict.fromkeys(ranked, 1))
    many = PassageHits(ranked, {}, {**few.counts, (0, "0"): 50})
    keys = [*ranked]
    of_few = vector_evidence(few, keys, LIMIT, 1_000, 0.05).values
    of_many = vector_evidence(many, keys, LIMIT, 1_000, 0.05).values
    assert of_few.argmax() == 0
    assert of_many.argmax() == 1
