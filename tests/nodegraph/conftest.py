"""What the tests of this room share."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodekin.nodegraph.memory_store
from nodekin.nodegraph import MemoryStore, NodeStore
from nodekin.nodegraph.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "file"])
def every_store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Run a test twice: with graphs in memory, and with graphs that are kept in files."""
    made: list[NodeStore] = []
    numbers = itertools.count()

    def keep_in_file() -> NodeStore:
        made.append(SQLiteStore(tmp_path / f"{next(numbers)}.nodekin"))
        return made[-1]

    make = MemoryStore if request.param == "memory" else keep_in_file
    monkeypatch.setattr(nodekin.nodegraph.memory_store, "MemoryStore", make)
    yield request.param
    for store in made:
        store.close()
