from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import accelerator, compiled_search, max_score
from nodekin.retrievers.indexes.accelerator import Kernels
from nodekin.retrievers.indexes.compiled_search import can_search, compiled_best_rows
from nodekin.retrievers.indexes.max_score import PostingList, Saturation, Scratch, best_rows

WITHOUT = "numba is not installed (nodekin[fast]): the loops run as plain Python in other tests"

SEEDS = st.integers(0, 2**32 - 1)

load = lru_cache(accelerator.load)

LIMITS = st.sampled_from([1, 2, 3, 5, 10, 256])

DENSITIES = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])

COSTS = st.sampled_from([1, 4, 32])


def postings_of(random, size: int, terms: int) -> list[tuple[float, PostingList]]:
    """Make random postings; weights differ widely, so that the rest can be skipped."""
    lengths = random.integers(1, 40, size).astype(np.int32)
    lists = []
    for _ in range(terms):
        rows = np.flatnonzero(random.random(size) < random.choice([0.02, 0.3, 0.9]))
        counts = random.integers(1, 6, len(rows)).astype(np.int32)
        weight = float(random.choice([1e-9, 0.001, 1 / 3, random.random(), 4.0]))
        if len(rows):
            lists.append((weight, PostingList(rows.astype(np.int32), counts, lengths)))
    return sorted(lists, key=lambda pair: -pair[0])


def check(kernels: Kernels, seed: int, size: int, limit: int, density: float | None) -> None:
    random = np.random.default_rng(seed)
    postings = postings_of(random, size, int(random.integers(0, 9)))
    saturation = Saturation(random.random() * 2, random.random(), 17.3)
    allowed = None if density is None else random.random(size) < density
    orders = random.permutation(size).astype(np.int64)
    scratch = Scratch(np.zeros(size), np.empty(size + 1, np.int32))
    rest = (postings, saturation, scratch, limit, allowed, orders)
    assert can_search(postings, limit)
    rows, scores = compiled_best_rows(kernels, *rest)
    assert not scratch.sums.any()
    for few in (0, 20_000):  # term by term, and all terms in one go
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(max_score, "_FEW", few)
            expected_rows, expected_scores = best_rows(*rest)
        assert rows.tolist() == expected_rows.tolist()
        assert scores.tobytes() == expected_scores.tobytes()


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(1, 150), LIMITS, DENSITIES, COSTS)
def test_the_loops_give_the_scores_of_numpy_to_the_last_bit(
    seed: int, size: int, limit: int, density: float | None, cost: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled_search, "_LOOK_UP_COST", cost)
        check(Kernels(), seed, size, limit, density)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(1, 5000), LIMITS, DENSITIES, COSTS)
def test_compiled_they_still_do(
    seed: int, size: int, limit: int, density: float | None, cost: int
) -> None:
    pytest.importorskip("numba", reason=WITHOUT)
    kernels = load()
    assert kernels is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled_search, "_LOOK_UP_COST", cost)
        check(kernels, seed, size, limit, density)


def test_the_rest_is_skipped_and_looked_up() -> None:
    called = []

    def look_up(*arguments):
        called.append(len(arguments[3]))
        return Kernels().look_up(*arguments)

    lengths = np.ones(1000, np.int32)
    everywhere = PostingList(np.arange(1000, dtype=np.int32), np.ones(1000, np.int32), lengths)
    rare = PostingList(np.array([7, 500], np.int32), np.array([1, 2], np.int32), lengths)
    scratch = Scratch(np.zeros(1000), np.empty(1001, np.int32))
    rows, scores = compiled_best_rows(
        Kernels(look_up=look_up),
        [(5.0, rare), (0.001, everywhere)],
        Saturation(1.0, 0.0, 1.0),
        scratch,
        2,
        None,
        np.arange(1000),
    )
    assert called == [1000]
    assert (rows.tolist(), scores.tolist()) == ([500, 7], [5.0 * (4 / 3) + 0.001, 5.0 + 0.001])


def test_what_the_loops_do_not_do_is_left_to_numpy() -> None:
    posting = PostingList(np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1, np.int32))
    assert can_search([(1.0, posting)], 10)
    assert not can_search([(1.0, posting)], None)
    assert not can_search([(1.0, posting)], 100_000)
    assert not can_search([(0.0, posting)], 10)


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
    monkeypatch.setattr(accelerator.accelerator, "loaded", Kernels())
    assert seen() == without
    graph.remove([str(number) for number in range(0, 400, 3)])
    compiled = seen()
    monkeypatch.setattr(accelerator.accelerator, "loaded", None)
    assert seen() == compiled != without
