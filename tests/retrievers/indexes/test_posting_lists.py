"""Tests for nodekin.retrievers.indexes.posting_lists."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from nodekin.nodegraph.errors import MissingNodeError
from nodekin.retrievers.indexes import posting_lists
from nodekin.retrievers.indexes.posting_lists import PackedLists, PostingLists, pack_lists

Postings = Sequence[tuple[int, int]]
"""The rows of a term and its counts."""


def lists_of(terms: Sequence[Postings]) -> PostingLists:
    starts = np.cumsum([0, *[len(postings) for postings in terms]])
    rows = np.array([row for postings in terms for row, _ in postings], np.int32)
    counts = np.array([count for postings in terms for _, count in postings], np.int64)
    return PostingLists(starts, rows, counts.astype(np.min_scalar_type(counts.max(initial=1))))


def random_terms(num_rows: int, most: int) -> list[Postings]:
    choose = random.Random(num_rows + most)
    terms = []
    for size in (0, 1, 2, 3, 40, 41, 0, 300, 2):
        rows = sorted(choose.sample(range(num_rows), min(size, num_rows)))
        share = choose.choice([0.0, 0.1, 1.0])
        terms.append([(n, choose.randint(1, most) if choose.random() < share else 1) for n in rows])
    return terms


@pytest.mark.parametrize("num_rows", [1, 300, 1 << 16, (1 << 16) + 1, 1 << 24])
@pytest.mark.parametrize("most", [1, 255, 256, 1 << 16])
@pytest.mark.parametrize("batch", [3, 1_000])
def test_packed_lists_are_read_unchanged(
    num_rows: int, most: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting_lists, "BATCH_SIZE", batch)
    terms = random_terms(num_rows, most)
    lists = lists_of(terms)
    packed = PackedLists(pack_lists(lists), len(terms), num_rows)
    for number, postings in enumerate(terms):
        rows, counts = packed.of_term(number)
        assert [*zip(rows.tolist(), counts.tolist(), strict=True)] == postings
    for found, expected in zip(packed.all(), lists, strict=True):
        assert found.tolist() == expected.tolist()
    assert packed.size == len(lists.rows)


def test_frequent_term_takes_one_byte_per_row() -> None:
    frequent = [(row, 1) for row in range(0, 200_000, 7)]
    rare = [(row, 1) for row in range(0, 200_000, 7_000)]
    arrays = pack_lists(lists_of([frequent, rare]))
    assert arrays["posting_units"].nbytes <= len(frequent) + 2 * len(rare) + 1


def test_any_changed_number_is_refused_or_in_range() -> None:
    terms = random_terms(300, 300)
    arrays = pack_lists(lists_of(terms))
    choose = random.Random(69)
    refused = 0
    for _ in range(500):
        forged = {name: array.copy() for name, array in arrays.items()}
        of_name = forged[choose.choice(["posting_starts", "posting_units", "posting_form"])]
        of_name[choose.randrange(len(of_name))] = choose.choice([0, 1, 7, 255, 2**15, 2**16 - 1])
        try:
            packed = PackedLists(forged, len(terms), 300)
            for number in range(len(terms)):
                rows, counts = packed.of_term(number)
                assert len(rows) == len(counts)
                assert not len(rows) or rows.max() < 300
            rows = packed.all().rows
            assert not len(rows) or 0 <= rows.min() <= rows.max() < 300
        except (MissingNodeError, ValueError):
            refused += 1
    assert refused > 200
