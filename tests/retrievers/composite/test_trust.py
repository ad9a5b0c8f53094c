"""The evidence of scores does not depend on the size of a corpus, nor on the scale of a model."""

import numpy as np
import pytest

from nodekin.retrievers.composite.trust import PassageHits, vector_evidence, word_evidence

LIMIT = 32


def hits_of(scores: list[float]) -> PassageHits:
    ranked = {(0, str(number)): score for number, score in enumerate(scores)}
    return PassageHits(ranked, ranked)


def falling(first: float, count: int = LIMIT, scale: float = 1.0) -> list[float]:
    """Return a first score, and scores by chance."""
    return [first, *(scale * float(np.log(100 / rank)) for rank in range(2, count + 1))]


@pytest.mark.parametrize(
    ("total", "is_evidence"),
    [(15.0, True), (60.0, False)],  # the first passage covers all or a quarter of the question
)
def test_word_evidence_requires_coverage(total: float, is_evidence: bool) -> None:
    hits = hits_of(falling(15.0))
    found = word_evidence(hits, [*hits.passages], LIMIT, 1_000, total)
    assert (found.values[0] > 3) == is_evidence


def test_word_evidence_requires_distance_from_chance() -> None:
    hits = hits_of(falling(4.7))
    found = word_evidence(hits, [*hits.passages], LIMIT, 1_000, total=5.0)
    assert found.highest < 1.5


@pytest.mark.parametrize("scale", [0.01, 0.1])
def test_vector_evidence_ignores_scale_of_model(scale: float) -> None:
    hits = hits_of(falling(8 * scale, scale=scale))
    found = vector_evidence(hits, [*hits.passages], LIMIT, 1_000)
    whole = hits_of(falling(8.0))
    expected = vector_evidence(whole, [*whole.passages], LIMIT, 1_000)
    assert found.highest == pytest.approx(expected.highest)


def test_equal_cosines_have_no_evidence() -> None:
    hits = hits_of([0.5 + 1e-7 * n for n in range(LIMIT)])
    assert vector_evidence(hits, [*hits.passages], LIMIT, 1_000).values.max() < 0.01
