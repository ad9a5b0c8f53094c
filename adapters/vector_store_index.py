"""Keep a vector store of some framework in step with a group of a graph, and search it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..nodegraph import Changes, Node, NodeGraph
from ..nodegraph.hashing import digest
from ..retrievers.filters import Condition
from ..retrievers.indexes import Slots, unit
from ..retrievers.results import Hits

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

_AT_ONCE = 500  # nodes that are given to the store at once

_MOST = 4_096  # nodes that the store is asked for at most

_GAPS = 1_000

_DECIMALS = 6


class VectorBackend(Protocol):
    """What a vector store has to do to be an index; each framework's adapter writes one."""

    @property
    def name(self) -> str:
        """What the log calls the store."""
        ...

    def nearest_names(self, vector: Vectors, count: int) -> list[str]:
        """Return the ids of so many nodes, the nearest to a vector; foreign ones do no harm."""
        ...

    def held(self, ids: Sequence[str]) -> dict[str, str]:
        """Return which of these nodes the store has, of an earlier time, and their marks."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes, all of which the store has."""
        ...

    def add(self, nodes: Sequence[Node], vectors: Vectors, marks: Sequence[str]) -> None:
        """Add nodes, none of which the store has; a mark tells what a vector was made of."""
        ...


class StoreIndex:
    """Be the index of a group's embeddings of one key, in a vector store.

    The store finds candidates; what is an answer is decided here. It is asked for more of them as
    long as filters or ties leave too few, and their cosines are computed from the graph's own
    vectors. Where it finds fewer than there are, all are compared, so that none is missing.

    Writes go to the store before the graph is held, so that a store that is slow keeps nobody
    from changing the graph. What fails there is all looked at again the next time.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.
        backend: The vector store.

    Raises:
        LookupError: If the graph has no such embedding.
    """

    def __init__(self, graph: NodeGraph, group: str, key: str, backend: VectorBackend) -> None:
        self._graph = graph
        self._group = group
        self._key = key
        self._backend = backend
        self._model = graph.embeddings.embedder(key).name
        self._syncing = threading.Lock()
        self._slots = Slots()
        self._held: dict[str, str] = {}  # what the store has: mark by node id
        self._known = False  # whether ``_held`` is all that the store has of this group
        self._revision = 0

    def ready(self) -> None:
        """Embed what the group lacks and bring the store up to date, before the graph is held.

        Raises:
            EmbeddingError: If the model fails.
        """
        with self._graph.reading(self._group):
            since = self._revision
            if since == self._graph.revision(self._group):
                return
            changes = self._graph.changes(self._group, since)
        self._vectors(changes.added)
        with self._syncing:  # while the graph is not held: another thread may wait for both
            if self._revision == since:
                self._take(changes)

    def sync(self) -> None:
        """Take in what has changed in the graph since."""
        if self._revision == self._graph.revision(self._group):
            return
        with self._syncing:
            if self._revision != self._graph.revision(self._group):
                self._take(self._graph.changes(self._group, self._revision))

    def search(
        self, query: Vectors, limit: int | None, conditions: Mapping[str, Condition]
    ) -> Hits:
        """Return the nodes that are nearest to a vector, ties in document order.

        Args:
            query: The query's vector (dimension,); one of zeros finds nothing.
            limit: How many; None for all.
            conditions: What their metadata must meet.
        """
        slots = self._slots
        wanted = unit(query[np.newaxis])[0]
        matching = slots.matching(conditions)
        allowed = slots.alive if matching is None else matching & slots.alive
        count = int(allowed.sum())
        if not count or not wanted.any():
            return Hits([], [])
        found: npt.NDArray[np.int64] | None = None
        if limit is not None and limit < count:
            found = self._near(wanted, limit, allowed, count)
        if found is None:
            found = np.flatnonzero(allowed)
        scores = self._cosines(found, wanted)
        ranking = np.lexsort((slots.orders[found], -scores))[:limit]
        return Hits([slots.ids[at] for at in found[ranking].tolist()], scores[ranking].tolist())

    def _near(
        self, query: Vectors, limit: int, allowed: npt.NDArray[np.bool_], count: int
    ) -> npt.NDArray[np.int64] | None:
        """Ask the store; None where all nodes that are allowed are better compared."""
        numbers = self._slots.numbers()
        asked = (limit + limit // 4 + 4) * self._slots.living // count
        while asked <= _MOST:
            ids = self._backend.nearest_names(query, asked)
            near = dict.fromkeys(numbers.get(i, -1) for i in ids)
            found = np.array([at for at in near if at >= 0 and allowed[at]], np.int64)
            exhausted = len(ids) < asked
            if len(found) >= limit:
                scores = np.sort(self._cosines(found, query))[::-1]
                # The place is settled where what comes after it scores less.
                if exhausted or scores[limit - 1] > scores[-1]:
                    return found
            if exhausted:
                logger.warning(
                    "the vector store %s gave %s of %s nodes of the group %r; all are compared "
                    "one by one instead",
                    *(self._backend.name, len(found), count, self._group),
                )
                break
            asked *= 4
        return None

    def _cosines(self, slots: npt.NDArray[np.int64], query: Vectors) -> npt.NDArray[np.float64]:
        """Return what the built-in index computes, to the last bit."""
        ids = [self._slots.ids[at] for at in slots.tolist()]
        units = unit(self._vectors(self._graph.nodes_by_id(ids)))
        exactly = (units * query.astype(np.float64)).sum(axis=1)
        scores: npt.NDArray[np.float64] = np.clip(np.round(exactly, _DECIMALS), -1, 1) + 0.0
        return scores

    def _vectors(self, nodes: Sequence[Node]) -> Vectors:
        texts = [node.text for node in nodes]
        return self._graph.embeddings.vectors(texts, self._key, what=self._group)

    # Keeping in step

    def _take(self, changes: Changes) -> None:
        """Change the store, then what is known of it."""
        try:
            self._change_store(changes)
        except BaseException:  # nobody knows what was written: ask, and do it all again
            self._revision, self._known = 0, False
            raise
        if changes.complete:
            self._slots = Slots()
        self._slots.remove(changes.removed)
        self._slots.add(changes.added)
        if len(self._slots) > 2 * self._slots.living + _GAPS:
            self._slots.compact()
        self._revision = changes.revision

    def _change_store(self, changes: Changes) -> None:
        new = {node.id: digest(self._model, node.text) for node in changes.added}
        if not self._known:
            there: dict[str, str] = {}
            for some in _batches([*self._held, *new]):
                there.update(self._backend.held(some))
            self._held = there
        gone = dict.fromkeys(self._held if changes.complete else [*changes.removed, *new])
        # Deleted before they are added again: some stores refuse, or keep, an id that is there.
        self._delete([i for i in gone if i in self._held and self._held[i] != new.get(i)])
        self._add([node for node in changes.added if node.id not in self._held], new)
        self._known = True

    def _delete(self, ids: Sequence[str]) -> None:
        for some in _batches(ids):
            self._backend.delete(some)
            for i in some:
                del self._held[i]

    def _add(self, nodes: Sequence[Node], marks: Mapping[str, str]) -> None:
        for some in _batches(nodes):
            vectors = self._vectors(some)
            self._held.update((node.id, "") for node in some)  # perhaps, if it fails
            of_some = {node.id: marks[node.id] for node in some}
            self._backend.add(some, vectors, list(of_some.values()))
            self._held.update(of_some)


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    every = list(dict.fromkeys(items))
    for begin in range(0, len(every), _AT_ONCE):
        yield every[begin : begin + _AT_ONCE]
