"""Vectors of texts, which are stored in blocks."""

import pickle
import random
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stress import amount

from nodekin.nodegraph import StoreError
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.storage.graph_store import GraphStore, as_store
from nodekin.nodegraph.storage.vector_block import BLOCK_BYTES

DIMENSION = 384

WHOLE = BLOCK_BYTES // (4 * DIMENSION)  # the number of vectors in a whole block


def names(*numbers: int) -> list[str]:
    return [digest(str(number)) for number in numbers]


def vectors(*numbers: float, dimension: int = DIMENSION) -> Any:
    return np.array([np.arange(dimension) + number for number in numbers], np.float32)


def put(store: GraphStore, numbers: Sequence[int], dimension: int = DIMENSION) -> None:
    store.vectors.put("model", names(*numbers), vectors(*numbers, dimension=dimension))


def read(store: GraphStore, *numbers: int) -> list[float] | None:
    """Return the first number of each vector, or None if a vector is missing."""
    found = store.vectors.read("model", names(*numbers))
    return None if found is None else found[:, 0].tolist()


def blocks(store: GraphStore) -> dict[int, int]:
    """Return the number of vectors in each block, keyed by database key."""
    return dict(store.database.rows("SELECT key, count FROM vector_blocks"))


def test_vectors_are_read_in_the_given_order(store: GraphStore) -> None:
    put(store, range(300))
    put(store, [300])
    assert read(store, 300, 7, 299, 7, 0, 64) == [300, 7, 299, 7, 0, 64]
    assert read(store, 3, 301) is None
    assert store.vectors.existing("model", names(3, 301)) == {*names(3)}
    assert store.vectors.read("other", names(3)) is None
    assert store.vectors.existing("other", names(3)) == set()
    found = store.vectors.read("model", names(5))
    assert found is not None
    assert np.array_equal(found, vectors(5))
    assert (store.vectors.size("model"), store.vectors.size("other")) == (4 * DIMENSION, 0)


@pytest.mark.parametrize("dimension", [2, DIMENSION, 9_000, 30_000])
def test_random_changes_keep_right_vectors(store: GraphStore, dimension: int) -> None:
    rng = random.Random(1)
    right: dict[int, float] = {}
    for _ in range(60):
        some = rng.sample(range(400), rng.choice([1, 1, 3, 20, 90 if dimension < 9_000 else 5]))
        change = rng.choice(["put", "put", "put", "replace", "delete", "compact"])
        if change == "put":
            put(store, some, dimension)
            right |= {number: number for number in some}
        elif change == "replace":
            values = [number + 0.5 for number in some]
            store.vectors.put("model", names(*some), vectors(*values, dimension=dimension))
            right |= dict(zip(some, values, strict=True))
        elif change == "delete":
            store.vectors.delete("model", names(*some))
            right = {number: value for number, value in right.items() if number not in some}
        else:
            right = {number: value for number, value in right.items() if number not in some}
            store.vectors.delete_unused("model", {*names(*right)})
        numbers = rng.sample(sorted(right), len(right))
        assert not right or read(store, *numbers) == [right[number] for number in numbers]
        assert store.vectors.existing("model", names(*range(400))) == {*names(*right)}
    store.vectors.delete_unused("model", set())
    assert store.vectors.existing("model", names(*range(400))) == set()
    assert store.vectors.size("model") == 0


def test_added_vector_changes_no_block() -> None:
    store = as_store(None)
    put(store, range(10 * WHOLE))
    before = blocks(store)
    assert [*before.values()] == [WHOLE] * 10
    for number in range(WHOLE - 1):
        put(store, [1_000 + number])
        single = dict.fromkeys(range(11, 12 + number), 1)
        assert blocks(store) == before | single
    put(store, [2_000])  # fills a block
    assert blocks(store) == before | {11: WHOLE}
    assert read(store, 0, 1_000, 1_010, 2_000) == [0, 1_000, 1_010, 2_000]


@pytest.mark.parametrize("dimension", [2, 16, DIMENSION, 1_024, 9_000, 30_000])
def test_joined_blocks_are_not_joined_again(dimension: int) -> None:
    store = as_store(None)
    whole = max(1, min(256, BLOCK_BYTES // (4 * dimension)))
    for number in range(3 * whole):
        put(store, [number], dimension)
    assert [*blocks(store).values()] == [whole] * 3


def test_file_is_hardly_larger_than_its_vectors(tmp_path: Path) -> None:
    store = as_store(tmp_path / "g")
    store.close()
    before = (tmp_path / "g").stat().st_size
    rng = random.Random(1)
    numbers = rng.sample(range(8_000), 8_000)
    for start in range(0, 8_000, 64):
        put(store, numbers[start : start + 64])
    store.close()
    size = (tmp_path / "g").stat().st_size - before
    assert size < 1.05 * 8_000 * 4 * DIMENSION


def test_repeated_vectors_are_stored_once() -> None:
    store = as_store(None)
    for _ in range(3):
        put(store, range(100))
        put(store, [5])
    assert sum(blocks(store).values()) == 100


def test_vectors_without_digests_are_not_stored() -> None:
    store = as_store(None)
    put(store, range(3))
    with pytest.raises(ValueError, match="got 1 digests and 2 vectors"):
        store.vectors.put("model", names(3), vectors(3, 4))
    assert read(store, 0, 1, 2) == [0, 1, 2]
    assert sum(blocks(store).values()) == 3


def test_unused_vectors_free_their_space() -> None:
    store = as_store(None)
    put(store, range(10 * WHOLE))
    put(store, [5_000])
    put(store, range(6_000, 6_000 + WHOLE // 2))
    used = [*range(WHOLE), *range(WHOLE, 10 * WHOLE, 4), 5_000]
    store.vectors.delete_unused("model", {*names(*used)})
    assert blocks(store)[1] == WHOLE  # unchanged
    assert sum(blocks(store).values()) == len(used)
    assert len(blocks(store)) <= len(used) // WHOLE + 2
    assert read(store, *used) == used


def test_pickled_store_keeps_vectors() -> None:
    store = as_store(None)
    put(store, range(100))
    again = pickle.loads(pickle.dumps(store))
    assert read(again, 99, 3) == [99, 3]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM vector_blocks",
        "UPDATE vector_blocks SET vectors = X'00'",
        "UPDATE vector_blocks SET vectors = 'x'",
        "UPDATE vector_blocks SET digests = zeroblob(length(digests))",
        "UPDATE vector_blocks SET count = count - 1",
        "UPDATE vector_blocks SET count = 'x'",
        "UPDATE vector_blocks SET size = 0",
        "UPDATE vector_blocks SET size = 8, vectors = zeroblob(8 * count) WHERE key = 1",
        "UPDATE vector_blocks SET model = 7",
        "UPDATE vector_places SET place = place + 1",
        "UPDATE vector_places SET place = place + 200",
        "UPDATE vector_places SET place = -5",
        "UPDATE vector_places SET place = 'x'",
    ],
)
def test_damaged_block_raises_store_error(tmp_path: Path, damage: str) -> None:
    with closing(as_store(tmp_path / "g")) as store:
        put(store, range(100))
        store.vectors.put("other", names(1), vectors(1))
    with closing(sqlite3.connect(tmp_path / "g")) as db:
        db.execute(damage)
        db.commit()
    with (
        pytest.raises(StoreError, match="restore a backup"),
        closing(as_store(tmp_path / "g")) as store,
    ):
        read(store, *range(100))


_WRITER = """
import sys
import numpy as np
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.storage.graph_store import as_store

path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = as_store(path)
for start in range(first, 2_000, 2 * step):
    numbers = [*range(start, min(start + step, 2_000))]
    names = [digest(str(number)) for number in numbers]
    rows = np.array([np.arange(384) + number for number in numbers], np.float32)
    store.vectors.put("model", names, rows)
    found = store.vectors.read("model", names)
    assert found[:, 0].tolist() == numbers
    if start % 7 == 0:
        store.vectors.delete_unused("model", {digest(str(number)) for number in range(2_000)})
"""


def test_processes_share_blocks(tmp_path: Path) -> None:
    store = as_store(tmp_path / "g")
    step = 5
    commands = [
        [sys.executable, "-c", _WRITER, str(tmp_path / "g"), str(first), str(step)]
        for first in (0, step)
    ]
    writers = [subprocess.Popen(command) for command in commands]
    while any(writer.poll() is None for writer in writers):
        existing = store.vectors.existing("model", names(*range(2_000)))
        numbers = [number for number in range(2_000) if digest(str(number)) in existing]
        assert not numbers or read(store, *numbers) == numbers
    assert [writer.returncode for writer in writers] == [0, 0]
    assert read(store, *range(2_000)) == [*range(2_000)]
    whole = [count for count in blocks(store).values() if count >= WHOLE // 2]
    assert sum(whole) > 2_000 - WHOLE
    store.close()


_KILLED = """
import sys
import numpy as np
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.storage.graph_store import as_store

store = as_store(sys.argv[1])
for number in range(100_000):
    row = np.array([np.arange(9_000) + number], np.float32)
    store.vectors.put("model", [digest(str(number))], row)
    print(number, flush=True)
"""


def test_killed_process_loses_no_vector(tmp_path: Path) -> None:
    for number in range(amount(4, 100)):
        path = tmp_path / f"g{number}"
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 20 + number % 10:
                process.kill()
                break
        written = [int(line), *[int(line) for line in process.stdout if line.endswith("\n")]]
        process.stdout.close()
        process.wait()
        with closing(as_store(path)) as store:
            numbers = [*range(max(written) + 1)]
            assert read(store, *numbers) == numbers
