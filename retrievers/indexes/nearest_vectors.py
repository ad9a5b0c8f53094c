"""Distinct unit vectors, and the nearest of them to a query: exactly, or by an HNSW graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph.concurrency import track
from .array_files import Arrays, grown
from .node_table import KeyedRows, Mask

Floats = npt.NDArray[np.float32]

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]

Keys = npt.NDArray[np.uint64]

# Vectors of 384 numbers or more, and numbers in all of shorter ones, up to which all are compared.
# On one core that takes 11 ms for 200,000 of 384, and for a million of 64; following the graph
# (HNSW) takes 1.3 ms for 100,000 of 384, which took one to two minutes to build.
_EXACT = 200_000

_EXACT_NUMBERS = 384 * _EXACT

# Neighbours of a vector in the graph, and how many candidates are compared to choose them.
M = 16

EF_CONSTRUCTION = 100

# How many of the best so far a search follows: at least, and per requested hit. 256 return 0.994
# to 1.0 of the best ten, on clustered vectors of 64 or 200 effective dimensions, also where a
# filter leaves a tenth of them; 128 returned 0.977, and 24 neighbours in place of 16 0.995.
EF_SEARCH = 256

EF_SEARCH_PER_HIT = 4

# What following one costs, in vectors that could be compared in that time; and what it costs to
# copy one vector out of others that a filter leaves out.
_FOLLOW_COST = 60

_GATHER_COST = 4

_MAX_COPIED = (
    1_000  # vectors up to which a copy of those that a filter allows is held for the next search
)

_BATCH = 4096  # vectors that are added or scored in one step

_PARTS = 32  # of which only the highest cosine is looked at to leave out most rows

_MARGIN = 1e-5  # sums of 32-bit products in another order differ by less

_DECIMALS = 6  # what the models' 32-bit numbers are worth


def exact_up_to(dimension: int) -> int:
    """Return up to how many vectors all are compared.

    What that takes is the memory that is read: more of shorter vectors, but no fewer of longer.

    Args:
        dimension: Numbers in a vector.

    Example:
        >>> exact_up_to(1024), exact_up_to(384), exact_up_to(64)
        (200000, 200000, 1200000)
    """
    return max(_EXACT, _EXACT_NUMBERS // dimension)


class _Rows:
    """Hold vectors by row: those of a file or a graph, and some that came later.

    Args:
        stored: The first vectors, (rows, dimension).
        room: Memory for the others, (more rows, dimension).
        count: How many others there are.
    """

    def __init__(self, stored: Floats, room: Floats | None = None, count: int = 0) -> None:
        self.stored = stored
        self._room = stored[:0] if room is None else room
        self.later = self._room[:count]

    def __len__(self) -> int:
        return len(self.stored) + len(self.later)

    def extended(self, vectors: Floats) -> _Rows:
        """Return these and further vectors, in the same memory where there is room."""
        first, count = len(self.later), len(self.later) + len(vectors)
        room = grown(self._room, count)
        room[first:count] = vectors
        return _Rows(self.stored, room, count)

    def take(self, rows: Numbers, axis: int = 0) -> Floats:
        """Return the vectors of some rows, (n,)."""
        first = len(self.stored)
        if not first:
            return self.later.take(rows, axis)
        if not len(self.later) or rows.max(initial=0) < first:
            return self.stored.take(rows, axis)
        used = np.empty((len(rows), self.stored.shape[1]), np.float32)
        is_later = rows >= first
        used[is_later] = self.later.take(rows[is_later] - first, axis)
        used[~is_later] = self.stored.take(rows[~is_later], axis)
        return used

    def whole(self) -> Floats:
        """Return all vectors, (rows, dimension)."""
        parts = [part for part in (self.stored, self.later) if len(part)] or [self.stored]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def products(self, queries: Floats) -> Floats:
        """Return the products of queries and all vectors, (queries, rows)."""
        parts = [queries @ part.T for part in (self.stored, self.later) if len(part)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


class AllowedVectors:
    """Say which vectors count in a search, for as long as no vectors are added or removed.

    What a search makes of it is held for the next one, so that a filter that comes again costs no
    more than a bitmap.

    Args:
        mask: Whether a vector counts, by row.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.few = self.count <= _MAX_COPIED
        self._selector: Any = None
        self._copied: tuple[Numbers, Floats] | None = None

    def selector(self) -> Any:
        """Return what FAISS takes."""
        if self._selector is None:
            bits = np.packbits(self.mask, bitorder="little")
            selector = _faiss().IDSelectorBitmap(bits)
            selector.bits = bits  # which it only points to
            self._selector = selector
        return self._selector

    def copied(self, vectors: _Rows) -> tuple[Numbers, Floats]:
        """Return the rows of the vectors that count, and a copy of these."""
        copied = self._copied
        if copied is None:
            rows = np.flatnonzero(self.mask)
            copied = rows, vectors.take(rows)
            if self.few:
                self._copied = copied
        return copied


class NearestVectors:
    """Store distinct unit vectors by row, and search those with the highest cosine to a query.

    Equal vectors share a row: a text that is in a corpus a hundred times would otherwise be an
    island in the graph, which a search can't leave. A score depends only on the vector and the
    query, not on the kind of search: it is computed in 64 bits and rounded to six decimals, so
    that equal vectors tie.

    Up to ``exact_up_to`` rows the search compares all of them; above it uses HNSW (Malkov and
    Yashunin, "Efficient and robust approximate nearest neighbor search using hierarchical
    navigable small world graphs", 2018), except where a filter leaves so few rows, or so many are
    requested, that comparing all is quicker. The graph takes long to build: ``linked`` builds one
    meanwhile, ``use_hnsw`` switches to it, and until then all rows are compared.

    Vectors that ``from_arrays`` restores may lie in a file, where they stay, shared by all
    processes; later ones are in memory.

    Many threads may search in parallel, also while one calls ``use_hnsw``; ``add`` must not run
    in parallel with anything.

    Args:
        dimension: Numbers in a vector.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        # The vectors, and the graph of them if there is one, set together.
        self._state: tuple[_Rows, Any] = _Rows(np.zeros((0, dimension), np.float32)), None
        self._by_hash: KeyedRows | None = None  # rows by the hash of the vector; None until needed

    def __len__(self) -> int:
        return len(self._state[0])

    @property
    def exact(self) -> bool:
        """Whether every search compares all rows."""
        return self._state[1] is None

    @property
    def wants_hnsw(self) -> bool:
        """Whether there are so many rows that a graph of them is worth building."""
        return self.exact and len(self) > exact_up_to(self.dimension)

    def vectors(self) -> Floats:
        """Return a copy of all vectors (rows, dimension)."""
        return np.array(self._state[0].whole())

    def add(self, vectors: Floats, show: bool | None = False) -> Numbers:
        """Add unit vectors (n, dimension); return the row of each, new rows in order."""
        stored, graph = self._state
        if self._by_hash is None:
            self._by_hash = KeyedRows(_hashes(stored.whole()))
        rows = np.zeros(len(vectors), np.int64)
        new: list[int] = []  # indices of the vectors that have no row yet
        new_rows: dict[int, int] = {}  # by hash
        size, keys = len(stored), _hashes(vectors)
        with_key = self._by_hash.rows(keys)
        for position, (key, existing) in enumerate(zip(keys.tolist(), with_key, strict=True)):
            row = existing[0] if existing else new_rows.setdefault(key, size + len(new))
            if row < size + len(new):
                same = stored.take(np.array([row]))[0] if row < size else vectors[new[row - size]]
                if not np.array_equal(same, vectors[position]):  # two vectors with one hash
                    row = size + len(new)
            rows[position] = row
            if row == size + len(new):
                new.append(position)
        if new:
            self._by_hash.extend(keys[new])
            if graph is None:
                self._state = stored.extended(vectors[new]), None
            else:
                _insert(graph, vectors[new], show)
                self._state = _rows_of(graph), graph
        return rows

    @staticmethod
    def build_hnsw(vectors: Floats, show: bool | None = False) -> Any:
        """Build the graph of vectors (rows, dimension), which takes long."""
        faiss = _faiss()
        graph = faiss.IndexHNSWFlat(vectors.shape[1], M, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = EF_CONSTRUCTION
        _insert(graph, vectors, show)
        return graph

    def use_hnsw(self, graph: Any) -> None:
        """Switch to a graph of the first rows, after adding the later rows to it."""
        _insert(graph, self._state[0].whole()[graph.ntotal :])
        self._state = _rows_of(graph), graph

    def select(self, rows: Numbers) -> NearestVectors:
        """Return a copy with only these rows, numbered anew in this order, without a graph."""
        selected = NearestVectors(self.dimension)
        selected._state = _Rows(self._state[0].take(rows)), None
        return selected

    def search(
        self, queries: Floats, limit: int | None, allowed: AllowedVectors | None = None
    ) -> list[tuple[Numbers, Scores]]:
        """Return, for each query, the rows with the highest cosine, and the cosines, unsorted.

        Args:
            queries: Unit vectors (queries, dimension).
            limit: How many rows at least, where there are so many; rows that tie with the last
                of them come too. None for all.
            allowed: Which rows count, None for all.
        """
        vectors, graph = self._state  # the same to the end, whatever others do
        size = count = len(vectors)
        if allowed is not None and allowed.count == size:
            allowed = None
        if allowed is not None:
            count = allowed.count
        if not count:
            return [(np.zeros(0, np.int64), np.zeros(0))] * len(queries)
        if limit is None or limit >= count:
            rows = np.arange(size) if allowed is None else np.flatnonzero(allowed.mask)
            return [(rows, cosines(vectors, rows, query)) for query in queries]
        ef_search = max(EF_SEARCH, EF_SEARCH_PER_HIT * limit) * size // count
        if graph is None or _FOLLOW_COST * ef_search > min(size, _GATHER_COST * count):
            near = _compared(vectors, queries, limit, allowed)
        else:
            near = _followed(graph, vectors, queries, limit, allowed, ef_search)
        return [(rows, cosines(vectors, rows, q)) for rows, q in zip(near, queries, strict=True)]

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the vectors.

        They are to be written before any vector is added, which may move them.
        """
        vectors, graph = self._state
        if graph is None:
            return {"vectors": vectors.whole()}
        return {"faiss": _faiss().serialize_index(graph)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> NearestVectors:
        """Restore the vectors from what ``arrays`` returned.

        Raises:
            KeyError: If an array is missing.
            ValueError: If it is no such index.
        """
        if (stored := arrays.get("vectors")) is not None:
            if stored.ndim != 2 or stored.dtype != np.float32:
                raise ValueError(f"no vectors: {stored.dtype} of shape {stored.shape}")
            vectors = cls(stored.shape[1])
            vectors._state = _Rows(stored), None
            return vectors
        faiss = _faiss()
        try:
            graph = faiss.deserialize_index(np.ascontiguousarray(arrays["faiss"], np.uint8))
        except RuntimeError as error:
            raise ValueError(f"no index of vectors: {error}") from error
        if not isinstance(graph, faiss.IndexHNSWFlat) or graph.storage.ntotal != graph.ntotal:
            raise ValueError(f"a graph of vectors is HNSW, not {type(graph).__name__}")
        if graph.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError("an index of vectors of another kind")
        vectors = cls(graph.d)
        vectors._state = _rows_of(graph), graph
        return vectors


def _compared(
    vectors: _Rows, queries: Floats, limit: int, allowed: AllowedVectors | None
) -> list[Numbers]:
    """Compare all allowed rows."""
    chosen = None
    if allowed is not None and (allowed.few or _GATHER_COST * allowed.count < len(vectors)):
        chosen, copied = allowed.copied(vectors)
        vectors = _Rows(copied)
    nearest: list[Numbers] = []
    batch = max(1, 8_000_000 // len(vectors))
    for start in range(0, len(queries), batch):
        for cosines in vectors.products(queries[start : start + batch]):
            if allowed is not None and chosen is None:
                cosines = np.where(allowed.mask, cosines, -np.inf)
            rows = _highest(cosines, limit)
            nearest.append(rows if chosen is None else chosen[rows])
    return nearest


def _highest(cosines: Floats, limit: int) -> Numbers:
    """Return where the highest cosines are, and those that may tie with the last of them."""
    width = len(cosines) // _PARTS
    if width < 2 * limit:
        return (cosines >= _last(cosines, limit) - _MARGIN).nonzero()[0]
    # The highest of each part are of different rows: so many rows have the last of these, or more.
    of_parts = cosines[: width * _PARTS].reshape(_PARTS, width).max(axis=0)
    rows = (cosines >= _last(of_parts, limit) - _MARGIN).nonzero()[0]
    part = cosines[rows]
    return rows[part >= _last(part, limit) - _MARGIN]


def _last(cosines: Floats, limit: int) -> float:
    position = len(cosines) - limit
    ordered = cosines.copy()
    ordered.partition(position)
    return float(ordered[position])


def _followed(
    graph: Any,
    vectors: _Rows,
    queries: Floats,
    limit: int,
    allowed: AllowedVectors | None,
    ef_search: int,
) -> list[Numbers]:
    """Follow the graph, also through rows that are not allowed."""
    faiss = _faiss()
    settings: dict[str, Any] = {"efSearch": ef_search}
    if allowed is not None:
        settings["sel"] = allowed.selector()
    parameters = faiss.SearchParametersHNSW(**settings)
    cosines, rows = graph.search(queries, limit + limit // 4 + 4, params=parameters)
    nearest: list[Numbers] = []
    for query, cosine, near in zip(queries, cosines, rows, strict=True):
        if near[limit - 1] < 0:  # the graph led to too few
            nearest += _compared(vectors, query[np.newaxis], limit, allowed)
        else:
            nearest.append(near[(near >= 0) & (cosine >= cosine[limit - 1] - _MARGIN)])
    return nearest


def cosines(vectors: Floats | _Rows, rows: Numbers, query: Floats) -> Scores:
    """Return the cosines of rows of unit vectors, the same for equal vectors in any row.

    Args:
        vectors: The vectors, (all rows, dimension).
        rows: Which of them, (n,).
        query: A unit vector, (dimension,).
    """
    if not len(rows):
        return np.zeros(0)
    exactly = query.astype(np.float64)
    scores: Scores = np.empty(len(rows))
    for start in range(0, len(rows), _BATCH):
        products = vectors.take(rows[start : start + _BATCH], axis=0).astype(np.float64)
        products *= exactly
        np.add.reduce(products, 1, out=scores[start : start + _BATCH])
    # Vectors of 32 bits have the length 1 to within 1e-7: none is above 1. Adding 0 makes -0 a 0.
    scores = scores.round(_DECIMALS)
    scores += 0.0
    return scores


def _insert(graph: Any, vectors: Floats, show: bool | None = False) -> None:
    batches = range(0, len(vectors), _BATCH)
    slow = show if len(batches) > 1 else False
    for start in track(batches, len(batches), "linking vectors", " batches", slow):
        graph.add(np.ascontiguousarray(vectors[start : start + _BATCH]))


def _hashes(vectors: Floats) -> Keys:
    """Return a hash of each vector (n, dimension): the sum of its words, each times a number."""
    dimension = vectors.shape[1]
    factors = np.random.default_rng(dimension).integers(0, 1 << 64, dimension, np.uint64)
    factors |= np.uint64(1)
    keys = np.empty(len(vectors), np.uint64)
    for start in range(0, len(vectors), _BATCH):
        words = np.ascontiguousarray(vectors[start : start + _BATCH]).view(np.uint32)
        keys[start : start + _BATCH] = words.astype(np.uint64) @ factors
    return keys


def _rows_of(graph: Any) -> _Rows:
    """Return the vectors of a graph, a view that lives as long as it."""
    faiss = _faiss()
    flat = faiss.downcast_index(graph.storage)
    vectors: Floats = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
    return _Rows(vectors.reshape(flat.ntotal, flat.d))


def _faiss() -> Any:
    """Import the module at first use; its stubs are incomplete, hence Any."""
    import faiss

    return faiss


def unit(vectors: npt.ArrayLike) -> Floats:
    """Return vectors (n, dimension) of length 1, as float32; those of zeros stay."""
    exactly = np.asarray(vectors, np.float64)
    lengths: Any = np.sqrt(np.add.reduce(exactly * exactly, -1, keepdims=True))  # as norm does
    lengths[lengths == 0] = 1.0
    units: Floats = (exactly / lengths).astype(np.float32)
    return units
