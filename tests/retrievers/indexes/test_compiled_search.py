from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import accelerator, kernels, max_score
from nodekin.retrievers.indexes.compiled_search import Kernel, can_search, compiled_best_rows
from nodekin.retrievers.indexes.impact_lists import QueryLists, Saturation
from nodekin.retrievers.indexes.max_score import Scratch, best_rows
from tests.support.query_lists import query_lists, random_postings

WITHOUT = "numba is not installed (nodekin[fast]): the loops run as plain Python in other tests"

SEEDS = st.integers(0, 2**32 - 1)

load = lru_cache(accelerator.load)

LIMITS = st.sampled_from([1, 2, 3, 5, 10, 256])

DENSITIES = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])

COSTS = st.sampled_from([0.01, 1, 4, 64])

SHARES = st.sampled_from([1, 4, 20])


def check(kernel: Kernel, seed: int, size: int, limit: int, density: float | None) -> None:
    random = np.random.default_rng(seed)
    weights = [1e-9, 0.001, 1 / 3, random.random(), 4.0]  # the rest can be skipped
    postings, lengths = random_postings(random, size, int(random.integers(0, 9)), weights, 6)
    saturation = Saturation(random.random() * 2, random.random(), 17.3)
    lists = query_lists(postings, lengths, saturation)
    allowed = None if density is None else random.random(size) < density
    orders = random.permutation(size).astype(np.int64)
    scratch = Scratch(np.zeros(size), np.empty(size + 1, np.int32))
    rest = (lists, scratch, limit, allowed, orders)
    assert can_search(lists, limit)
    rows, scores = compiled_best_rows(kernel, *rest)
    assert not scratch.sums.any()
    for few in (0, 20_000):  # term by term, and all terms in one go
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(max_score, "_FEW", few)
            expected_rows, expected_scores = best_rows(*rest)
        assert rows.tolist() == expected_rows.tolist()
        assert scores.tobytes() == expected_scores.tobytes()


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.integers(1, 150), LIMITS, DENSITIES, COSTS, SHARES)
def test_the_loops_give_the_scores_of_numpy_to_the_last_bit(
    seed: int, size: int, limit: int, density: float | None, cost: float, share: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernels, "LOOK_UP_COST", cost)
        patched.setattr(kernels, "LISTED_SHARE", share)
        check(kernels.search, seed, size, limit, density)


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.integers(1, 20_000), LIMITS, DENSITIES)
def test_compiled_they_still_do(seed: int, size: int, limit: int, density: float | None) -> None:
    pytest.importorskip("numba", reason=WITHOUT)
    kernel = load()
    assert kernel is not None
    check(kernel, seed, size, limit, density)


class Watched(np.ndarray):
    """Counts the places that are read one by one."""

    read = 0

    def __getitem__(self, place):
        Watched.read += not isinstance(place, slice)
        return super().__getitem__(place)


def test_the_rest_is_skipped_and_looked_up() -> None:
    everywhere = np.arange(9000, dtype=np.int32), np.ones(9000, np.int32)
    rare = np.array([7, 500], np.int32), np.array([1, 2], np.int32)
    lists = query_lists([(5.0, *rare), (0.001, *everywhere)], np.ones(9000, np.int32))
    watched = lists._replace(arrays=lists.arrays._replace(codes=lists.arrays.codes.view(Watched)))
    scratch = Scratch(np.zeros(9000), np.empty(9001, np.int32))
    Watched.read = 0
    rows, scores = compiled_best_rows(kernels.search, watched, scratch, 2, None, np.arange(9000))
    assert Watched.read == 4
    expected = [5.0 * (4 / 3) + 0.001, 5.0 + 0.001]
    assert (rows.tolist(), scores.tolist()) == ([500, 7], expected)


@settings(max_examples=300)
@given(st.lists(st.integers(0, 300), max_size=60, unique=True), st.integers(1, 301))
def test_every_row_is_found_wherever_it_is(rows: list[int], size: int) -> None:
    """A row that has only the second term is among the best by what was looked up for it."""
    own = np.array(sorted(row for row in rows if row < size), np.int32)
    every = np.arange(size, dtype=np.int32)
    lists = query_lists(
        [(1.0, every, np.ones(size, np.int32)), (0.5, own, np.ones(len(own), np.int32))],
        np.ones(size, np.int32),
    )
    scratch = Scratch(np.zeros(size), np.empty(size + 1, np.int32))
    allowed = np.zeros(size, np.bool_)
    for row in {0, size // 3, size - 1, *own[:3].tolist()}:
        allowed[:] = False
        allowed[row] = True  # few are allowed, and looked up in both lists
        rest = (lists, scratch, 3, allowed, np.arange(size))
        found, scores = compiled_best_rows(kernels.search, *rest)
        assert (found.tolist(), scores.tolist()) == ([row], [1.5 if row in own else 1.0])


def test_what_the_loops_do_not_do_is_left_to_numpy() -> None:
    def lists(weight: float) -> QueryLists:
        return query_lists(
            [(weight, np.zeros(1, np.int32), np.ones(1, np.int32))], np.ones(1, np.int32)
        )

    assert can_search(lists(1.0), 10)
    assert not can_search(lists(1.0), None)
    assert not can_search(lists(1.0), 100_000)
    assert not can_search(lists(0.0), 10)


@pytest.mark.parametrize("filters", [None, {"even": True}])
def test_a_retriever_returns_the_same_with_and_without(
    monkeypatch: pytest.MonkeyPatch, filters: dict[str, bool] | None
) -> None:
    random = np.random.default_rng(3)
    words = [f"word{number}" for number in range(300)]
    texts = [" ".join(random.choice(words, random.integers(3, 30))) for _ in range(400)]
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(t, {"even": n % 2 == 0}, id=str(n)) for n, t in enumerate(texts)])
    queries = [" ".join(random.choice(words, 6)) for _ in range(40)]

    def seen() -> list[list[tuple[str, float]]]:
        retriever = Retriever(graph, "line", "bm25", top_k=7, filters=filters)
        return [[(r.node.id, r.score) for r in results] for results in retriever.batch(queries)]

    monkeypatch.setattr(accelerator.accelerator, "loaded", None)
    without = seen()
    monkeypatch.setattr(accelerator.accelerator, "loaded", kernels.search)
    assert seen() == without
    graph.remove([str(number) for number in range(0, 400, 3)])
    compiled = seen()
    monkeypatch.setattr(accelerator.accelerator, "loaded", None)
    assert seen() == compiled != without
