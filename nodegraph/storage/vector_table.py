"""The database tables of vectors, which are stored in blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from typing import TYPE_CHECKING

from .columns import check_numbers, from_id, portions, reading_rows, to_id, to_ids, to_text
from .database import Row, select
from .transactions import Transactions
from .value_table import StoredValues
from .vector_block import (
    DIGEST,
    INSERT_BLOCK,
    INSERT_PLACE,
    NUMBER,
    PLACES,
    VectorBlock,
    blocks_of,
    capacity,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .vector_block import Digests, Vectors

VECTOR_KIND = "embedding "
"""The prefix of the kinds of vectors that are stored as single values, before the model's name."""

_INSERT_MODEL = "INSERT INTO vector_models (name) VALUES (?) ON CONFLICT (name) DO NOTHING"

_MODEL = "SELECT key FROM vector_models WHERE name = ?"

_OF_BLOCK = "SELECT model, count, size, digests, vectors FROM vector_blocks WHERE key = ?"

# The condition is also in the definition of the index ``vector_tail``.
_TAIL = (
    "SELECT key, count FROM vector_blocks WHERE model = ? AND size = ? "
    "AND count < 128 AND count * size < 49152"
)


class StoredVectors:
    """Reads and writes the vectors of texts in a store.

    In SQLite, the vectors that are written together form blocks. Vectors that are written one by
    one are joined as soon as they fill a block. In other databases, each vector is a value. A
    read-only store keeps new vectors in memory.

    Args:
        transactions: The manager of transactions.
        values: The table of values.
    """

    def __init__(self, transactions: Transactions, values: StoredValues) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._values = values

    @property
    def _has_values(self) -> bool:
        """True if vectors may be stored as values."""
        return not self._database.has_blocks or self._database.is_read_only

    # Reading

    def existing(self, model: str, digests: Collection[str]) -> set[str]:
        """Return the given digests for which a vector of the model is stored."""
        found: set[str] = set()
        if self._database.has_blocks:
            query = f"SELECT digest FROM vector_places WHERE model = ({_MODEL}) AND digest IN"
            rows = select(self._database, query, to_ids(digests), [to_text(model)])
            with reading_rows(self._database.place):
                found = {from_id(digest) for (digest,) in rows}
        if self._has_values:
            found |= self._values.existing(VECTOR_KIND + model, digests)
        return found

    def size(self, model: str) -> int:
        """Return the number of bytes of a model's stored vectors, or 0 if no vectors are stored."""
        if self._database.has_blocks:
            rows = self._database.rows(
                "SELECT b.size FROM vector_places p JOIN vector_blocks b ON b.key = p.place / ? "
                f"WHERE p.model = ({_MODEL}) LIMIT 1",
                [PLACES, to_text(model)],
            )
            if rows:
                with reading_rows(self._database.place):
                    check_numbers(*rows[0])
                    return int(rows[0][0])
        if self._has_values:
            for value in self._values.get(VECTOR_KIND + model, limit=1).values():
                return len(value)
        return 0

    def read(self, model: str, digests: Sequence[str]) -> Vectors | None:
        """Return vectors as a float32 array of shape (digests, dimension).

        Return None if a vector is missing.

        Args:
            model: The name of the model.
            digests: The digests of the texts. There must be at least one.

        Raises:
            StoreError: If a row is damaged.
        """
        gathered = _Gathered(len(digests))
        missing: Sequence[int] = range(len(digests))
        with reading_rows(self._database.place):
            if self._database.has_blocks:
                missing = self._read_blocks(model, digests, gathered)
            if missing and self._has_values:
                missing = self._read_values(model, digests, missing, gathered)
        return None if missing else gathered.vectors

    def _read_blocks(
        self, model: str, digests: Sequence[str], gathered: _Gathered
    ) -> Sequence[int]:
        """Read vectors from blocks, and return the positions of those that are missing."""
        import numpy as np

        with self._transactions.turn():
            key = self._model_key(model)
            if key is None:
                return range(len(digests))
            wanted = _joined(digests)
            places = self._places(key, wanted)
            missing: list[int] = np.flatnonzero(places < 0).tolist()
            if missing and not self._has_values:
                return missing
            for positions, block in self._blocks(key, places):
                rows = places[positions] % PLACES
                if not np.array_equal(block.digests[rows], wanted[positions]):
                    raise ValueError(f"block {block.key} has the vectors of other texts")
                gathered.put(positions, block.vectors[rows])
            return missing

    def _read_values(
        self, model: str, digests: Sequence[str], missing: Sequence[int], gathered: _Gathered
    ) -> Sequence[int]:
        """Read vectors that are values, and return the positions of those that are missing."""
        import numpy as np

        for positions in portions(missing):
            names = [digests[position] for position in positions]
            stored = self._values.get(VECTOR_KIND + model, names)
            if not stored.keys() >= set(names):
                return missing
            vectors = [stored[name] for name in names]
            sizes = {len(vector) for vector in vectors}
            if len(sizes) > 1 or 0 in sizes:
                raise ValueError("the vectors of one model must have one length")
            rows = np.frombuffer(b"".join(vectors), "<f4").reshape(len(names), -1)
            gathered.put(positions, rows)
        return []

    def _model_key(self, model: str) -> int | None:
        """Return the database key of a model, or None if it has no vectors in blocks."""
        for (key,) in self._database.rows(_MODEL, [to_text(model)]):
            check_numbers(key)
            return int(key)
        return None

    def _places(self, model: int, digests: Digests) -> npt.NDArray[np.int64]:
        """Return the places of vectors, or -1 for vectors that are missing."""
        import numpy as np

        query = "SELECT digest, place FROM vector_places WHERE model = ? AND digest IN"
        places: list[int] = []
        for page in portions([digest.tobytes() for digest in digests]):
            rows = select(self._database, query, page, [model])
            found: dict[bytes, int] = dict(rows)
            check_numbers(*found.values())
            places += [found.get(digest, -1) for digest in page]
        return np.array(places, np.int64)

    def _blocks(
        self, model: int, places: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], VectorBlock]]:
        """Read the blocks with the given places, and yield the positions of each block's places."""
        import numpy as np

        order = np.argsort(places, kind="stable")
        found = order[np.count_nonzero(places < 0) :]
        if len(found):
            keys = places[found] // PLACES
            for positions in np.split(found, np.flatnonzero(np.diff(keys)) + 1):
                yield positions, self._block(model, int(places[positions[0]]) // PLACES)

    def _block(self, model: int, key: int) -> VectorBlock:
        """Read a block of a model.

        Raises:
            KeyError: If the block is missing.
            ValueError: If the block is damaged or belongs to another model.
        """
        rows = self._database.rows(_OF_BLOCK, [key])
        if not rows:
            raise KeyError(f"block {key} of vectors")
        block = VectorBlock.of_row(key, rows[0])
        if block.model != model:
            raise ValueError(f"block {key} must belong to model {model}, got {block.model}")
        return block

    # Writing

    def put(self, model: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Insert or replace vectors.

        Args:
            model: The name of the model.
            digests: The digests of the texts, which must be different.
            vectors: The vectors, with shape (digests, dimension).

        Raises:
            ValueError: If the numbers of digests and vectors differ.
        """
        if len(digests) != len(vectors):
            raise ValueError(f"got {len(digests)} digests and {len(vectors)} vectors")
        if self._has_values:
            rows = vectors.astype("<f4", copy=False)
            values = {name: row.tobytes() for name, row in zip(digests, rows, strict=True)}
            self._values.put(VECTOR_KIND + model, values, derived=True)
        elif len(vectors):
            with self._transactions.transaction(), reading_rows(self._database.place):
                self._put_blocks(model, _joined(digests), vectors)

    def _put_blocks(self, model: str, digests: Digests, vectors: Vectors) -> None:
        self._database.run_many(_INSERT_MODEL, [(to_text(model),)])
        key = self._model_key(model)
        assert key is not None
        is_new = self._are_new(key, digests, vectors)
        if not is_new.all():
            digests = digests[is_new]
            vectors = vectors[is_new]
        if len(vectors):
            self._write(key, digests, vectors)
            self._join_tail(key, vectors.shape[1] * NUMBER)

    def _are_new(self, model: int, digests: Digests, vectors: Vectors) -> npt.NDArray[np.bool_]:
        """Return a boolean array: True for vectors that differ from the stored vectors.

        Without this check, storing the same vectors repeatedly would enlarge the file.
        """
        import numpy as np

        places = self._places(model, digests)
        is_new = np.ones(len(places), np.bool_)
        for positions, block in self._blocks(model, places):
            stored = block.vectors[places[positions] % PLACES]
            is_new[positions] = (stored != vectors[positions]).any(axis=1)
        return is_new

    def _write(self, model: int, digests: Digests, vectors: Vectors) -> None:
        """Write new blocks."""
        ((last,),) = self._database.rows("SELECT coalesce(max(key), 0) FROM vector_blocks")
        check_numbers(last)
        for block in blocks_of(last + 1, model, digests, vectors):
            self._database.run_many(INSERT_BLOCK, [block.row])
            self._database.run_many(INSERT_PLACE, block.places)

    def _join_tail(self, model: int, size: int) -> None:
        """Join small blocks if they contain enough vectors for a whole block.

        Each vector is therefore moved at most once. Other blocks are not changed.
        """
        tail = self._database.rows(_TAIL, [model, size])
        check_numbers(*[count for _, count in tail])
        if sum([count for _, count in tail]) >= capacity(size):
            self._rewrite(model, sorted(key for key, _ in tail))

    def _rewrite(self, model: int, keys: Sequence[int]) -> None:
        """Move the vectors of some blocks to new blocks, and delete the old blocks.

        Vectors that were deleted or replaced are left out.
        """
        import numpy as np

        digests: list[Digests] = []
        vectors: list[Vectors] = []
        for key in keys:
            block = self._block(model, key)
            places = np.arange(len(block.digests)) + key * PLACES
            is_used = self._places(model, block.digests) == places
            digests.append(block.digests[is_used])
            vectors.append(block.vectors[is_used])
            # The new block takes the space of the old blocks.
            self._database.run_many("DELETE FROM vector_blocks WHERE key = ?", [(key,)])
            count = sum([len(part) for part in digests])
            is_full = count >= capacity(block.vectors.shape[1] * NUMBER)
            if count and (is_full or key == keys[-1]):
                self._write(model, np.concatenate(digests), np.concatenate(vectors))
                digests = []
                vectors = []

    # Deleting

    def delete(self, model: str, digests: Collection[str]) -> None:
        """Delete vectors of a model. Their space is freed by ``delete_unused``."""
        if self._has_values:
            self._values.delete(VECTOR_KIND + model, digests)
            return
        with self._transactions.transaction(), reading_rows(self._database.place):
            key = self._model_key(model)
            if key is not None:
                self._database.run_many(
                    "DELETE FROM vector_places WHERE model = ? AND digest = ?",
                    [(key, to_id(digest)) for digest in digests],
                )

    def delete_unused(self, model: str, used: Set[str]) -> None:
        """Delete the vectors of other texts, and rewrite blocks that have become small.

        Args:
            model: The name of the model.
            used: The digests of the texts whose vectors are kept.
        """
        if self._has_values:
            self.delete(model, self._values.keys(VECTOR_KIND + model) - used)
            return
        with self._transactions.transaction(), reading_rows(self._database.place):
            key = self._model_key(model)
            if key is not None:
                query = "SELECT digest FROM vector_places WHERE model = ?"
                stored = self._database.rows(query, [key])
                self.delete(model, {from_id(digest) for (digest,) in stored} - used)
                self._compact(key)

    def _compact(self, model: int) -> None:
        """Delete empty blocks, and join blocks that have few vectors or lost a quarter of them."""
        query = "SELECT place / ?, count(*) FROM vector_places WHERE model = ? GROUP BY 1"
        counts = self._database.rows(query, [PLACES, model])
        used: dict[int, int] = dict(counts)
        blocks = self._database.rows(
            "SELECT key, size, count FROM vector_blocks WHERE model = ? ORDER BY size, key", [model]
        )
        sparse: dict[int, list[int]] = {}
        empty: list[Row] = []
        for key, size, count in blocks:
            check_numbers(key, size, count)
            left = used.get(key, 0)
            if not left:
                empty.append((key,))
            elif 4 * left < 3 * count or count < capacity(size) // 2:
                sparse.setdefault(size, []).append(key)
        self._database.run_many("DELETE FROM vector_blocks WHERE key = ?", empty)
        for keys in sparse.values():
            self._rewrite(model, keys)


class _Gathered:
    """An array of vectors that is filled in parts.

    Args:
        count: The number of vectors.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.vectors: Vectors | None = None

    def put(self, positions: Sequence[int] | npt.NDArray[np.int64], rows: Vectors) -> None:
        """Copy vectors to some positions of the array.

        Raises:
            ValueError: If the dimension differs from the dimension of earlier vectors.
        """
        import numpy as np

        if self.vectors is None:
            self.vectors = np.empty((self._count, rows.shape[1]), np.float32)
        if rows.shape[1] != self.vectors.shape[1]:
            raise ValueError("the vectors of one model must have one length")
        self.vectors[positions] = rows


def _joined(digests: Sequence[str]) -> Digests:
    """Return digests as an array of bytes, with shape (digests, 12)."""
    import numpy as np

    return np.frombuffer(bytes.fromhex("".join(digests)), np.uint8).reshape(-1, DIGEST)
