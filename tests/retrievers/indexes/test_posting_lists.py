"""Postings as bytes: rows and counts of any size come back, alone and many at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes import posting_lists
from nodekin.retrievers.indexes.posting_lists import Decoded, PostingLists, encoded

GAPS = st.one_of(
    st.integers(1, 3), st.sampled_from([255, 256, 257, 65_535, 65_536, 65_537]), st.just(10**7)
)
COUNTS = st.one_of(st.just(1), st.sampled_from([2, 256, 257, 258, 65_536, 2**30]))
LISTS = st.lists(st.tuples(GAPS, COUNTS), max_size=70)


def pieces_of(terms: list[list[tuple[int, int]]], size: int) -> list[Decoded]:
    pieces = []
    for first in range(0, len(terms), size):
        some = terms[first : first + size]
        rows = [np.cumsum([gap for gap, _ in each], dtype=np.int32) - 1 for each in some]
        counts = [count for each in some for _, count in each]
        sizes = np.array([len(each) for each in some])
        flat = np.concatenate([np.zeros(0, np.int32), *rows])
        pieces.append(Decoded(sizes, flat, np.array(counts, np.int32)))
    return pieces


@given(st.lists(LISTS, max_size=9), st.integers(1, 4), st.sampled_from([1, 60, 10**6]))
def test_what_was_encoded_is_decoded(terms, size: int, chunk: int) -> None:
    pieces = pieces_of(terms, size)
    lists = encoded(iter(pieces))
    assert len(lists) == len(terms)
    assert lists.size == sum(map(len, terms))
    assert lists.sizes().tolist() == [len(each) for each in terms]
    (whole,) = pieces_of(terms, max(1, len(terms))) or [Decoded(*[np.zeros(0, int)] * 3)]
    ends = np.cumsum(whole.sizes).tolist()
    for number, end in enumerate(ends):
        rows, counts = lists.get(number)
        begin = end - len(terms[number])
        assert rows.tolist() == whole.rows[begin:end].tolist()
        assert counts.tolist() == whole.counts[begin:end].tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posting_lists, "_CHUNK", chunk)
        decoded = [lists.decode(first, last) for first, last in lists.chunks()]
    for name in Decoded._fields:
        flat = [number for each in decoded for number in getattr(each, name).tolist()]
        assert flat == getattr(whole, name).tolist()
    restored = PostingLists.from_arrays(lists.arrays())
    assert restored.size == lists.size


def test_bytes_that_do_not_fit() -> None:
    arrays = encoded(pieces_of([[(1, 1)], [(5, 2)]], 2)).arrays()
    for name in arrays:
        with pytest.raises(ValueError, match="don't fit"):
            PostingLists.from_arrays({**arrays, name: arrays[name][:-1]})
        with pytest.raises(KeyError, match=name):
            PostingLists.from_arrays({key: arrays[key] for key in arrays if key != name})


def test_a_frequent_term_takes_little_more_than_a_byte_a_row() -> None:
    rows = np.flatnonzero(np.random.default_rng(1).random(100_000) < 0.1).astype(np.int32)
    lists = encoded([Decoded(np.array([len(rows)]), rows, np.ones(len(rows), np.int32))])
    assert len(lists.arrays()["postings"]) < 1.01 * len(rows)
