"""Remember the vectors of the last queries; let one of those who want the same embed it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

KEPT = 512
"""How many queries are remembered."""


@dataclass(slots=True)
class Claim:
    """Hold what is known of queries, and who embeds the others.

    Attributes:
        key: The embedding.
        known: The vectors that are there.
        mine: The queries to embed; whoever claimed them calls ``keep``, and ``release`` in the end.
        theirs: The queries that another is embedding, with what comes of it: a vector, or None
            where that failed.
    """

    key: str
    known: dict[str, Vector] = field(default_factory=dict)
    mine: list[str] = field(default_factory=list)
    theirs: dict[str, Future[Vector | None]] = field(default_factory=dict)


class QueryVectors:
    """Remember vectors by embedding and query, and what is being embedded.

    Threads wait for threads. Tasks wait for threads and for tasks of their own event loop: a
    thread that waited for a task could be the one that the task's loop runs in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._begun: dict[tuple[object, str, str], Future[Vector | None]] = {}

    def claim(self, key: str, queries: Iterable[str], loop: object = None) -> Claim:
        """Return what is known of queries, and take on those that no one is embedding.

        Args:
            key: The embedding.
            queries: The queries.
            loop: The event loop that is going to wait for others; None for a thread.
        """
        claim = Claim(key)
        with self._lock:
            for query in dict.fromkeys(queries):
                if (key, query) in self._vectors:
                    self._vectors.move_to_end((key, query))
                    claim.known[query] = self._vectors[key, query]
                    continue
                places = (None,) if loop is None else (loop, None)
                begun = [self._begun.get((place, key, query)) for place in places]
                other = next((each for each in begun if each is not None), None)
                if other is not None:
                    claim.theirs[query] = other
                    continue
                claim.mine.append(query)
                future: Future[Vector | None] = Future()
                future.set_running_or_notify_cancel()  # one who gives up waiting cancels no other
                self._begun[loop, key, query] = future
        return claim

    def known(self, key: str, queries: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors that are there."""
        with self._lock:
            wanted = dict.fromkeys(queries)
            return {q: self._vectors[key, q] for q in wanted if (key, q) in self._vectors}

    def keep(self, key: str, new: Mapping[str, Vector], loop: object = None) -> None:
        """Remember vectors, and tell those who wait for them."""
        with self._lock:
            for query, vector in new.items():
                self._vectors[key, query] = vector
            while len(self._vectors) > KEPT:
                self._vectors.popitem(last=False)
            futures = {query: self._begun.pop((loop, key, query), None) for query in new}
        for query, future in futures.items():
            if future is not None:
                future.set_result(new[query])

    def release(self, key: str, queries: Sequence[str], loop: object = None) -> None:
        """Give up queries that were taken on and are not there: whoever waits goes on alone."""
        with self._lock:
            futures = [self._begun.pop((loop, key, query), None) for query in queries]
        for future in futures:
            if future is not None:
                future.set_result(None)
