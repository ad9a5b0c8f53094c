"""Vectors that are encoded with 8 bits per number, for a fast first comparison with FAISS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .row_ids import Mask

Floats = npt.NDArray[np.float32]

Numbers = npt.NDArray[np.int64]

_LARGEST = 127.0  # the largest absolute value of a code

_SAMPLE = 2_000  # the number of rows from which the mean is computed

_BATCH = 1_024  # the number of rows in memory per step

_DEVIATIONS = 6.0  # the limit for the error of a cosine similarity, in standard deviations


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make FAISS use only the current thread. Its own threads would block forked processes."""
    faiss = import_module("faiss")
    number = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(number)


class CodedRows(NamedTuple):
    """The rows whose codes have the highest cosine similarities.

    Attributes:
        rows: The rows.
        bound: An upper limit for the similarities of all other rows. It is exceeded only if
            rounding errors are larger than six standard deviations.
    """

    rows: Numbers
    bound: float


class VectorCodes:
    """The first rows of vectors, encoded with 8 bits per number. They do not change.

    The mean is subtracted from the vectors, and each dimension has its own scale. A query is
    multiplied by these scales and is also rounded to 8 bits.

    Args:
        vectors: Normalized vectors with shape (rows, dimension).
    """

    def __init__(self, vectors: Floats) -> None:
        faiss = import_module("faiss")
        sample = vectors[:: len(vectors) // _SAMPLE + 1]
        self._mean = sample.mean(axis=0)
        spread = np.maximum(vectors.max(axis=0) - self._mean, self._mean - vectors.min(axis=0))
        self._scales: Floats = np.maximum(spread / np.float32(_LARGEST), np.float32(1e-9))
        self._deviations = sample.std(axis=0) / self._scales
        self._index: Any = faiss.IndexScalarQuantizer(
            vectors.shape[1],
            faiss.ScalarQuantizer.QT_8bit_direct_signed,
            faiss.METRIC_INNER_PRODUCT,
        )
        factors = 1 / self._scales
        for start in range(0, len(vectors), _BATCH):
            scaled = vectors[start : start + _BATCH] - self._mean
            scaled *= factors
            np.rint(scaled, out=scaled)
            with _one_thread():
                self._index.add(scaled)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def near(self, query: Floats, count: int, allowed: Mask | None) -> CodedRows:
        """Return the rows whose codes have the highest cosine similarities.

        Args:
            query: A normalized vector.
            count: The number of rows.
            allowed: A boolean array of the rows that may be returned. If None, all rows are
                allowed.
        """
        faiss = import_module("faiss")
        scaled = query * self._scales
        unit = max(float(np.abs(scaled).max()) / _LARGEST, 1e-12)
        codes = np.rint(scaled / unit)  # FAISS would truncate the numbers of a query
        settings: dict[str, Any] = {}
        if allowed is not None:
            bits = np.packbits(allowed, bitorder="little")
            settings["params"] = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))
        with _one_thread():
            products, rows = self._index.search(codes[np.newaxis], count, **settings)
        found = rows[0][rows[0] >= 0]
        if len(found) < count:
            return CodedRows(found, -math.inf)
        of_vectors = np.linalg.norm(scaled) / math.sqrt(12)  # rounding errors are uniform
        of_query = np.linalg.norm((scaled - codes * unit) * self._deviations)
        error = _DEVIATIONS * math.hypot(of_vectors, of_query)
        return CodedRows(found, float(products[0, -1] * unit + query @ self._mean) + error)
