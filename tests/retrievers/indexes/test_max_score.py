import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.retrievers.indexes import max_score
from nodekin.retrievers.indexes.max_score import PostingList, Saturation, Scratch, best_rows

LIMITS = st.sampled_from([None, 1, 2, 3, 5, 10, 1000])
SEEDS = st.integers(0, 2**32 - 1)


def postings_of(random, size: int, terms: int, lowest: float) -> list[tuple[float, PostingList]]:
    """Make random postings over few lengths and counts, so that many scores are equal."""
    lengths = random.integers(1, 4, size).astype(np.int32)
    lists = []
    for _ in range(terms):
        rows = np.flatnonzero(random.random(size) < random.choice([0.05, 0.3, 0.9]))
        counts = random.integers(1, 3, len(rows)).astype(np.int32)
        weight = float(random.choice([lowest, 0.001, 0.5, 1.0, 4.0]))
        if len(rows):
            lists.append((weight, PostingList(rows.astype(np.int32), counts, lengths)))
    return sorted(lists, key=lambda pair: -pair[0])


def brute(postings, saturation, limit, allowed, orders) -> tuple[list[int], list[float]]:
    sums: dict[int, float] = {}
    for weight, posting in postings:
        for row, impact in zip(posting.rows, posting.impacts(saturation), strict=True):
            sums[int(row)] = sums.get(int(row), 0.0) + weight * float(impact)
    allowed_rows = [row for row in sums if allowed is None or allowed[row]]
    ranking = sorted(allowed_rows, key=lambda row: (-sums[row], orders[row]))[:limit]
    return ranking, [sums[row] for row in ranking]


def check(seed: int, limit: int | None, density: float | None, lowest: float) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 60))
    postings = postings_of(random, size, int(random.integers(0, 7)), lowest)
    saturation = Saturation(1.5, 0.75, 2.0)
    allowed = None if density is None else random.random(size) < density
    orders = random.permutation(size).astype(np.int64)
    scratch = Scratch(np.zeros(size), np.empty(size + 1, np.int32))
    rows, scores = best_rows(postings, saturation, scratch, limit, allowed, orders)
    assert (rows.tolist(), scores.tolist()) == brute(postings, saturation, limit, allowed, orders)
    assert not scratch.sums.any()


DENSITIES = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])


@settings(max_examples=200)
@given(SEEDS, LIMITS, DENSITIES)
def test_the_best_are_those_of_brute_force(seed, limit, density) -> None:
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
    monkeypatch.setattr(max_score, "_CHECK_FLOOR", -(10**9))
    monkeypatch.setattr(max_score, "_FEW", 0)
    lengths = np.ones(1000, np.int32)
    everywhere = PostingList(np.arange(1000, dtype=np.int32), np.ones(1000, np.int32), lengths)
    rare = PostingList(np.array([7, 500], np.int32), np.array([1, 2], np.int32), lengths)
    saturation = Saturation(1.0, 0.0, 1.0)
    scratch = Scratch(np.zeros(1000), np.empty(1001, np.int32))
    postings = [(5.0, rare), (0.001, everywhere)]
    rows, scores = best_rows(postings, saturation, scratch, 2, None, np.arange(1000))
    assert rows.tolist() == [500, 7]
    assert scores.tolist() == [5.0 * (4 / 3) + 0.001, 5.0 + 0.001]
    rows, _ = best_rows(postings, saturation, scratch, 4, None, np.arange(1000))
    assert rows.tolist() == [500, 7, 0, 1]  # ties by order


def test_a_posting_weighed_by_two_settings_in_turn() -> None:
    posting = PostingList(
        np.array([0, 2], np.int32), np.array([1, 3], np.int32), np.array([2, 1, 2], np.int32)
    )
    plain, long = Saturation(0.0, 0.0, 1.0), Saturation(2.0, 1.0, 1.0)
    for _ in range(2):
        assert posting.highest(plain) == 1.0
        assert posting.impacts(long).tolist() == [3 / 5, 9 / 7]
        assert posting.highest(long) == 9 / 7
        assert posting.impacts(plain).tolist() == [1.0, 1.0]
        assert posting.impacts_on(np.arange(3, dtype=np.int32), long).tolist() == [3 / 5, 0, 9 / 7]
