import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.retrievers.indexes import max_score
from nodekin.retrievers.indexes.impact_lists import Saturation
from nodekin.retrievers.indexes.max_score import Scratch, best_rows
from tests.support.query_lists import query_lists, random_postings

LIMITS = st.sampled_from([None, 1, 2, 3, 5, 10, 1000])
SEEDS = st.integers(0, 2**32 - 1)


def brute(lists, limit, allowed, orders) -> tuple[list[int], list[float]]:
    sums: dict[int, float] = {}
    for weight, (begin, end) in zip(lists.weights.tolist(), lists.spans(), strict=True):
        for at in range(begin, end):
            row, impact = int(lists.arrays.rows[at]), float(lists.arrays.impacts(at, at + 1)[0])
            sums[row] = sums.get(row, 0.0) + weight * impact
    allowed_rows = [row for row in sums if allowed is None or allowed[row]]
    ranking = sorted(allowed_rows, key=lambda row: (-sums[row], orders[row]))[:limit]
    return ranking, [sums[row] for row in ranking]


def check(seed: int, limit: int | None, density: float | None, lowest: float) -> None:
    random = np.random.default_rng(seed)
    size = int(random.choice([random.integers(1, 60), 500]))
    weights = [lowest, 0.001, 0.5, 1.0, 4.0]  # and few counts: many scores are equal
    postings, lengths = random_postings(random, size, int(random.integers(0, 7)), weights, 4)
    lists = query_lists(postings, lengths, Saturation(1.5, 0.75, 2.0))
    allowed = None if density is None else random.random(size) < density
    orders = random.permutation(size).astype(np.int64)
    room = size + int(random.integers(0, 64))
    scratch = Scratch(np.zeros(room), np.empty(room + 1, np.int32))
    rows, scores = best_rows(lists, scratch, limit, allowed, orders)
    assert (rows.tolist(), scores.tolist()) == brute(lists, limit, allowed, orders)
    assert not scratch.sums.any()


DENSITIES = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])


@settings(max_examples=200)
@given(SEEDS, LIMITS, DENSITIES)
def test_the_best_are_those_of_brute_force(seed, limit, density) -> None:
    check(seed, limit, density, lowest=0.1)


@settings(max_examples=200)
@given(SEEDS, LIMITS, DENSITIES, st.sampled_from([0, 50_000]))
def test_in_parts_as_well(seed, limit, density, spread) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(max_score, "_IN_PARTS", 0)
        patched.setattr(max_score, "_SPREAD", spread)
        check(seed, limit, density, lowest=0.1)


@settings(max_examples=200)
@given(SEEDS, LIMITS, DENSITIES)
def test_term_by_term_as_well(seed, limit, density) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(max_score, "_FEW", 0)
        check(seed, limit, density, lowest=0.1)


@pytest.mark.usefixtures("small_limits")
@settings(max_examples=400)
@given(SEEDS, LIMITS, DENSITIES)
def test_also_where_the_rest_is_skipped(seed, limit, density) -> None:
    check(seed, limit, density, lowest=1e-9)


@settings(max_examples=200)
@given(SEEDS, LIMITS, DENSITIES, st.sampled_from([0.0, -0.5]))
def test_weights_need_not_be_positive(seed, limit, density, lowest) -> None:
    check(seed, limit, density, lowest)


def test_a_rare_term_decides_and_the_common_one_is_only_looked_up(monkeypatch) -> None:
    monkeypatch.setattr(max_score, "_FEW", 0)
    monkeypatch.setattr(max_score, "_LOOK_UP_COST", 0)
    everywhere = np.arange(1000, dtype=np.int32), np.ones(1000, np.int32)
    rare = np.array([7, 500], np.int32), np.array([1, 2], np.int32)
    lists = query_lists([(5.0, *rare), (0.001, *everywhere)], np.ones(1000, np.int32))
    scratch = Scratch(np.zeros(1000), np.empty(1001, np.int32))
    rows, scores = best_rows(lists, scratch, 2, None, np.arange(1000))
    assert rows.tolist() == [500, 7]
    assert scores.tolist() == [5.0 * (4 / 3) + 0.001, 5.0 + 0.001]
    rows, _ = best_rows(lists, scratch, 4, None, np.arange(1000))
    assert rows.tolist() == [500, 7, 0, 1]  # ties by order
