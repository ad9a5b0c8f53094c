"""Keep a LlamaIndex vector store in step with a group of a graph, and search it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import NodeRelationship, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from ...nodegraph import Changes, Node, NodeGraph
from ...nodegraph.document import digest
from ...retrievers import Hits
from ...retrievers.filters import Condition
from ...retrievers.nearest_vectors import unit
from ...retrievers.slots import Slots
from .nodes import GROUP, related

logger = logging.getLogger(__name__)

_AT_ONCE = 500  # nodes that are given to the store at once
_MOST = 4_096  # nodes that the store is asked for at most
_GAPS = 1_000
_DECIMALS = 6
_VECTOR = "nodekin_vector"  # hash of the model and the text that a stored vector was made of


class StoreIndex:
    """Keep a vector store in step with one group of a graph, and search it.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.
        store: The vector store.

    Raises:
        LookupError: If the graph has no such embedding.
    """

    def __init__(
        self, graph: NodeGraph, group: str, key: str, store: BasePydanticVectorStore
    ) -> None:
        self._graph = graph
        self._group = group
        self._key = key
        self._store = store
        self._model = graph.embeddings.embedder(key).name
        self._syncing = threading.Lock()
        self._slots = Slots()
        self._held: dict[str, str] = {}  # what the store has: hash of model and text by node id
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
        self,
        query: npt.NDArray[np.float32],
        limit: int | None,
        conditions: Mapping[str, Condition],
    ) -> Hits:
        """Return the nodes that are nearest to a vector, ties in document order."""
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
        self, query: npt.NDArray[np.float32], limit: int, allowed: npt.NDArray[np.bool_], count: int
    ) -> npt.NDArray[np.int64] | None:
        """Ask the store; None where all nodes that are allowed are better compared."""
        numbers = self._slots.numbers()
        asked = (limit + limit // 4 + 4) * self._slots.living // count
        while asked <= _MOST:
            ids = self._asked(query, asked)
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
                    *(type(self._store).__name__, len(found), count, self._group),
                )
                break
            asked *= 4
        return None

    def _asked(self, query: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids that the store finds nearest."""
        wanted = VectorStoreQuery(query_embedding=query.tolist(), similarity_top_k=count)
        found = self._store.query(wanted)
        if found.ids is not None:
            return list(found.ids)
        return [node.node_id for node in found.nodes or ()]

    def _cosines(
        self, slots: npt.NDArray[np.int64], query: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        ids = [self._slots.ids[at] for at in slots.tolist()]
        units = unit(self._vectors(self._graph.nodes_by_id(ids)))
        exactly = (units * query.astype(np.float64)).sum(axis=1)
        scores: npt.NDArray[np.float64] = np.clip(np.round(exactly, _DECIMALS), -1, 1) + 0.0
        return scores

    def _vectors(self, nodes: Sequence[Node]) -> Any:
        texts = [node.text for node in nodes]
        return self._graph.embeddings.vectors(texts, self._key, what=self._group)

    # Keeping in step

    def _take(self, changes: Changes) -> None:
        """Change the store, then what is known of it; what fails is all done again next time."""
        try:
            self._change_store(changes)
        except BaseException:
            self._revision, self._known = 0, False
            raise
        if changes.complete or not self._revision:
            self._slots = Slots()
        self._slots.remove(changes.removed)
        self._slots.add(changes.added)
        if len(self._slots) > 2 * self._slots.living + _GAPS:
            self._slots.compact()
        self._revision = changes.revision

    def _change_store(self, changes: Changes) -> None:
        new = {node.id: digest(self._model, node.text) for node in changes.added}
        if not self._known:
            self._held.update(self._there(list(new)))
        gone = dict.fromkeys(self._held if changes.complete else [*changes.removed, *new])
        # Deleted before they are added again: some stores keep the old of an id that is there.
        self._delete([i for i in gone if i in self._held and self._held[i] != new.get(i)])
        self._add([node for node in changes.added if node.id not in self._held])
        self._known = True

    def _there(self, ids: Sequence[str]) -> dict[str, str]:
        """Ask the store what it has of these nodes, from an earlier time."""
        found: dict[str, str] = {}
        try:
            for some in _batches(ids):
                for node in self._store.get_nodes(node_ids=list(some)):
                    found[node.node_id] = str(node.metadata.get(_VECTOR, ""))
        except NotImplementedError:  # it may have any of them, in any form
            return dict.fromkeys(ids, "")
        return found

    def _delete(self, ids: Sequence[str]) -> None:
        for some in _batches(ids):
            if self._deletes_nodes:
                self._store.delete_nodes(node_ids=list(some))
            else:
                for i in some:
                    self._store.delete(i)
            for i in some:
                del self._held[i]

    @property
    def _deletes_nodes(self) -> bool:
        return type(self._store).delete_nodes is not BasePydanticVectorStore.delete_nodes

    def _add(self, nodes: Collection[Node]) -> None:
        for some in _batches(nodes):
            vectors = self._vectors(some).tolist()
            made = [self._stored(node, vector) for node, vector in zip(some, vectors, strict=True)]
            self._store.add(made)
            self._held.update((each.node_id, str(each.metadata[_VECTOR])) for each in made)

    def _stored(self, node: Node, vector: list[float]) -> TextNode:
        """Make what the store gets: little metadata, since many allow but few and flat fields."""
        facts = {GROUP: node.group, _VECTOR: digest(self._model, node.text)}
        # A store that deletes by source only can delete a node that is its own.
        source = node.document_id if self._deletes_nodes and node.document_id else node.id
        return TextNode(
            id_=node.id,
            text=node.text,
            embedding=vector,
            metadata=facts,
            excluded_embed_metadata_keys=list(facts),
            excluded_llm_metadata_keys=list(facts),
            relationships={NodeRelationship.SOURCE: related(source)},
        )


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    every = list(items)
    for begin in range(0, len(every), _AT_ONCE):
        yield every[begin : begin + _AT_ONCE]
