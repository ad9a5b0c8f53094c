import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.retrievers.indexes.impact_lists import ImpactLists, Saturation


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 200, 90_000]), st.integers(1, 40))
def test_an_impact_is_that_of_the_formula_to_the_last_bit(seed, longest, highest):
    """However few lengths and counts share it, and wherever the rest has its own."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest, int(random.integers(1, 2_000)), endpoint=True)
    lengths = lengths.astype(np.int32)
    saturation = Saturation(1.2, 0.75, float(lengths.mean()))
    lists = ImpactLists(saturation, lengths, 1 << 22)
    for term in ("one", "two", "three"):
        rows = np.flatnonzero(random.random(len(lengths)) < random.random()).astype(np.int32)
        counts = random.integers(1, highest, len(rows), endpoint=True).astype(np.int32)
        (slot,) = lists.slots([term], lambda _, r=rows, c=counts: (r, c))
        arrays = lists.arrays
        begin, end = arrays.starts[slot : slot + 2]
        expected = saturation.impacts(counts, lengths[rows])
        assert arrays.rows[begin:end].tolist() == rows.tolist()
        assert arrays.impacts(begin, end).tobytes() == expected.tobytes()
        assert arrays.highest[slot] == expected.max(initial=0.0)


def test_what_is_held_is_bounded_by_postings_and_by_impacts_of_their_own():
    lengths = np.arange(1, 101, dtype=np.int32)
    rows = np.arange(100, dtype=np.int32)
    lists = ImpactLists(Saturation(1.2, 0.75, 50.0), lengths, 2_000)
    common, rare = np.ones(100, np.int32), np.full(100, 1_000_000, np.int32)
    lists.slots(["a"], lambda _: (rows, common))
    before = len(lists.arrays.values)
    lists.slots(["b"], lambda _: (rows, common))
    assert len(lists.arrays.values) == before
    assert not lists.full
    lists.slots(["c"], lambda _: (rows, rare))
    assert len(lists.arrays.values) > before
    lists.slots(["d"], lambda _: (rows, rare))
    assert lists.full
