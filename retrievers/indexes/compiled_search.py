"""Search with compiled loops, where numba is installed (``nodekin[fast]``)."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .bm25_scores import Add, Floats, QueryPostings
from .postings import Ints

logger = logging.getLogger(__name__)

WORTH_LOADING = 5_000_000
"""Nodes to be searched, over all queries of an index, from which importing numba, some tenths of a
second and 150 MB, is worth it: fifty queries of 100,000.
"""


def add_postings(
    rows: Ints, counts: Ints, stops: Ints, weights: Floats, norms: Floats, k1: float, sums: Floats
) -> None:
    """Add impacts to sums, in the part of Python that numba compiles.

    It adds in the order of ``bm25_scores.add``, so that sums are the same to the last bit.
    """
    start = 0
    for term in range(len(stops)):
        for at in range(start, stops[term]):
            row, count = rows[at], float(counts[at])
            sums[row] += count * (k1 + 1) / (count + norms[row]) * weights[term]
        start = stops[term]


Kernel = Callable[[Ints, Ints, Ints, Floats, Floats, float, Floats], None]


def adding(kernel: Kernel) -> Add:
    """Return a function that adds by a kernel what ``bm25_scores.add`` adds by NumPy."""

    def add(query: QueryPostings, sums: Floats) -> None:
        kernel(
            np.concatenate([rows for rows, _ in query.lists]),
            np.concatenate([counts for _, counts in query.lists], dtype=np.int32),
            np.cumsum([len(rows) for rows, _ in query.lists], dtype=np.int32),
            *(query.weights, query.norms, float(query.saturation.k1), sums),
        )

    return add


@cache
def load() -> Add | None:
    """Compile the loops, or read them from the disk; None where numba is not there, or fails."""
    if "numba" not in sys.modules and importlib.util.find_spec("numba") is None:
        return None
    try:
        numba: Any = importlib.import_module("numba")
        return None if numba.config.DISABLE_JIT else adding(_compiled(numba))
    except Exception as error:  # of a numba that does not fit this NumPy or this machine
        logger.debug("searching without numba, which failed: %s", error)
        return None


def _compiled(numba: Any) -> Kernel:
    def array(kind: Any, readonly: bool = True) -> Any:
        return numba.types.Array(kind, 1, "C", readonly=readonly)

    number, narrow = numba.types.float64, numba.types.int32
    signature = (
        *(array(narrow), array(narrow), array(narrow), array(number), array(number)),
        *(number, array(number, False)),
    )
    try:
        kernel: Kernel = numba.njit([signature], cache=True, nogil=True)(add_postings)
    except RuntimeError as error:  # there is no folder to store it in
        logger.debug("what numba compiles is not stored: %s", error)
        kernel = numba.njit([signature], nogil=True)(add_postings)
    return kernel
