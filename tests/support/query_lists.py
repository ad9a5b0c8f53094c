"""Queries' lists of postings, made of plain arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodekin.retrievers.indexes.impact_lists import ImpactLists, Ints, QueryLists, Saturation

Posting = tuple[float, Ints, Ints]
"""The weight of a term, its rows, and how often each has it."""


def query_lists(
    postings: Sequence[Posting], lengths: Ints, saturation: Saturation | None = None
) -> QueryLists:
    """Weigh postings, the heaviest first; by default a count of 1 adds 1, of 2 adds 4/3."""
    lists = ImpactLists(saturation or Saturation(1.0, 0.0, 1.0), lengths, 1 << 30)
    by_term = {str(at): posting for at, posting in enumerate(postings)}
    slots = lists.slots([*by_term], lambda term: by_term[term][1:])
    weights = np.array([weight for weight, _, _ in postings], np.float64)
    return QueryLists(lists.arrays, np.array(slots, np.int64), weights)


def random_postings(
    random: np.random.Generator, size: int, terms: int, weights: Sequence[float], most: int
) -> tuple[list[Posting], Ints]:
    """Return postings of some terms, the heaviest first, and the rows' lengths."""
    lengths = random.integers(1, most, size).astype(np.int32)
    postings = []
    for _ in range(terms):
        rows = np.flatnonzero(random.random(size) < random.choice([0.02, 0.05, 0.3, 0.9]))
        counts = random.integers(1, most, len(rows)).astype(np.int32)
        postings.append((float(random.choice(weights)), rows.astype(np.int32), counts))
    return sorted(postings, key=lambda posting: -posting[0]), lengths
