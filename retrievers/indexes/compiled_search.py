"""Rank nodes as ``max_score`` does, with compiled loops in place of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .accelerator import Kernels
from .max_score import ROUNDING, Floats, Ints, PostingList, Saturation, Scratch, few_allowed, ranked
from .node_table import Mask, Orders

_MOST = 256  # results up to which the best are kept in order as they are met

# Looking a row up in a term costs about as much as adding so many of the term's rows (measured at
# 10,000 and 100,000 short texts).
_LOOK_UP_COST = 32

_ALL: Mask = np.zeros(0, np.bool_)


def can_search(postings: Sequence[tuple[float, PostingList]], limit: int | None) -> bool:
    """Return whether the best rows for these terms can be searched for by compiled loops."""
    return limit is not None and limit <= _MOST and all(weight > 0 for weight, _ in postings)


def compiled_best_rows(
    kernels: Kernels,
    postings: Sequence[tuple[float, PostingList]],
    saturation: Saturation,
    scratch: Scratch,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[Ints, Floats]:
    """Return what ``best_rows`` returns, the scores the same to the last bit.

    Args:
        kernels: The loops.
        postings: Weight and postings of each term, the heaviest first; weights are above 0.
        saturation: Weighs the counts.
        scratch: Zeros, at least one a row; zeros again afterwards.
        limit: How many.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    if limit is None or limit > _MOST:
        raise ValueError(f"compiled loops find up to {_MOST} rows, not {limit}")
    sums, touched = scratch.sums, scratch.touched
    mask, filtered = (_ALL, False) if allowed is None else (allowed, True)
    ceilings = _ceilings(postings, saturation)
    best = np.empty(limit)
    done, count = 0, 0
    if allowed is not None and few_allowed(postings, allowed):
        candidates = np.flatnonzero(allowed).astype(np.int32)
        scores = np.zeros(len(candidates))
        size = len(candidates)
    else:
        least, rest = -np.inf, sum(len(posting.rows) for _, posting in postings)
        for weight, posting in postings:
            if limit <= count < rest // _LOOK_UP_COST:
                least = kernels.lowest_of_best(sums, touched, count, mask, filtered, best)
                if ceilings[done] < least:
                    break
            impacts = posting.impacts(saturation)
            count = kernels.add_term(posting.rows, impacts, weight, sums, touched, count)
            rest -= len(posting.rows)
            done += 1
        if done == len(postings):
            rows = np.empty(limit, np.int32)
            size = kernels.take_best(sums, touched, count, mask, filtered, orders, rows, best)
            return rows[:size], best[:size]
        least = least / ROUNDING - ceilings[done]
        candidates, scores = np.empty(count, np.int32), np.empty(count)
        size = kernels.take_reaching(
            sums, touched, count, mask, filtered, least, candidates, scores
        )
    for weight, posting in postings[done:]:
        kernels.look_up(
            *(candidates, scores, size, posting.rows, posting.counts, posting.lengths),
            *(weight, saturation.k1, saturation.b, saturation.average_length or 1.0),
        )
    candidates, scores = candidates[:size], scores[:size]
    matched = scores > 0
    return ranked(candidates[matched], scores[matched], limit, orders)


def _ceilings(postings: Sequence[tuple[float, PostingList]], saturation: Saturation) -> list[float]:
    """Return the most that each term and all after it can add to a row."""
    ceilings, above = [], 0.0
    for weight, posting in reversed(postings):
        above += weight * posting.highest(saturation)
        ceilings.append(above * ROUNDING)
    return ceilings[::-1]
