"""Search among vectors: exact, by a graph, and while it goes over from one to the other."""

import numpy as np
import pytest

from nodekin.retrievers.indexes import nearest_vectors, node_table
from nodekin.retrievers.indexes.nearest_vectors import (
    AllowedVectors,
    NearestVectors,
    unit,
)


def random_vectors(count: int, dimension: int = 24, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, dimension)))


def recall(
    vectors: NearestVectors, all_: np.ndarray, queries: np.ndarray, k: int, allowed
) -> float:
    found = 0
    counting = None if allowed is None else AllowedVectors(allowed)
    for query, (rows, scores) in zip(queries, vectors.search(queries, k, counting), strict=True):
        cosines = np.where(allowed, all_ @ query, -2) if allowed is not None else all_ @ query
        best = np.sort(cosines)[-k]
        assert len(rows) >= k
        assert np.allclose(scores, all_[rows] @ query, atol=1e-5)
        assert allowed is None or allowed[rows].all()
        found += min(k, int((scores >= best - 1e-5).sum()))
    return found / (k * len(queries))


def test_goes_over_to_a_graph_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_vectors, "exact_up_to", lambda dimension: 1000)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 1)
    all_, queries = random_vectors(3000), random_vectors(50, seed=1)
    vectors = NearestVectors(24)
    assert vectors.add(all_[:1000]).tolist() == list(range(1000))
    assert not vectors.wants_hnsw
    vectors.add(all_[1000:2000])
    graph = vectors.build_hnsw(vectors.vectors())
    vectors.add(all_[2000:2500])  # while the graph is made
    assert vectors.exact
    vectors.use_hnsw(graph)
    assert not vectors.exact
    vectors.add(all_[2500:])  # without building the graph anew
    assert recall(vectors, all_, queries, 10, None) >= 0.99
    for share in (0.7, 0.3, 0.05):
        allowed = np.random.default_rng(2).random(3000) < share
        assert recall(vectors, all_, queries, 10, allowed) >= 0.99
    some = np.arange(0, 3000, 5)
    fewer = vectors.select(some)
    assert fewer.exact
    assert recall(fewer, all_[some], queries, 10, None) == 1


@pytest.mark.parametrize(
    ("dimension", "exact"), [(384, 200_000), (1024, 200_000), (128, 600_000), (64, 1_200_000)]
)
def test_more_short_vectors_are_compared(dimension: int, exact: int) -> None:
    class Vectors(NearestVectors):
        size = exact

        def __len__(self) -> int:
            return self.size

    vectors = Vectors(dimension)
    assert not vectors.wants_hnsw
    vectors.size += 1
    assert vectors.wants_hnsw


def test_many_equal_vectors_are_no_island(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_vectors, "exact_up_to", lambda dimension: 1000)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 1)
    all_ = random_vectors(2500)
    all_[500:1500] = all_[500]
    vectors = NearestVectors(24)
    rows = vectors.add(all_)
    vectors.use_hnsw(vectors.build_hnsw(vectors.vectors()))
    assert not vectors.exact
    assert len(vectors) == 1501
    assert set(rows[500:1500].tolist()) == {500}
    distinct = all_[np.unique(rows, return_index=True)[1]]
    queries = unit(all_[500] + 0.3 * random_vectors(50, seed=3))
    assert recall(vectors, distinct, queries, 10, None) >= 0.99


def test_two_vectors_with_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_vectors, "_hashes", lambda some: np.full(len(some), 7, np.uint64))
    vectors = NearestVectors(2)
    some = unit([[1, 0], [0, 1], [1, 0], [0, 1]])
    # The second can't share its row, and is kept as often as it comes.
    assert vectors.add(some).tolist() == [0, 1, 0, 2]
    assert vectors.add(some[1:2]).tolist() == [3]
    assert sorted(vectors.search(some[1:2], 1)[0][0].tolist()) == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 5, 63, 640, 1000, 5000])
@pytest.mark.parametrize("limit", [1, 7, 40])
def test_the_highest_are_those_of_a_full_sort(size: int, limit: int) -> None:
    if limit >= size:
        pytest.skip("all are wanted then")
    rng = np.random.default_rng(size + limit)
    for cosines in (
        rng.standard_normal(size).astype(np.float32),
        rng.integers(0, 4, size).astype(np.float32),  # many ties
        np.where(rng.random(size) < 0.01, rng.random(size), -np.inf).astype(np.float32),
        np.sort(rng.random(size)).astype(np.float32),
    ):
        last = np.sort(cosines)[-limit]
        rows = nearest_vectors._highest(cosines, limit)
        assert rows.tolist() == np.flatnonzero(cosines >= last - nearest_vectors._MARGIN).tolist()


def test_what_a_filter_allows_is_copied_where_it_is_little(monkeypatch) -> None:
    monkeypatch.setattr(nearest_vectors, "_MAX_COPIED", 100)
    all_, queries = random_vectors(3000), random_vectors(5, seed=1)
    vectors = NearestVectors(24)
    vectors.add(all_)
    for share in (0.01, 0.2, 0.6):
        allowed = np.random.default_rng(3).random(3000) < share
        counting = AllowedVectors(allowed)
        first = vectors.search(queries, 10, counting)
        again = vectors.search(queries, 10, counting)
        one_by_one = [vectors.search(query[np.newaxis], 10, counting)[0] for query in queries]
        for rows, scores in (*first, *again, *one_by_one):
            assert allowed[rows].all()
            assert len(rows) == len(scores) >= 10
        for some in (again, one_by_one):
            assert [pairs(*one) for one in some] == [pairs(*one) for one in first]
        assert recall(vectors, all_, queries, 10, allowed) == 1


def pairs(rows: np.ndarray, scores: np.ndarray) -> list[tuple[int, float]]:
    return sorted(zip(rows.tolist(), scores.tolist(), strict=True))


def on_disk(vectors: NearestVectors) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in vectors.arrays().items()}


@pytest.mark.parametrize("recent", [0, 1000])
def test_vectors_in_a_file_and_later_ones_are_one(
    monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(node_table, "_RECENT", recent)
    monkeypatch.setattr(nearest_vectors, "_MAX_COPIED", 20)
    chance = np.random.default_rng(4)
    all_, queries = random_vectors(200), random_vectors(6, seed=1)
    memory = NearestVectors(24)
    memory.add(all_[:120])
    in_file = NearestVectors.from_arrays(on_disk(memory))
    size = 120
    while size < 200:
        end = size + int(chance.integers(1, 9))
        some = all_[[*range(size, min(end, 200)), *chance.integers(0, size, 4)]]
        assert in_file.add(some).tolist() == memory.add(some).tolist()
        size = min(end, 200)
        assert np.array_equal(in_file.vectors(), memory.vectors())
        for limit in (1, 10, None):
            found = [v.search(queries, limit) for v in (in_file, memory)]
            assert [pairs(*one) for one in found[0]] == [pairs(*one) for one in found[1]]
    for share in (0.05, 0.9, 0.3):
        allowed = chance.random(200) < share
        found = [v.search(queries, 5, AllowedVectors(allowed)) for v in (in_file, memory)]
        assert [pairs(*one) for one in found[0]] == [pairs(*one) for one in found[1]]
    again = NearestVectors.from_arrays(on_disk(in_file))
    assert np.array_equal(again.vectors(), all_)
    some_rows = np.arange(190, 0, -7)
    assert np.array_equal(in_file.select(some_rows).vectors(), all_[some_rows])


def test_a_graph_is_made_of_vectors_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_vectors, "exact_up_to", lambda dimension: 1000)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 1)
    all_, queries = random_vectors(2000), random_vectors(50, seed=1)
    memory = NearestVectors(24)
    memory.add(all_[:1000])
    vectors = NearestVectors.from_arrays(on_disk(memory))
    vectors.add(all_[1000:1500])
    assert vectors.wants_hnsw
    graph = vectors.build_hnsw(vectors.vectors())
    vectors.add(all_[1500:1600])  # while it is made
    vectors.use_hnsw(graph)
    vectors.add(all_[1600:])
    assert not vectors.exact
    assert recall(vectors, all_, queries, 10, None) >= 0.99


def test_hashes_of_equal_vectors_are_equal_and_of_others_differ() -> None:
    vectors = random_vectors(5000)
    hashes = nearest_vectors._hashes(vectors)
    assert len(np.unique(hashes)) == 5000
    assert np.array_equal(nearest_vectors._hashes(vectors[::-1]), hashes[::-1])
    near = vectors.copy()
    near[:, 3] = np.nextafter(near[:, 3], 2)
    assert not np.isin(nearest_vectors._hashes(near), hashes).any()


@pytest.mark.parametrize("dimension", [1, 2, 7, 128, 129, 384, 1000])
def test_a_vector_alone_has_the_length_that_it_has_among_others(dimension: int) -> None:
    some = np.random.default_rng(dimension).standard_normal((30, dimension)).astype(np.float32)
    some[3] = 0.0
    together, alone = unit(some), [unit(row[np.newaxis])[0] for row in some]
    assert together.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("dimension", [1, 3, 384, 4096])
def test_no_cosine_is_beyond_that_of_equal_and_opposite_vectors(dimension: int) -> None:
    some = random_vectors(200, dimension)
    rows = np.arange(len(some))
    for row in rows:
        assert nearest_vectors.cosines(some, rows[row : row + 1], some[row]).tolist() == [1.0]
        assert nearest_vectors.cosines(-some, rows[row : row + 1], some[row]).tolist() == [-1.0]
