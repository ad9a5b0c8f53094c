"""Rank nodes as ``max_score`` does, with compiled loops in place of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .impact_lists import Floats, Ints, QueryLists
from .max_score import Scratch
from .node_table import Mask, Orders

Kernel = Callable[..., int]
"""``kernels.search``, compiled or as it is."""

_MOST = 256  # results up to which the best are kept in order as they are met

_ALL: Mask = np.zeros(0, np.bool_)


def can_search(lists: QueryLists, limit: int | None) -> bool:
    """Return whether the best rows for these terms can be searched for by compiled loops."""
    return limit is not None and limit <= _MOST and (not len(lists.slots) or lists.weights[-1] > 0)


def compiled_best_rows(
    kernel: Kernel,
    lists: QueryLists,
    scratch: Scratch,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[Ints, Floats]:
    """Return what ``best_rows`` returns, the scores the same to the last bit.

    Args:
        kernel: The loops.
        lists: The query's terms; weights are above 0.
        scratch: Zeros, at least one a row; zeros again afterwards.
        limit: How many.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    if limit is None or limit > _MOST:
        raise ValueError(f"compiled loops find up to {_MOST} rows, not {limit}")
    mask, count = (_ALL, -1) if allowed is None else (allowed, int(np.count_nonzero(allowed)))
    rows, scores = np.empty(limit, np.int32), np.empty(limit)
    size = kernel(
        *(*lists.arrays, lists.slots, lists.weights, *scratch, mask, count, orders, rows, scores)
    )
    return rows[:size], scores[:size]
