"""The nearest of many vectors: exactly, and by a graph."""

import numpy as np
import pytest

from nodekin.retrievers.indexes import nearest_vectors
from nodekin.retrievers.indexes.hnsw_builder import HnswBuilder
from nodekin.retrievers.indexes.nearest_vectors import Hnsw, cosines, nearest, unit


def random_vectors(count: int, dimension: int = 24, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, dimension)))


def recall(
    every: np.ndarray, queries: np.ndarray, k: int, allowed: np.ndarray, hnsw: Hnsw | None
) -> float:
    found = 0
    results = nearest(every, queries, k, allowed, hnsw)
    for query, (rows, scores) in zip(queries, results, strict=True):
        best = np.sort(np.where(allowed, every @ query, -2))[-k]
        assert len(rows) >= k
        assert np.allclose(scores, every[rows] @ query, atol=1e-5)
        assert allowed[rows].all()
        found += min(k, int((scores >= best - 1e-5).sum()))
    return found / (k * len(queries))


@pytest.fixture
def cheap_hnsw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_vectors, "EXACT", 1000)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 0)


@pytest.mark.usefixtures("cheap_hnsw")
def test_hnsw_and_later_vectors_have_high_recall() -> None:
    pytest.importorskip("faiss")
    every, queries = random_vectors(3000), random_vectors(50, seed=1)
    hnsw = HnswBuilder(every[:2500]).run("vectors")
    for kept in (hnsw, Hnsw.from_arrays(hnsw.arrays(), every)):
        assert recall(every, queries, 10, np.ones(3000, np.bool_), kept) >= 0.99
    for share in (0.7, 0.3, 0.05):
        allowed = np.random.default_rng(2).random(3000) < share
        assert recall(every, queries, 10, allowed, hnsw) >= 0.99


@pytest.mark.usefixtures("cheap_hnsw")
def test_hnsw_finds_vectors_beside_many_equal_ones() -> None:
    pytest.importorskip("faiss")
    every = random_vectors(2500)
    every[500:1500] = every[500]
    queries = unit(every[500] + 0.3 * random_vectors(50, seed=3))
    hnsw = HnswBuilder(every).run("vectors")
    assert hnsw.graph.ntotal == 1501
    assert recall(every, queries, 10, np.ones(2500, np.bool_), hnsw) >= 0.99


@pytest.mark.parametrize("share", [0.01, 0.2, 0.6, 1.0])
def test_nearest_equals_comparison_of_allowed_rows(share: float) -> None:
    every, queries = random_vectors(3000), random_vectors(5, seed=1)
    allowed = np.random.default_rng(3).random(3000) < share
    assert recall(every, queries, 10, allowed, None) == 1
    together = nearest(every, queries, 10, allowed)
    for query, (rows, scores) in zip(queries, together, strict=True):
        ((alone, own_scores),) = nearest(every, query[np.newaxis], 10, allowed)
        assert (sorted(rows), sorted(scores)) == (sorted(alone), sorted(own_scores))


@pytest.mark.parametrize("dimension", [1, 2, 7, 128, 129, 384, 1000])
def test_unit_of_one_vector_equals_unit_among_others(dimension: int) -> None:
    some = np.random.default_rng(dimension).standard_normal((30, dimension)).astype(np.float32)
    some[3] = 0.0
    together, alone = unit(some), [unit(row[np.newaxis])[0] for row in some]
    assert together.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("dimension", [1, 3, 384, 4096])
def test_cosines_of_equal_and_opposite_vectors_are_exact(dimension: int) -> None:
    some = random_vectors(200, dimension)
    rows = np.arange(len(some))
    for row in rows:
        assert cosines(some, rows[row : row + 1], some[row]).tolist() == [1.0]
        assert cosines(-some, rows[row : row + 1], some[row]).tolist() == [-1.0]
