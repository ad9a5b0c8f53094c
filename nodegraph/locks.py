"""A lock that many readers or one writer hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """Let many threads read at once, or one write; a waiting writer goes before new readers.

    Reading again while reading is allowed. Writing while the same thread reads would wait for
    itself, so it is an error.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writing = False
        self._waiting = 0
        self._mine = threading.local()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        self.acquire_read()
        try:
            yield
        finally:
            self.release_read()

    def acquire_read(self) -> None:
        """Wait for writers, then keep them out until ``release_read``."""
        depth = getattr(self._mine, "depth", 0)
        if depth == 0:
            with self._condition:
                self._condition.wait_for(lambda: not self._writing and not self._waiting)
                self._readers += 1
        self._mine.depth = depth + 1

    def release_read(self) -> None:
        """Undo one ``acquire_read`` of this thread."""
        self._mine.depth -= 1
        if self._mine.depth == 0:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            RuntimeError: If this thread is reading.
        """
        self.check_write()
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._writing and not self._readers)
                self._writing = True
            finally:
                self._waiting -= 1
                if not self._writing:  # interrupted: let those pass who waited for this one
                    self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()

    def check_write(self) -> None:
        """Raise what ``write`` would.

        Raises:
            RuntimeError: If this thread is reading.
        """
        if getattr(self._mine, "depth", 0):
            raise RuntimeError(
                "the graph can't be changed, nor a group built, from inside a retrieval of the "
                "same graph; build the group before (graph.build(name)), or change the graph "
                "after the retrieval has returned"
            )
