"""Blocks of vectors and their rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.storage.vector_block import (
    BLOCK_BYTES,
    PLACES,
    VectorBlock,
    blocks_of,
    capacity,
)

COUNTS = st.integers(1, 600)

DIMENSIONS = st.sampled_from([1, 2, 64, 384, 1_536, 9_000, 30_000])


def some(count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    digests = rng.integers(0, 256, (count, 12)).astype(np.uint8)
    return digests, np.repeat(np.arange(count, dtype=np.float32)[:, None], dimension, axis=1)


@given(COUNTS, DIMENSIONS)
def test_blocks_contain_all_vectors_in_order(count: int, dimension: int) -> None:
    count = min(count, 600_000 // dimension + 1)
    digests, vectors = some(count, dimension)
    blocks = [*blocks_of(7, 3, digests, vectors)]
    assert [block.key for block in blocks] == [*range(7, 7 + len(blocks))]
    assert np.array_equal(np.concatenate([block.digests for block in blocks]), digests)
    assert np.array_equal(np.concatenate([block.vectors for block in blocks]), vectors)
    sizes = [len(block.vectors) for block in blocks]
    assert max(sizes) <= capacity(4 * dimension)
    assert max(sizes) - min(sizes) <= 1


@given(DIMENSIONS)
def test_row_restores_the_block(dimension: int) -> None:
    block = VectorBlock(5, 2, *some(3, dimension))
    key, *row = block.row
    again = VectorBlock.of_row(key, tuple(row))
    assert (again.key, again.model) == (5, 2)
    assert np.array_equal(again.digests, block.digests)
    assert np.array_equal(again.vectors, block.vectors)
    places = {digest: place for _, digest, place in block.places}
    expected = range(5 * PLACES, 5 * PLACES + 3)
    assert [places[digest.tobytes()] for digest in block.digests] == [*expected]


@pytest.mark.parametrize(
    ("size", "count"), [(8, PLACES), (1_536, 64), (4_096, 24), (BLOCK_BYTES, 1), (10**6, 1)]
)
def test_capacity_is_limited_by_places_and_bytes(size: int, count: int) -> None:
    assert capacity(size) == count


@pytest.mark.parametrize(
    "row",
    [
        (1, 0, 8, b"", b""),
        (1, 257, 8, bytes(257 * 12), bytes(257 * 8)),
        (1, 1, 8, bytes(11), bytes(8)),
        (1, 1, 8, bytes(12), bytes(7)),
        (1, 1, 7, bytes(12), bytes(7)),
        (1, 1, 0, bytes(12), b""),
        (1, 1, 8, "x" * 12, bytes(8)),
        (1, 1, 8, bytes(12), "x" * 8),
        (-1, 1, 8, bytes(12), bytes(8)),
        (1, None, 8, bytes(12), bytes(8)),
    ],
)
def test_damaged_row_raises(row: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        VectorBlock.of_row(1, row)
