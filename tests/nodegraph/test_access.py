"""Which state of a store a thread sees."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, MemoryStore, NodeStore
from nodekin.nodegraph.locking import Access
from nodekin.nodegraph.sqlite import SQLiteStore


class Counting:
    """A store that counts how often a state of it is looked at."""

    def __init__(self, store: NodeStore) -> None:
        self.store = store
        self.snapshots = 0

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        self.snapshots += 1
        with self.store.snapshot() as state:
            yield state

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)


def write_and_fail(access: Access, store: NodeStore) -> None:
    with access.changing():
        store.change_documents([Document("milk", id="milk")])
        raise KeyError("undone")


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_a_thread_wrote_is_the_state_that_is_read(kind: str, tmp_path: Path) -> None:
    inner = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "graph")
    store = Counting(inner)
    access = Access(store)  # type: ignore[arg-type]
    with access.reading():
        assert list(inner.document_ids()) == []
    for text in ("tea", "water"):
        with access.changing():
            inner.change_documents([Document(text, id=text)])
        store.snapshots = 0
        with access.reading():
            assert list(inner.document_ids())[-1] == text
        # No need to keep all others out, as for what another process has written.
        assert store.snapshots == 1
    with pytest.raises(KeyError, match="undone"):
        write_and_fail(access, inner)
    store.snapshots = 0
    with access.reading():
        assert list(inner.document_ids()) == ["tea", "water"]
    assert store.snapshots == 1
    inner.close()
