"""Build a neighbor graph in steps, with a progress bar or in a background thread."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable
from hashlib import blake2b
from importlib import import_module

import numpy as np

from ...nodegraph.concurrency import ProgressBar, is_reading_graph
from .nearest_vectors import Floats, Hnsw, empty_hnsw
from .node_table import NodeTable

logger = logging.getLogger(__name__)

# Vectors per step. With small steps, a background thread can stop soon. Large steps use all cores.
_SMALL_STEP = 256

_LARGE_STEP = 4_096

_LONGEST_STOP = 5.0  # seconds for which the process waits for a thread at its end

_running: weakref.WeakSet[BackgroundBuild] = weakref.WeakSet()


class HnswBuilder:
    """The construction of a neighbor graph in steps.

    Args:
        vectors: Unit vectors, (rows, dimension). They must not change.
    """

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._graph = empty_hnsw(vectors.shape[1])
        self._known: dict[bytes, int] = {}  # the number of each distinct vector by its hash
        self._numbers: list[int] = []

    @property
    def missing(self) -> int:
        """The number of vectors that are not in the graph yet."""
        return len(self._vectors) - len(self._numbers)

    def step(self, size: int) -> int:
        """Add up to ``size`` vectors, and return their number."""
        first = len(self._numbers)
        part = np.ascontiguousarray(self._vectors[first : first + size])
        new: list[int] = []
        for row, vector in enumerate(part):
            key = blake2b(vector.data, digest_size=16).digest()
            number = self._known.setdefault(key, len(self._known))
            if number == self._graph.ntotal + len(new):
                new.append(row)
            self._numbers.append(number)
        if new:
            self._graph.add(part[new])
        return len(part)

    def run(self, label: str, show: bool | None = False) -> Hnsw:
        """Add all missing vectors, and draw a progress bar. This may take minutes."""
        with ProgressBar(" vectors", show) as bar:
            bar.start(self.missing, label)
            while self.missing:
                bar.advance(self.step(_LARGE_STEP))
        return self.hnsw()

    def hnsw(self) -> Hnsw:
        """Return the graph."""
        return Hnsw(self._graph, np.array(self._numbers, np.int64))


class BackgroundBuild:
    """A thread that builds a neighbor graph on half of the cores.

    The thread stops when the process ends. A forked process does not contain the thread.

    Args:
        vectors: Unit vectors, (rows, dimension). They must not change.
        owner: The table of the vectors.
        finish: A weak reference to a function that receives the graph and the owner in the thread.
            If the function no longer exists, the thread stops.

    Attributes:
        owner: The table of the vectors.
        has_failed: Whether an error ended the thread. The error was logged.
    """

    def __init__(
        self,
        vectors: Floats,
        owner: NodeTable,
        finish: Callable[[], Callable[[Hnsw, NodeTable], None] | None],
    ) -> None:
        self.owner = owner
        self.has_failed = False
        self._finish = finish
        self._builder: HnswBuilder | None = None
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(vectors,), daemon=True, name="nodekin-neighbors"
        )
        _running.add(self)
        self._thread.start()

    def is_alive(self) -> bool:
        """Return whether the thread is running in this process."""
        return self._thread.is_alive()

    def _run(self, vectors: Floats) -> None:
        try:
            faiss = import_module("faiss")
            faiss.omp_set_num_threads(max(1, faiss.omp_get_max_threads() // 2))  # of this thread
            builder = HnswBuilder(vectors)
            while builder.missing:
                if self._is_stopped.is_set() or self._finish() is None:
                    self._builder = builder
                    return
                builder.step(_SMALL_STEP)
            finish = self._finish()
            if finish is not None and not self._is_stopped.is_set():
                finish(builder.hnsw(), self.owner)
        except Exception as error:
            self.has_failed = True
            logger.warning("%s vectors are compared one by one: %s", len(vectors), error)

    def cancel(self) -> None:
        """Ask the thread to stop."""
        self._is_stopped.set()

    def stop(self, timeout: float | None = None) -> HnswBuilder | None:
        """Stop the thread, and return any unfinished work.

        A caller that holds the lock of a graph does not wait, since this could cause a deadlock.
        """
        self.cancel()
        if not is_reading_graph() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return self._builder


def _stop_all() -> None:
    for build in list(_running):
        build.cancel()
    for build in list(_running):
        build.stop(_LONGEST_STOP)


atexit.register(_stop_all)  # a thread inside FAISS would crash the interpreter at its end
