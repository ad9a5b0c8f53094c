"""Arrays of a file: each block is compared with its checksum when it is first read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph.errors import MissingNodeError
from nodekin.retrievers.indexes.array_files import StoredArrays, load_arrays, save_arrays, stored

NUMBERS = np.arange(5_000, dtype=np.int64)  # ten blocks


def loaded(path: Path) -> StoredArrays:
    content = load_arrays(path)
    assert content is not None
    return content[1]


@pytest.fixture
def damaged(tmp_path: Path) -> StoredArrays:
    """The numbers, of which the number 4,000 is damaged."""
    path = tmp_path / "index"
    save_arrays(path, {}, {"numbers": NUMBERS})
    content = path.read_bytes()
    right = NUMBERS[4_000:4_002].tobytes()
    path.write_bytes(content.replace(right, b"\xff" + right[1:]))
    return loaded(path)


READS: list[Callable[[Any, int], object]] = [
    lambda array, place: array.item(place),
    lambda array, place: array.part(place - 2, place + 3).tolist(),
    lambda array, place: array.take(np.array([place, 0, place])).tolist(),
]


@pytest.mark.parametrize("read", READS)
def test_stored_array_refuses_damaged_block(damaged: StoredArrays, read: Any) -> None:
    array = stored(damaged, "numbers", np.int64, None)
    assert read(array, 100) == read(NUMBERS_IN_MEMORY, 100)
    assert damaged.damage.reason is None
    for _ in range(2):
        with pytest.raises(
            MissingNodeError, match="'numbers' has invalid values: its checksum differs"
        ):
            read(array, 4_010)
    assert damaged.damage.reason is not None
    assert read(array, 200) == read(NUMBERS_IN_MEMORY, 200)


def test_whole_damaged_array_is_refused(damaged: StoredArrays) -> None:
    with pytest.raises(MissingNodeError, match="its checksum differs"):
        damaged["numbers"]


NUMBERS_IN_MEMORY = stored({"numbers": NUMBERS}, "numbers", np.int64, 5_000)


@pytest.mark.parametrize("read", READS)
def test_stored_array_refuses_values_outside_range(read: Any) -> None:
    array = stored({"numbers": NUMBERS}, "numbers", np.int64, None, values=range(4_096))
    assert read(array, 100) == read(NUMBERS_IN_MEMORY, 100)
    with pytest.raises(MissingNodeError, match=r"must have values of range\(0, 4096\)"):
        read(array, 4_700)
