"""Distinct unit vectors, and the nearest of them to a query: exactly, or by a graph of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..nodegraph.progress import track

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]

# Measured on vectors of 384 numbers, two cores. Comparing all takes 3 ms for 50,000 and 8 ms for
# 100,000; the graph (HNSW) takes 1.3 ms for those, and a minute to build.
EXACT = 50_000
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
    comparing all is quicker. Below half of ``EXACT`` the graph is given up again (``settle``).

    Args:
        dimension: Numbers in a vector.
    """

    def __init__(self, dimension: int) -> None:
        faiss = _faiss()
        self.dimension = dimension
        self._index: Any = faiss.IndexFlatIP(dimension)  # or IndexHNSWFlat, around a flat one
        self._flat: Any = self._index
        self._known: dict[int, int] | None = {}  # hash of a vector to its row; None: to be made

    def __len__(self) -> int:
        return int(self._flat.ntotal)

    @property
    def exact(self) -> bool:
        """Whether every search compares all rows."""
        return self._index is self._flat

    @property
    def _vectors(self) -> Floats:
        """All vectors (rows, dimension), not copied; good until the next are added."""
        faiss = _faiss()
        if not len(self):
            return np.zeros((0, self.dimension), np.float32)
        view = faiss.rev_swig_ptr(self._flat.get_xb(), len(self) * self.dimension)
        vectors: Floats = view.reshape(len(self), self.dimension)
        return vectors

    def add(self, vectors: Floats, show: bool | None = False) -> Numbers:
        """Take in unit vectors (n, dimension); return the row of each, new rows in order."""
        if self._known is None:
            self._known = {hash(v.tobytes()): row for row, v in enumerate(self._vectors)}
        rows = np.zeros(len(vectors), np.int64)
        new: list[int] = []  # places of the vectors that are not there yet
        here, size = self._vectors, len(self)
        for place, vector in enumerate(vectors):
            row = self._known.setdefault(hash(vector.tobytes()), size + len(new))
            if row < size + len(new):
                same = here[row] if row < size else vectors[new[row - size]]
                if not np.array_equal(same, vector):  # two vectors with one hash
                    row = size + len(new)
            rows[place] = row
            if row == size + len(new):
                new.append(place)
        self._insert(vectors[new], show)
        return rows

    def settle(self, show: bool | None = False) -> None:
        """Go over to the graph when there are many rows, back when there are few."""
        faiss = _faiss()
        if self.exact and len(self) > EXACT:
            vectors = self._vectors
            graph = faiss.IndexHNSWFlat(self.dimension, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
            graph.hnsw.efConstruction = BUILD_BREADTH
            self._index, flat = graph, self._flat
            self._flat = faiss.downcast_index(graph.storage)
            self._insert(vectors, show)
            del vectors, flat  # the vectors are a view of the old index
        elif not self.exact and len(self) < EXACT // 2:
            vectors = self._vectors.copy()
            self._index = self._flat = faiss.IndexFlatIP(self.dimension)
            self._insert(vectors, False)

    def only(self, rows: Numbers, show: bool | None = False) -> NearestVectors:
        """Return these rows alone, numbered anew in the order given."""
        kept = NearestVectors(self.dimension)
        kept._known = None
        kept._insert(self._vectors[rows], False)
        kept.settle(show)
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
        if allowed is not None and bool(allowed.all()):
            allowed = None
        count = len(self) if allowed is None else int(allowed.sum())
        if not count:
            return [(np.zeros(0, np.int64), np.zeros(0))] * len(queries)
        if wanted is None or wanted >= count:
            rows = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
            return [(rows, self._scores(rows, query)) for query in queries]
        breadth = max(BREADTH, BREADTH_FOR_EACH * wanted) * len(self) // count
        if self.exact or _COST * breadth > min(len(self), _GATHERING * count):
            near = self._compared(queries, wanted, allowed)
        else:
            near = self._followed(queries, wanted, allowed, breadth)
        return [(rows, self._scores(rows, q)) for rows, q in zip(near, queries, strict=True)]

    def _compared(self, queries: Floats, wanted: int, allowed: Mask | None) -> list[Numbers]:
        """Compare all rows that are allowed."""
        vectors = self._vectors
        chosen = None
        if allowed is not None and _GATHERING * int(allowed.sum()) < len(self):
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
        self, queries: Floats, wanted: int, allowed: Mask | None, breadth: int
    ) -> list[Numbers]:
        """Follow the graph; what is not allowed is passed through, not found."""
        faiss = _faiss()
        settings: dict[str, Any] = {"efSearch": breadth}
        if allowed is not None:
            bits = np.packbits(allowed, bitorder="little")
            settings["sel"] = faiss.IDSelectorBitmap(bits)
        parameters = faiss.SearchParametersHNSW(**settings)
        cosines, rows = self._index.search(queries, wanted + wanted // 4 + 4, params=parameters)
        found: list[Numbers] = []
        for query, cosine, near in zip(queries, cosines, rows, strict=True):
            if near[wanted - 1] < 0:  # the graph led to fewer than there are
                found += self._compared(query[np.newaxis], wanted, allowed)
            else:
                found.append(near[(near >= 0) & (cosine >= cosine[wanted - 1] - _MARGIN)])
        return found

    def _scores(self, rows: Numbers, query: Floats) -> Scores:
        """Return the cosines of rows, the same for equal vectors wherever they are."""
        exactly, vectors = query.astype(np.float64), self._vectors
        parts = [
            (vectors[rows[begin : begin + _BATCH]] * exactly).sum(axis=1)
            for begin in range(0, len(rows), _BATCH)
        ]
        # Adding 0 makes -0 a 0.
        return np.clip(np.round(np.concatenate(parts), _DECIMALS), -1, 1) + 0.0

    def _insert(self, vectors: Floats, show: bool | None) -> None:
        batches = range(0, len(vectors), _BATCH)
        slow = show if not self.exact and len(batches) > 1 else False
        for begin in track(batches, len(batches), "linking vectors", " batches", slow):
            self._index.add(np.ascontiguousarray(vectors[begin : begin + _BATCH]))

    def arrays(self) -> Arrays:
        """Return all there is to keep, for ``from_arrays``."""
        faiss = _faiss()
        return {"faiss": faiss.serialize_index(self._index)}

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
            made._index, made._flat = index, faiss.downcast_index(index.storage)
        elif isinstance(index, faiss.IndexFlatIP):
            made._index = made._flat = index
        else:
            raise ValueError(f"an index of vectors is flat or HNSW, not {type(index).__name__}")
        if index.metric_type != faiss.METRIC_INNER_PRODUCT or made._flat.ntotal != index.ntotal:
            raise ValueError("an index of vectors of another kind")
        made._known = None
        return made


def _faiss() -> Any:
    """Return the module, loaded when it is first needed; its types say less than it has."""
    import faiss

    return faiss


def unit(vectors: npt.ArrayLike) -> Floats:
    """Return vectors (n, dimension) of length 1, as float32; those of zeros stay."""
    exactly = np.asarray(vectors, np.float64)
    lengths: Any = np.linalg.norm(exactly, axis=-1, keepdims=True)
    return np.ascontiguousarray(exactly / np.where(lengths > 0, lengths, 1.0), np.float32)
