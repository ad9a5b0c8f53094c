"""Find the vectors nearest to a query, either exactly or through an HNSW graph of FAISS."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ...nodegraph.concurrency import fork_safe_lock
from .array_files import Arrays, checked
from .row_ids import Mask
from .vector_codes import VectorCodes

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float32]

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]

EXACT = 200_000
"""The maximum number of vectors that are all compared with a query, which takes milliseconds."""

CODED = 8_000
"""The minimum number of vectors for which 8-bit codes are compared first."""

_GROWTH = 4  # the HNSW graph or the codes are rebuilt when the number of vectors has grown by 1/4

# Settings of HNSW. The recall of the best ten is 0.994 to 1.0.
M = 16  # the number of neighbors per vector

EF_CONSTRUCTION = 100  # the number of candidates during the build

EF_SEARCH = 256  # the minimum number of candidates during a search

EF_SEARCH_PER_HIT = 4

_FOLLOW_COST = 60  # the cost of a candidate, in compared vectors

_GATHER_COST = 4  # the cost of copying a vector, in compared vectors

_SELECT_COST = 20  # the cost of a vector that matches a filter, in vectors compared by codes

_FEW_QUERIES = 4  # the maximum number of queries that are compared one by one

_MAX_LEVELS = 8  # the maximum number of levels of a vector; FAISS does not create more for M = 16

_BATCH = 4096  # the number of vectors per step

_UNIT_ROWS = 256  # the number of rows that are converted to 64 bits at a time

_MARGIN = 1e-5  # the maximum difference between 32-bit and 64-bit sums

# NumPy uses all cores for one product, so concurrent products slow each other down.
_PRODUCT = fork_safe_lock()

_DECIMALS = 6  # the precision of the 32-bit numbers of embedding models


def cosines(vectors: Floats, rows: Numbers, query: Floats) -> Scores:
    """Return the rounded cosine similarities of rows, computed with 64-bit numbers.

    Equal vectors have equal similarities.
    """
    exactly = query.astype(np.float64)
    scores: Scores = np.empty(len(rows))
    for start in range(0, len(rows), _BATCH):
        products = vectors.take(rows[start : start + _BATCH], 0).astype(np.float64)
        products *= exactly
        np.add.reduce(products, 1, out=scores[start : start + _BATCH])
    return scores.round(_DECIMALS) + 0.0  # converts -0 to 0


class Hnsw(NamedTuple):
    """An HNSW graph of the distinct vectors among the first rows.

    The method is described in Malkov and Yashunin, "Efficient and robust approximate nearest
    neighbor search using hierarchical navigable small world graphs", 2018. Duplicates are excluded,
    because a search could not leave a set of equal vectors in the graph.

    Attributes:
        graph: The FAISS index.
        numbers: For each row, the number of its distinct vector.
    """

    graph: Any
    numbers: Numbers

    def near(self, query: Floats, limit: int, allowed: Mask, ef_search: int) -> Numbers | None:
        """Return at least ``limit`` rows near a query, or None if the graph led to fewer rows."""
        faiss = import_module("faiss")
        used = np.zeros(self.graph.ntotal, np.bool_)
        used[self.numbers[allowed]] = True
        bits = np.packbits(used, bitorder="little")
        selector = faiss.IDSelectorBitmap(bits)
        parameters = faiss.SearchParametersHNSW(efSearch=ef_search, sel=selector)
        requested = limit + limit // 4 + 4
        cosines, found = self.graph.search(query[np.newaxis], requested, params=parameters)
        if found[0, limit - 1] < 0:
            return None
        near = found[0][(found[0] >= 0) & (cosines[0] >= cosines[0, limit - 1] - _MARGIN)]
        return np.flatnonzero(np.isin(self.numbers, near) & allowed)

    def arrays(self) -> Arrays:
        """Return the graph as arrays for a file, without the vectors."""
        faiss = import_module("faiss")
        graph = self.graph.hnsw
        return {
            "hnsw_numbers": self.numbers,
            "hnsw_levels": faiss.vector_to_array(graph.levels),
            "hnsw_neighbors": faiss.vector_to_array(graph.neighbors),
            "hnsw_entry": np.array([graph.entry_point], np.int32),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, vectors: Floats) -> Hnsw | None:
        """Restore a graph. If the arrays contain no graph or FAISS is not installed, return None.

        FAISS does not verify its own files, and manipulated files crash versions before 1.14.2.
        Therefore, the graph is stored as arrays, which are verified here.

        Args:
            arrays: The arrays that were returned by ``arrays``.
            vectors: The vectors. The first rows belong to the graph.

        Raises:
            ValueError: If the arrays are not valid.
        """
        if "hnsw_numbers" not in arrays or not has_faiss():
            return None
        numbers = checked(arrays, "hnsw_numbers", np.int64, None, values=range(len(vectors)))
        if len(numbers) > len(vectors):
            raise ValueError("the graph has more vectors than the index")
        found, first = np.unique(numbers, return_index=True)
        if not len(found) or found[-1] != len(found) - 1:
            raise ValueError("the numbers of the vectors in the graph have gaps")
        levels, neighbors, entry = _checked_links(arrays, len(found))
        faiss = import_module("faiss")
        graph = empty_hnsw(vectors.shape[1])
        storage = faiss.downcast_index(graph.storage)
        for start in range(0, len(first), _BATCH):
            storage.add(np.ascontiguousarray(vectors[first[start : start + _BATCH]]))
        offsets = np.concatenate([[0], np.cumsum(_sizes(levels))]).astype(np.uint64)
        faiss.copy_array_to_vector(np.array(levels), graph.hnsw.levels)
        faiss.copy_array_to_vector(np.array(neighbors), graph.hnsw.neighbors)
        faiss.copy_array_to_vector(offsets, graph.hnsw.offsets)
        graph.hnsw.entry_point = entry
        graph.hnsw.max_level = int(levels[entry]) - 1
        graph.ntotal = len(first)
        return cls(graph, numbers)


def empty_hnsw(dimension: int) -> Any:
    """Create an empty HNSW graph of FAISS."""
    faiss = import_module("faiss")
    graph = faiss.IndexHNSWFlat(dimension, M, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = EF_CONSTRUCTION
    return graph


def _sizes(levels: npt.NDArray[np.int32]) -> Numbers:
    """Return the number of neighbors of each vector: ``2 * M`` on level 0, otherwise ``M``."""
    return (levels.astype(np.int64) + 1) * M


def _checked_links(
    arrays: Arrays, count: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Return the levels of the vectors, their neighbors and the vector at which a search starts.

    The arrays are verified, because FAISS would read memory outside of its arrays if a neighbor had
    fewer levels than the vector.

    Args:
        arrays: The arrays of the file.
        count: The number of vectors in the graph.

    Raises:
        ValueError: If the arrays are not valid.
    """
    levels = checked(arrays, "hnsw_levels", np.int32, count, values=range(1, _MAX_LEVELS + 1))
    sizes = _sizes(levels)
    total = int(sizes.sum())
    neighbors = checked(arrays, "hnsw_neighbors", np.int32, total, values=range(-1, count))
    (entry,) = checked(arrays, "hnsw_entry", np.int32, 1, values=range(count)).tolist()
    if levels[entry] < levels.max():
        raise ValueError("a search must start at a vector of the highest level")
    starts = np.cumsum(sizes) - sizes
    for start in range(0, count, _BATCH):
        part = slice(start, start + _BATCH)
        within = np.arange(int(sizes[part].sum()))
        within -= (starts[part] - starts[start]).repeat(sizes[part])
        of_level = np.maximum(within // M - 1, 0)  # level 0 contains the first 2 * M neighbors
        of_part = neighbors[starts[start] : starts[start] + len(within)]
        is_used = of_part >= 0
        if np.any(levels[of_part[is_used]] <= of_level[is_used]):
            raise ValueError("a neighbor must have the level of its vector")
    return levels, neighbors, entry


def has_faiss() -> bool:
    """Return whether FAISS is installed."""
    from importlib.util import find_spec

    return find_spec("faiss") is not None


def wants_hnsw(count: int, hnsw: Hnsw | None) -> bool:
    """Return whether a new HNSW graph should be built for a number of vectors."""
    built = 0 if hnsw is None else len(hnsw.numbers)
    return count > EXACT and count > built * (1 + 1 / _GROWTH)


def wants_codes(count: int, codes: VectorCodes | None) -> bool:
    """Return whether new 8-bit codes should be computed for a number of vectors."""
    made = 0 if codes is None else len(codes)
    return count > CODED and count > made * (1 + 1 / _GROWTH)


def nearest(
    vectors: Floats,
    queries: Floats,
    limit: int | None,
    allowed: Mask,
    hnsw: Hnsw | None = None,
    codes: VectorCodes | None = None,
) -> list[tuple[Numbers, Scores]]:
    """Return the rows with the highest cosine similarities for each query, unsorted.

    The result also contains the similarities.

    Args:
        vectors: Normalized vectors with shape (rows, dimension).
        queries: Normalized vectors with shape (queries, dimension).
        limit: The number of rows. Rows with the same similarity as the last one are added. If None,
            all rows are returned.
        allowed: A boolean array of the rows that may be returned.
        hnsw: An HNSW graph of the first rows, which is used if this is faster than comparing all
            rows.
        codes: The codes of the first rows, which are used if this is faster and unlikely to change
            the result. See ``CodedRows``.
    """
    size = len(vectors)
    count = int(np.count_nonzero(allowed))
    if limit is None or limit >= count:
        rows = np.flatnonzero(allowed)
        return [(rows, cosines(vectors, rows, query)) for query in queries]
    if hnsw is not None:
        ef_search = max(EF_SEARCH, EF_SEARCH_PER_HIT * limit) * size // count
        if _FOLLOW_COST * ef_search < min(size, _GATHER_COST * count):
            return [_followed(vectors, query, limit, allowed, hnsw, ef_search) for query in queries]
    if codes is not None and len(queries) <= _FEW_QUERIES and _SELECT_COST * count > size:
        return [_by_codes(vectors, query, limit, allowed, codes) for query in queries]
    return _compared(vectors, queries, limit, allowed, count)


def _by_codes(
    vectors: Floats, query: Floats, limit: int, allowed: Mask, codes: VectorCodes
) -> tuple[Numbers, Scores]:
    """Compare the rows with the best codes, and all rows that have no codes yet.

    If the result is uncertain, all rows are compared.
    """
    first = len(codes)
    near = codes.near(query, 2 * limit + 20, None if allowed.all() else allowed[:first])
    rows = np.concatenate([near.rows, first + np.flatnonzero(allowed[first:])])
    scores = cosines(vectors, rows, query)
    position = len(scores) - limit
    if position < 0 or np.partition(scores, position)[position] <= near.bound + _MARGIN:
        return _compared(vectors, query[np.newaxis], limit, allowed, int(allowed.sum()))[0]
    return rows, scores


def _followed(
    vectors: Floats, query: Floats, limit: int, allowed: Mask, hnsw: Hnsw, ef_search: int
) -> tuple[Numbers, Scores]:
    """Search the HNSW graph of the first rows, and compare all other rows."""
    first = len(hnsw.numbers)
    near = hnsw.near(query, limit, allowed[:first], ef_search)
    if near is None:
        return _compared(vectors, query[np.newaxis], limit, allowed, int(allowed.sum()))[0]
    rows = np.concatenate([near, first + np.flatnonzero(allowed[first:])])
    return rows, cosines(vectors, rows, query)


def _compared(
    vectors: Floats, queries: Floats, limit: int, allowed: Mask, count: int
) -> list[tuple[Numbers, Scores]]:
    """Compare the queries with all allowed rows."""
    chosen: Numbers | None = None
    compared = vectors
    if _GATHER_COST * count < len(vectors):
        chosen = np.flatnonzero(allowed)
        compared = vectors.take(chosen, 0)
    is_cut = chosen is None and count < len(vectors)
    found = []
    batch = max(1, 8_000_000 // len(compared))
    for start in range(0, len(queries), batch):
        part = queries[start : start + batch]
        with _PRODUCT:
            products_of_part = part @ compared.T
        for query, products in zip(part, products_of_part, strict=True):
            rows = _highest(np.where(allowed, products, -np.inf) if is_cut else products, limit)
            rows = rows if chosen is None else chosen[rows]
            found.append((rows, cosines(vectors, rows, query)))
    return found


def _highest(products: Floats, limit: int) -> Numbers:
    """Return the rows with the highest products, and rows that may be equal to the last one."""
    position = len(products) - limit
    last = float(np.partition(products, position)[position])
    return (products >= last - _MARGIN).nonzero()[0]


def unit(vectors: npt.ArrayLike) -> Floats:
    """Normalize vectors with shape (n, dimension) to length 1, as float32.

    Zeros are left unchanged.
    """
    given = np.asarray(vectors)
    if given.ndim == 1:
        return _unit(given)
    units = np.empty(given.shape, np.float32)
    for start in range(0, len(given), _UNIT_ROWS):
        units[start : start + _UNIT_ROWS] = _unit(given[start : start + _UNIT_ROWS])
    return units


def _unit(vectors: npt.NDArray[Any]) -> Floats:
    exactly = vectors.astype(np.float64)
    # The algorithm of `norm`, without its checks.
    lengths: Any = np.sqrt(np.add.reduce(exactly * exactly, -1, keepdims=True))
    lengths[lengths == 0] = 1.0
    exactly /= lengths
    return cast(Floats, exactly.astype(np.float32))
