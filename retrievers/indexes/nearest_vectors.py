"""Distinct unit vectors, and the nearest of them to a query: exactly, or by a graph of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph.progress import track

Floats = npt.NDArray[np.float32]

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]

Arrays = dict[str, npt.NDArray[Any]]

# Measured on vectors of 384 numbers, two cores. Comparing all takes 9 ms for 100,000 and 16 ms for
# 200,000; the graph (HNSW) takes 1.3 ms for 100,000, and took one to two minutes to build.
EXACT = 200_000

# Neighbours a vector has in the graph, and how many are looked at to find them.
NEIGHBOURS = 16

BUILD_BREADTH = 100

# How many of the best so far a search follows, at least, and for each that is wanted. 256 find
# 0.994 to 1.0 of the best ten, on clustered vectors of 64 or 200 dimensions' worth, also where a
# filter leaves a tenth of them; 128 found 0.977, and 24 neighbours in place of 16 0.995.
BREADTH = 256

BREADTH_FOR_EACH = 4

# What following one costs, in vectors that are compared in that time; and what it costs to
# gather one from among others that a filter leaves out.
_COST = 60

_GATHERING = 4

_BATCH = 4096  # vectors that are added or scored at once

_MARGIN = 1e-5  # sums of 32-bit products in another order differ by less

_DECIMALS = 6  # what the models' 32-bit numbers are worth


class NearestVectors:
    """Hold distinct unit vectors by row, and find those with the highest cosine to a query.

    Equal vectors share a row: a text that is in a corpus a hundred times would otherwise make an
    island in the graph, which a search does not get out of. A score depends on the vector and
    the query alone, not on how it was found: it is computed in 64 bits and rounded to six
    decimals, so that what is equal ties.

    Up to ``EXACT`` rows the search compares all of them; above it uses HNSW (Malkov and Yashunin,
    "Efficient and robust approximate nearest neighbor search using hierarchical navigable small
    world graphs", 2018), except where a filter leaves so few rows, or so many are wanted, that
    comparing all is quicker. The graph takes long to build: ``linked`` makes one beside, ``take``
    goes over to it, and until then all are compared.

    Many threads may search at once, also while one calls ``take``; whoever adds is alone.

    Args:
        dimension: Numbers in a vector.
    """

    def __init__(self, dimension: int) -> None:
        faiss = _faiss()
        self.dimension = dimension
        flat = faiss.IndexFlatIP(dimension)
        # What is searched (the flat index, or the graph around one) and the flat one, together.
        self._indexes: tuple[Any, Any] = flat, flat
        self._known: dict[int, int] | None = {}  # hash of a vector to its row; None: to be made

    def __len__(self) -> int:
        return int(self._indexes[1].ntotal)

    @property
    def exact(self) -> bool:
        """Whether every search compares all rows."""
        searched, flat = self._indexes
        return searched is flat

    @property
    def wants_graph(self) -> bool:
        """Whether there are so many rows that a graph of them is worth its building."""
        return self.exact and len(self) > EXACT

    def vectors(self) -> Floats:
        """Return a copy of all vectors (rows, dimension)."""
        return _view(self._indexes[1]).copy()

    def add(self, vectors: Floats, show: bool | None = False) -> Numbers:
        """Take in unit vectors (n, dimension); return the row of each, new rows in order."""
        if self._known is None:
            self._known = {hash(v.tobytes()): row for row, v in enumerate(self.vectors())}
        rows = np.zeros(len(vectors), np.int64)
        new: list[int] = []  # places of the vectors that are not there yet
        here, size = _view(self._indexes[1]), len(self)
        for place, vector in enumerate(vectors):
            row = self._known.setdefault(hash(vector.tobytes()), size + len(new))
            if row < size + len(new):
                same = here[row] if row < size else vectors[new[row - size]]
                if not np.array_equal(same, vector):  # two vectors with one hash
                    row = size + len(new)
            rows[place] = row
            if row == size + len(new):
                new.append(place)
        _insert(self._indexes[0], vectors[new], show)
        return rows

    @staticmethod
    def linked(vectors: Floats, show: bool | None = False) -> Any:
        """Make the graph of vectors (rows, dimension), which takes long."""
        faiss = _faiss()
        graph = faiss.IndexHNSWFlat(vectors.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = BUILD_BREADTH
        _insert(graph, vectors, show)
        return graph

    def take(self, graph: Any) -> None:
        """Go over to a graph of the first rows, after adding to it those that came since."""
        _insert(graph, _view(self._indexes[1])[graph.ntotal :])
        self._indexes = graph, _faiss().downcast_index(graph.storage)

    def only(self, rows: Numbers) -> NearestVectors:
        """Return these rows alone, without a graph, numbered anew in the order given."""
        kept = NearestVectors(self.dimension)
        kept._known = None
        _insert(kept._indexes[0], _view(self._indexes[1])[rows])
        return kept

    def search(
        self, queries: Floats, wanted: int | None, allowed: Mask | None = None
    ) -> list[tuple[Numbers, Scores]]:
        """Return, for each query, the rows with the highest cosine, and the cosines, unsorted.

        Args:
            queries: Unit vectors (queries, dimension).
            wanted: How many rows at least, where there are so many; rows that tie with the last
                of them come too. None for all.
            allowed: Which rows may be found (rows,), None for all.
        """
        searched, flat = self._indexes  # kept until the end, whatever another thread takes
        vectors = _view(flat)
        if allowed is not None and bool(allowed.all()):
            allowed = None
        count = len(vectors) if allowed is None else int(allowed.sum())
        if not count:
            return [(np.zeros(0, np.int64), np.zeros(0))] * len(queries)
        if wanted is None or wanted >= count:
            rows = np.arange(len(vectors)) if allowed is None else np.flatnonzero(allowed)
            return [(rows, _scores(vectors, rows, query)) for query in queries]
        breadth = max(BREADTH, BREADTH_FOR_EACH * wanted) * len(vectors) // count
        if searched is flat or _COST * breadth > min(len(vectors), _GATHERING * count):
            near = _compared(vectors, queries, wanted, allowed)
        else:
            near = _followed(searched, vectors, queries, wanted, allowed, breadth)
        return [(rows, _scores(vectors, rows, q)) for rows, q in zip(near, queries, strict=True)]

    def arrays(self) -> Arrays:
        """Return all there is to keep, for ``from_arrays``."""
        faiss = _faiss()
        return {"faiss": faiss.serialize_index(self._indexes[0])}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> NearestVectors:
        """Return what was kept.

        Raises:
            KeyError: If something is missing.
            ValueError: If it is something else.
        """
        faiss = _faiss()
        try:
            index = faiss.deserialize_index(np.ascontiguousarray(arrays["faiss"], np.uint8))
        except RuntimeError as error:
            raise ValueError(f"no index of vectors: {error}") from error
        made = cls(index.d)
        if isinstance(index, faiss.IndexHNSWFlat):
            made._indexes = index, faiss.downcast_index(index.storage)
        elif isinstance(index, faiss.IndexFlatIP):
            made._indexes = index, index
        else:
            raise ValueError(f"an index of vectors is flat or HNSW, not {type(index).__name__}")
        if index.metric_type != faiss.METRIC_INNER_PRODUCT or len(made) != index.ntotal:
            raise ValueError("an index of vectors of another kind")
        made._known = None
        return made


def _compared(vectors: Floats, queries: Floats, wanted: int, allowed: Mask | None) -> list[Numbers]:
    """Compare all rows that are allowed."""
    chosen = None
    if allowed is not None and _GATHERING * int(allowed.sum()) < len(vectors):
        chosen = np.flatnonzero(allowed)
        vectors = vectors[chosen]
    found: list[Numbers] = []
    at_once = max(1, 8_000_000 // len(vectors))
    for begin in range(0, len(queries), at_once):
        for cosines in queries[begin : begin + at_once] @ vectors.T:
            if allowed is not None and chosen is None:
                cosines = np.where(allowed, cosines, -np.inf)
            place = len(cosines) - wanted
            last = np.partition(cosines, place)[place]
            rows = np.flatnonzero(cosines >= last - _MARGIN)
            found.append(rows if chosen is None else chosen[rows])
    return found


def _followed(
    graph: Any,
    vectors: Floats,
    queries: Floats,
    wanted: int,
    allowed: Mask | None,
    breadth: int,
) -> list[Numbers]:
    """Follow the graph; what is not allowed is passed through, not found."""
    faiss = _faiss()
    settings: dict[str, Any] = {"efSearch": breadth}
    if allowed is not None:
        bits = np.packbits(allowed, bitorder="little")
        settings["sel"] = faiss.IDSelectorBitmap(bits)
    parameters = faiss.SearchParametersHNSW(**settings)
    cosines, rows = graph.search(queries, wanted + wanted // 4 + 4, params=parameters)
    found: list[Numbers] = []
    for query, cosine, near in zip(queries, cosines, rows, strict=True):
        if near[wanted - 1] < 0:  # the graph led to fewer than there are
            found += _compared(vectors, query[np.newaxis], wanted, allowed)
        else:
            found.append(near[(near >= 0) & (cosine >= cosine[wanted - 1] - _MARGIN)])
    return found


def _scores(vectors: Floats, rows: Numbers, query: Floats) -> Scores:
    """Return the cosines of rows, the same for equal vectors wherever they are."""
    exactly = query.astype(np.float64)
    parts = [
        (vectors[rows[begin : begin + _BATCH]] * exactly).sum(axis=1)
        for begin in range(0, len(rows), _BATCH)
    ]
    # Adding 0 makes -0 a 0.
    scores: Scores = np.clip(np.round(np.concatenate(parts), _DECIMALS), -1, 1) + 0.0
    return scores


def _insert(index: Any, vectors: Floats, show: bool | None = False) -> None:
    batches = range(0, len(vectors), _BATCH)
    slow = show if isinstance(index, _faiss().IndexHNSWFlat) and len(batches) > 1 else False
    for begin in track(batches, len(batches), "linking vectors", " batches", slow):
        index.add(np.ascontiguousarray(vectors[begin : begin + _BATCH]))


def _view(flat: Any) -> Floats:
    """Return the vectors of a flat index (rows, dimension), not copied: good as long as it is."""
    if not flat.ntotal:
        return np.zeros((0, flat.d), np.float32)
    vectors: Floats = _faiss().rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
    return vectors.reshape(flat.ntotal, flat.d)


def _faiss() -> Any:
    """Return the module, loaded when it is first needed; its types say less than it has."""
    import faiss

    return faiss


def unit(vectors: npt.ArrayLike) -> Floats:
    """Return vectors (n, dimension) of length 1, as float32; those of zeros stay."""
    exactly = np.asarray(vectors, np.float64)
    lengths: Any = np.linalg.norm(exactly, axis=-1, keepdims=True)
    return np.ascontiguousarray(exactly / np.where(lengths > 0, lengths, 1.0), np.float32)
