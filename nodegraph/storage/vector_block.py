"""Blocks of vectors, and the rows in which they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .columns import check_numbers
from .database import Row

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

    Digests = npt.NDArray[np.uint8]

PLACES = 256
"""The number of places in a block, which is the maximum number of its vectors."""

BLOCK_BYTES = 98_304
"""The maximum number of bytes of the vectors in a block.

Larger blocks would save hardly any space. A single vector is read together with its whole block.
"""

DIGEST = 12
"""The number of bytes of a stored digest."""

NUMBER = 4
"""The number of bytes of a stored number."""

INSERT_BLOCK = (
    "INSERT INTO vector_blocks (key, model, count, size, digests, vectors) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
"""The statement that inserts the row of a block."""

INSERT_PLACE = (
    "INSERT INTO vector_places VALUES (?, ?, ?) "
    "ON CONFLICT (model, digest) DO UPDATE SET place = excluded.place"
)
"""The statement that inserts or replaces the place of a vector."""


class VectorBlock(NamedTuple):
    """Vectors of one model that are stored together, with the digests of their texts.

    Attributes:
        key: The database key of the block.
        model: The database key of the model.
        digests: The digests, with shape (vectors, 12).
        vectors: The vectors, with shape (vectors, dimension).
    """

    key: int
    model: int
    digests: Digests
    vectors: Vectors

    @staticmethod
    def of_row(key: int, row: Row) -> VectorBlock:
        """Read a block from a row of the database.

        Raises:
            ValueError: If a column is invalid.
        """
        import numpy as np

        model, count, size, digests, vectors = row
        check_numbers(model, count, size)
        if not 0 < count <= PLACES:
            raise ValueError(f"a block must have 1 to {PLACES} vectors, got {count}")
        if type(digests) is not bytes or type(vectors) is not bytes:
            raise TypeError("the digests and vectors of a block must be bytes")
        if not size or len(digests) != count * DIGEST or len(vectors) != count * size:
            raise ValueError(f"a block must have {count} vectors of {size} bytes")
        return VectorBlock(
            key,
            model,
            np.frombuffer(digests, np.uint8).reshape(count, DIGEST),
            np.frombuffer(vectors, "<f4").reshape(count, -1),
        )

    @property
    def row(self) -> Row:
        """The row of the block in the database."""
        count, _ = self.vectors.shape
        columns = (self.digests.tobytes(), self.vectors.astype("<f4", copy=False).tobytes())
        return (self.key, self.model, count, len(columns[1]) // count, *columns)

    @property
    def places(self) -> list[Row]:
        """The rows with the place of each vector, in the order of the digests."""
        digests = [digest.tobytes() for digest in self.digests]
        first = self.key * PLACES
        places = [(self.model, digest, place) for place, digest in enumerate(digests, first)]
        return sorted(places)


def capacity(size: int) -> int:
    """Return the maximum number of vectors in a block, given the number of bytes of a vector."""
    return max(1, min(PLACES, BLOCK_BYTES // size))


def blocks_of(
    next_key: int, model: int, digests: Digests, vectors: Vectors
) -> Iterator[VectorBlock]:
    """Divide vectors into blocks of similar size.

    Args:
        next_key: The database key of the first block.
        model: The database key of the model.
        digests: The digests, with shape (vectors, 12).
        vectors: The vectors, with shape (vectors, dimension).
    """
    import numpy as np

    number = -(-len(vectors) // capacity(vectors.shape[1] * NUMBER))
    parts = zip(np.array_split(digests, number), np.array_split(vectors, number), strict=True)
    for key, (of_digests, of_vectors) in enumerate(parts, next_key):
        yield VectorBlock(key, model, of_digests, of_vectors)
