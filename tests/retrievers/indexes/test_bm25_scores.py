"""The rows with the highest sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.retrievers.indexes import bm25_scores, row_postings
from nodekin.retrievers.indexes.bm25_scores import QueryPostings, best_rows
from nodekin.retrievers.indexes.bm25_weights import LengthNorms, Saturation
from nodekin.retrievers.indexes.matching_rows import MatchingRows
from nodekin.retrievers.indexes.row_postings import RowPostings

LIMITS = st.sampled_from([None, 1, 2, 3, 5, 10, 256, 1000])
SEEDS = st.integers(0, 2**32 - 1)
DENSITIES = st.sampled_from([None, 0.0, 0.01, 0.1, 0.5, 1.0])


def random_query(
    random: np.random.Generator, size: int, lowest: float, saturation: Saturation
) -> QueryPostings:
    """Return the postings of some terms, the heaviest first."""
    longest = random.choice([6, 60, 4000])
    lengths = random.integers(1, longest, size).astype(np.int32)
    lists, weights = [], []
    for _ in range(int(random.integers(1, 7))):
        share = random.choice([0.02, 0.05, 0.3, 0.9])
        rows = np.flatnonzero(random.random(size) < share).astype(np.int32)
        highest, kind = ((2, np.uint8), (6, np.uint8), (300, np.uint32))[int(random.integers(3))]
        lists.append((rows, random.integers(1, highest, len(rows)).astype(kind)))
        weights.append(float(random.choice([lowest, 0.001, 0.5, 1.0, 4.0])))  # many equal sums
    weights.sort(reverse=True)
    terms = [f"term {number}" for number in range(len(lists))]
    norms = LengthNorms(saturation, lengths)
    return QueryPostings(terms, lists, np.array(weights), saturation, norms)


def brute(query, limit, allowed, orders) -> tuple[list[int], list[float]]:
    sums: dict[int, float] = {}
    for (rows, counts), weight in zip(query.lists, query.weights.tolist(), strict=True):
        impacts = query.saturation.weighed(counts, query.norms(rows))
        for row, impact in zip(rows.tolist(), impacts.tolist(), strict=True):
            sums[row] = sums.get(row, 0.0) + weight * impact
    rows = [row for row in sums if allowed is None or allowed[row]]
    ranking = sorted(rows, key=lambda row: (-sums[row], orders[row]))[:limit]
    return ranking, [sums[row] for row in ranking]


def check(seed: int, limit: int | None, density: float | None, lowest: float) -> None:
    random = np.random.default_rng(seed)
    size = int(random.choice([random.integers(1, 60), 500]))
    k1 = random.choice([0.0, 1e9, random.random() * 2])
    saturation = Saturation(k1, random.random(), random.choice([1.5, 17.3, 900.0]))
    query = random_query(random, size, lowest, saturation)
    allowed = None if density is None else random.random(size) < density
    orders = random.permutation(size).astype(np.int64)
    matching = None if allowed is None else MatchingRows.of(allowed)
    if matching is not None and matching.rows is not None:
        few = RowPostings(matching.mask, matching.rows, saturation, query.norms)
        query = query._replace(filtered=few)
    for _ in range(2):  # the second search uses cached postings
        rows, scores = best_rows(query, limit, allowed, orders)
        assert (rows.tolist(), scores.tolist()) == brute(query, limit, allowed, orders)


@pytest.mark.parametrize(("frequent", "look_up"), [(50, 0), (50, 24), (4096, 24)])
@settings(max_examples=amount(33, 100))
@given(SEEDS, LIMITS, DENSITIES, st.sampled_from([1e-9, 0.1]))
def test_best_rows_equal_brute_force(frequent, look_up, seed, limit, density, low) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bm25_scores, "_FREQUENT", frequent)
        patched.setattr(bm25_scores, "_LOOK_UP", look_up)
        patched.setattr(row_postings, "_LOOK_UP", look_up)
        check(seed, limit, density, low)


def test_norms_are_equal_before_and_after_all_are_computed() -> None:
    lengths, saturation = np.array([3, 1, 8, 5], np.int32), Saturation(1.5, 0.75, 4.0)
    norms, rows = LengthNorms(saturation, lengths), np.array([2, 0, 3])
    expected = saturation.norms(lengths)[rows].tolist()
    assert [norms(rows).tolist() for _ in range(4)] == [expected] * 4


def test_impacts_of_small_integers_do_not_overflow() -> None:
    counts, lengths = np.array([200], np.uint8), np.array([10], np.int32)
    saturation = Saturation(1, 0, 10.0)
    assert saturation.weighed(counts, saturation.norms(lengths)).tolist() == [400 / 201]
