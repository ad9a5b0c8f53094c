"""Who may read a graph, who may change it, and which state they see."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .locks import ReadWriteLock
from .store import NodeStore

_held = threading.local()


def holding() -> bool:
    """Tell whether this thread holds a graph, any."""
    return getattr(_held, "depth", 0) > 0


class Access:
    """Let many threads read one state, or one thread write.

    All that read at a time read the same state, also where another process writes to the store
    meanwhile: indexes are brought up to date for one state, and shared. Its writes are seen once
    those who are reading have finished.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._lock = ReadWriteLock()
        self._state = -1  # what this process sees
        self.turn = threading.RLock()  # held by who changes documents, or wants none changed

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one state until the block ends."""
        while True:
            with self._lock.read(), self._store.snapshot() as state:
                if state == self._state:
                    _held.depth = getattr(_held, "depth", 0) + 1
                    try:
                        yield
                    finally:
                        _held.depth -= 1
                    return
            with self._lock.write(), self._store.snapshot() as newest:
                self._state = newest

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the store while nobody else reads or writes; all or nothing.

        Raises:
            RuntimeError: If this thread is reading.
            StoreError: If the store can't be written to.
        """
        self.check_write()
        with self._store.writing(), self._lock.write():
            try:
                with self._store.transaction():
                    yield
            finally:
                with self._store.snapshot() as state:
                    self._state = state

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Do what ``writing`` does for documents and links; wait while a reader asks for quiet.

        Builds write without: whoever keeps others from changing documents may wait for a build.
        """
        self.check_write()
        with self.turn, self.writing():
            yield

    @contextmanager
    def writing_registry(self) -> Iterator[None]:
        """Change what only this process has, while nobody reads or writes."""
        with self._lock.write():
            yield

    def check_write(self) -> None:
        """Raise what ``writing`` would if this thread is reading."""
        self._lock.check_write()
