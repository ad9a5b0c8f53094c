"""The weighted counts of terms in a few rows."""

import numpy as np
import pytest

from nodekin.retrievers.indexes import row_postings
from nodekin.retrievers.indexes.bm25_weights import LengthNorms, Saturation
from nodekin.retrievers.indexes.row_postings import RowPostings

SIZE = 3_000


@pytest.mark.parametrize("look_up", [0, 24])  # postings are looked up by row, or selected by mask
def test_sums_equal_the_sums_of_all_rows(look_up: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_postings, "_LOOK_UP", look_up)
    random = np.random.default_rng(1)
    saturation = Saturation(1.5, 0.75, 9.0)
    norms = LengthNorms(saturation, random.integers(1, 20, SIZE).astype(np.int32))
    terms: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for share in (0.001, 0.2, 0.9):
        rows = np.flatnonzero(random.random(SIZE) < share).astype(np.int32)
        terms[f"in {share}"] = rows, random.integers(1, 9, len(rows)).astype(np.uint8)
    mask = random.random(SIZE) < 0.01
    few = RowPostings(mask, np.flatnonzero(mask), saturation, norms)
    for names in (["in 0.2", "in 0.9"], ["in 0.9", "in 0.001", "in 0.2"], ["in 0.001"]):
        weights = random.random(len(names))
        expected = np.zeros(SIZE)
        for name, weight in zip(names, weights.tolist(), strict=True):
            rows, counts = terms[name]
            expected[rows] += saturation.weighed(counts, norms(rows)) * weight
        sums = few.sums(names, [terms[name] for name in names], weights)
        assert sums.tolist() == expected[mask].tolist()


def test_held_memory_covers_all_arrays() -> None:
    mask = np.arange(80_000) < 500
    saturation = Saturation(1.5, 0.75, 9.0)
    norms = LengthNorms(saturation, np.full(80_000, 9, np.int32))
    few = RowPostings(mask, np.flatnonzero(mask), saturation, norms)
    of_rows = few.rows.nbytes + 8 * len(few.rows)  # the rows and their length normalization
    assert 8 * few.held >= mask.nbytes + of_rows
    rows = np.arange(80_000, dtype=np.int32)
    before = few.held
    few.sums(["tea"], [(rows, np.ones(80_000, np.uint8))], np.ones(1))
    assert 8 * (few.held - before) >= 16 * 500  # a position and a weighted count per row
