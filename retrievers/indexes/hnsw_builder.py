"""Build an HNSW graph step by step, either with a progress bar or in a background thread."""

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

# The numbers of vectors per step. With small steps, a background thread can be stopped quickly.
# Large steps use all processor cores.
_SMALL_STEP = 256

_LARGE_STEP = 4_096

_LONGEST_STOP = 5.0  # the time in seconds for which the process waits for a thread when it ends

_running: weakref.WeakSet[BackgroundBuild] = weakref.WeakSet()


class HnswBuilder:
    """A builder that adds vectors to an HNSW graph step by step.

    Args:
        vectors: Normalized vectors with shape (rows, dimension). They must not change.
    """

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._graph = empty_hnsw(vectors.shape[1])
        self._known: dict[bytes, int] = {}  # the number of each distinct vector, by its hash
        self._numbers: list[int] = []

    @property
    def missing(self) -> int:
        """The number of vectors that have not been added to the graph yet."""
        return len(self._vectors) - len(self._numbers)

    def step(self, size: int) -> int:
        """Add up to ``size`` vectors, and return how many were added."""
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
        """Add all missing vectors, and display a progress bar. This may take minutes."""
        with ProgressBar(" vectors", show) as bar:
            bar.start(self.missing, label)
            while self.missing:
                bar.advance(self.step(_LARGE_STEP))
        return self.hnsw()

    def hnsw(self) -> Hnsw:
        """Return the graph that was built."""
        return Hnsw(self._graph, np.array(self._numbers, np.int64))


class BackgroundBuild:
    """A background thread that builds an HNSW graph on half of the processor cores.

    The thread stops at the end of the process. It does not exist in forked processes.

    Args:
        vectors: Normalized vectors with shape (rows, dimension). They must not change.
        owner: The table that the vectors belong to.
        finish: A weak reference to a function that the thread calls with the graph and the owner.
            If the function no longer exists, the thread stops.

    Attributes:
        owner: The table that the vectors belong to.
        has_failed: Whether the thread was ended by an error, which has been logged.
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
            # Applies to this thread only.
            faiss.omp_set_num_threads(max(1, faiss.omp_get_max_threads() // 2))
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
        """Request that the thread stops."""
        self._is_stopped.set()

    def stop(self, timeout: float | None = None) -> HnswBuilder | None:
        """Stop the thread, and return its unfinished work, if any.

        If the caller holds the lock of a graph, the function does not wait for the thread, because
        this could cause a deadlock.
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
