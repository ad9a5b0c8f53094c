"""Use the vector store of another framework as the index of a graph's embeddings."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..nodegraph.concurrency import fork_safe_lock, is_reading_graph, track
from ..nodegraph.graph import NodeGraph
from ..nodegraph.hashing import digest
from ..nodegraph.node import Node
from ..retrievers.filters import Filter
from ..retrievers.indexes.array_files import Arrays
from ..retrievers.indexes.filter_index import FilterIndex
from ..retrievers.indexes.nearest_vectors import unit
from ..retrievers.indexes.node_table import NodeTable
from ..retrievers.indexes.vector_index import check_dimension
from ..retrievers.protocols import Similarity, Snapshot
from ..retrievers.results import Hits
from ..retrievers.similarities.registry import Cosine, with_index

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

Rows = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]

ItemT = TypeVar("ItemT")

_BATCH = 500  # number of nodes per write

_PAGE = 2_000  # number of vectors that are compared together

# number of updates before a search; nodes that other threads add later are compared without the
# store
_MAX_UPDATES = 3

_LONG = 1_000  # minimum number of nodes for a progress bar

_SAMPLE = 16  # number of rows that a new process looks up

_DECIMALS = 6

_UNUSABLE = "-"  # prefix of a zero vector's recorded fingerprint

_STATE = ""  # the key of the state in a record

_NAMES = ("collection_name", "_collection_name", "index_name", "_index_name", "table_name")

_PLACES = ("uri", "_uri", "url", "persist_directory", "_persist_directory", "_connection_args")

State = tuple[int, tuple[str, ...]]
"""The revision of a group and its search version, which includes the name of the model."""

NearestNodes = tuple[list[str], list[Vectors] | None]
"""The ids of nodes, and their unit vectors if the store returns vectors."""


class VectorBackend:
    """The operations that an index needs from a vector store.

    There is a backend for each framework adapter, and one for PostgreSQL with pgvector.

    Attributes:
        is_atomic: Whether ``transaction`` covers changes to both the store and the graph.
        max_selected: The maximum number of ids to which a search can be restricted.
        max_requested: The maximum number of candidates per search. If these are not enough, all
            vectors are compared in this process. If None, there is no maximum.
        name: The name of the store, for messages.
        identity: A hash that identifies the store across processes. It is derived from the given
            name, or from the class, name and address of the store. If None, the store has no name,
            so it may exist only in memory.

    Args:
        store: The vector store.
    """

    is_atomic: ClassVar[bool] = False
    max_selected: ClassVar[int] = 0
    max_requested: ClassVar[int | None] = 4_096

    def __init__(self, store: Any) -> None:
        self._store = store
        self.name = type(store).__name__
        collection = getattr(store, "_collection", None)  # Chroma
        names = [getattr(store, name, None) for name in _NAMES]
        names.append(getattr(collection, "id", None))
        places = [getattr(store, name, None) for name in _PLACES]
        kind = type(store)
        described = [str(value) for value in (*names, *places)]
        known = digest(kind.__module__, kind.__qualname__, *described)
        self.identity = known if any(names) else None

    def recognized(self, graph: NodeGraph, label: str | None) -> Self:
        """Set the name by which later processes recognize the store, unless it is None.

        Args:
            graph: The graph whose vectors the store contains.
            label: The name, or None.

        Raises:
            ValueError: If the graph is saved in a file, but the store has no name.
        """
        if label is not None:
            self.identity = digest("label", label)
        place = graph.reader.store_place
        if self.identity is None and place:
            raise ValueError(
                f"the graph is in {place}, and a later process cannot recognize the vector store "
                f'{self.name}, which has no name; write as_index(store, name="vectors")'
            )
        return self

    def nearest_ids(self, vector: Vectors, count: int) -> list[str]:
        """Return the ids of the nodes with the highest cosine similarity.

        The result may include ids of other graphs, which the caller ignores.
        """
        raise NotImplementedError

    def nearest(
        self, vector: Vectors, count: int, selected: Sequence[str] | None = None
    ) -> NearestNodes:
        """Return the nodes with the highest cosine similarity, and their vectors if available.

        Args:
            vector: A unit vector of shape (dimension,).
            count: The maximum number of nodes.
            selected: The ids of the nodes to search, at most ``max_selected``. If None, all nodes
                are searched.

        Returns:
            The ids of the nodes, and their vectors or None.
        """
        return self.nearest_ids(vector, count), None

    def transaction(self) -> AbstractContextManager[object]:
        """Start a transaction for changes to the store and the graph.

        The default implementation does not use transactions.
        """
        return nullcontext()

    def updating(self, *, wait: bool) -> AbstractContextManager[bool]:
        """Prevent other processes from updating the store inside a ``with`` block.

        The default implementation does not prevent this. The context manager yields False if
        another process is updating the store. In this case, the block must not write.

        Args:
            wait: Whether to wait until the other process has finished.
        """
        return nullcontext(True)

    def finish(self) -> None:
        """Perform work after an update, such as logging a hint.

        The default implementation does nothing.
        """

    def link(self, show: bool | None) -> None:
        """Build an index for approximate searches, such as an HNSW graph.

        The default implementation does nothing.

        Args:
            show: Whether to show a progress bar. If None, it is shown only on terminals.
        """

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return the fingerprint of each given node that is stored, by node id.

        If the store cannot look up ids, return None.
        """
        raise NotImplementedError

    def count(self) -> int | None:
        """Return the number of rows of a Chroma collection. For other stores, return None."""
        count = getattr(getattr(self._store, "_collection", None), "count", None)
        return int(count()) if callable(count) else None

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes. If the store can look up ids, it contains all of the given nodes."""
        raise NotImplementedError

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes that the store does not contain yet.

        All vectors have unit length, so cosine, inner product and L2 distance rank the nodes
        equally.
        """
        raise NotImplementedError


class NodeText(NamedTuple):
    """A node and the text that is embedded for it.

    Attributes:
        node: The node.
        text: The embedded text, as returned by ``Node.searched_text``.
        fingerprint: A hash of the model's name and the text.
    """

    node: Node
    text: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """A node and its vector, as stored in a vector store.

    Attributes:
        node: The node.
        text: The embedded text, as returned by ``Node.searched_text``.
        fingerprint: A hash of the model's name and the text.
        vector: The unit vector of shape (dimension,).
    """

    node: Node
    text: str
    fingerprint: str
    vector: Vectors


def store_indexes(
    store: object,
    framework: str,
    kind: type[Any],
    arguments: Callable[[NodeGraph, str, str], tuple[Any, ...]],
    backend: Callable[[Any], VectorBackend],
    label: str | None = None,
) -> StoreIndexes:
    """Create the factory that a framework adapter returns from ``as_index``.

    Args:
        store: A vector store that all groups share, or a function that creates a store for a group.
        framework: The name of the framework, for messages.
        kind: The base class of the framework's vector stores.
        arguments: A function that takes a graph, a group and an embedding key, and returns the
            arguments for creating a store.
        backend: A function that takes a store and returns its backend.
        label: The name by which later processes recognize the store. Defaults to the name of the
            store itself.

    Raises:
        TypeError: If ``store`` is neither a vector store nor a function, or if ``label`` is not a
            non-empty string.
    """
    if label is not None and not (isinstance(label, str) and label.strip()):
        raise TypeError(f"name must be a text, got {label!r:.80}")
    if isinstance(store, kind):
        single = backend(store)

        def shared(graph: NodeGraph, group: str, key: str) -> VectorBackend:
            return single.recognized(graph, label)

        return StoreIndexes(store, shared, is_shared=True)
    if not callable(store) or isinstance(store, type):
        raise TypeError(
            f"store must be a {framework} vector store or a function that creates the store of a "
            f"group, got {store!r:.80}"
        )

    def create(graph: NodeGraph, group: str, key: str) -> VectorBackend:
        created = store(*arguments(graph, group, key))
        if not isinstance(created, kind):
            raise TypeError(
                f"the function given to as_index must return a {framework} vector store, got "
                f"{created!r:.80} for the group {group!r}"
            )
        return backend(created).recognized(graph, label)

    return StoreIndexes(store, create, is_shared=False)


@dataclass(frozen=True, slots=True, eq=False)
class StoreIndexes:
    """A factory of indexes that use vector stores, for ``Retriever(index=...)``.

    Two factories are equal if they use the same store.

    Attributes:
        store: The vector store, or the function that creates a store for a group.
        backend: A function that takes a graph, a group and an embedding key, and returns the
            backend.
        is_shared: Whether all groups share one store. A shared store contains vectors of only one
            embedding.
    """

    store: object
    backend: Callable[[NodeGraph, str, str], VectorBackend]
    is_shared: bool
    _keys: dict[int, str] = field(default_factory=dict, repr=False)

    @property
    def cosine(self) -> Similarity:
        """A cosine similarity that searches the store.

        Use it for retrievers without an ``index`` argument: ``RecursiveRetriever(graph, groups,
        target, as_index(...).cosine)``.
        """
        return with_index(Cosine(), self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreIndexes) and self.store is other.store

    def __hash__(self) -> int:
        return hash((StoreIndexes, id(self.store)))

    def __call__(
        self, graph: NodeGraph, group: str, key: str | None, similarity: Similarity
    ) -> StoreIndex:
        """Return the index of the vectors of one group for one embedding key.

        Raises:
            TypeError: If the similarity is not the cosine, or the given function did not return a
                vector store.
            ValueError: If the store contains vectors of a different embedding of the graph, or if
                the store needs a name.
        """
        if key is None or not isinstance(similarity, Cosine):
            raise TypeError(
                f"a vector store requires the similarity 'cosine', got {similarity.name!r}"
            )
        if self.is_shared and (first := self._keys.setdefault(id(graph), key)) != key:
            raise ValueError(
                f"the vector store has vectors of the embedding {first!r} and can't also hold "
                f"those of {key!r}; search one embedding (embed_keys=[...]), or give as_index a "
                "function that creates a store for each"
            )
        return StoreIndex(graph, group, key, self.backend(graph, group, key))


class StoreIndex(FilterIndex):
    """An index of the vectors of one group that searches in a vector store.

    The vector store only proposes candidates. This class evaluates the filters and computes the
    cosines from the vectors of the graph itself. If too few candidates remain because of filters or
    equal scores, it requests more. If the store does not contain enough nodes, all nodes are
    compared, and the missing rows are restored before the next search.

    ``ready`` writes new vectors to the store before the graph is locked. Nodes that are added after
    that are compared without the store. The graph records which vectors were written. See
    ``StoreRecord``.

    Args:
        graph: The node graph.
        group: The name of the group of nodes.
        key: The key of the embedding.
        backend: The backend of the vector store.

    Raises:
        LookupError: If the graph has no embedding with this key.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, key: str, backend: VectorBackend) -> None:
        self._key = key
        self._backend = backend
        self._model = graph.embeddings.embedder(key).name
        self._record = StoreRecord(graph, backend.identity, group, key)
        # the state of the store, or None if it has not been checked yet
        self._written: State | None = None
        self._updated_state: object = None  # the state of the graph when the store was current
        # The ids of the nodes that are not in the store. None means all nodes.
        self._unwritten: tuple[object, list[str] | None] = (None, [])
        self._is_checked = False  # whether the store was compared with the record
        self._refill_helps = True
        self._updating = fork_safe_lock()
        super().__init__(graph, group)

    # Writing to the store

    def ready(self) -> None:
        """Embed new nodes and update the store before the graph is locked.

        Raises:
            EmbeddingError: If the model fails.
        """
        if self._update():
            self._backend.finish()

    def _update(self) -> bool:
        """Embed new nodes and write them to the store.

        Return whether nodes were written or the store was compared with the graph.
        """
        if is_reading_graph():  # waiting for the update of another thread could cause a deadlock
            return False
        reader = self._graph.reader
        if reader.held_state() is self._updated_state:
            return False
        for _ in range(_MAX_UPDATES):
            with self.current():
                before = self._written
                new = self._state()
                if before == new:
                    self._updated_state = reader.held_state()
                    return False
                recorded, size = self._record.state()
                old = before or recorded
                changes = reader.changes(self._group, _since(old, new))
                ids = reader.ids(self._group) if changes.complete else _ids(changes.added)
                sample = self._sample()
            with self._updating, self._backend.updating(wait=old is None) as is_alone:
                if not is_alone:  # the remaining nodes are compared in this process
                    self._written = old
                    return False
                if self._written != before or self._record.state()[0] != recorded:
                    continue  # another thread or process has updated the store
                is_short = before is None and self._is_checked
                is_first = bool(old) and not before
                if is_short or (is_first and not self._is_intact(sample, size)):
                    self._refill()
                self._is_checked = True
                self._refill_helps = not is_short
                self._remove(changes.removed, ids, complete=changes.complete)
                self._write(ids)
                if recorded != new:
                    self._record.write_state(new, self._stored_size())
                self._written = new
            return True
        return False

    def link(self) -> None:
        """Write new vectors, and build the neighbor graph of the store. This may take minutes.

        Raises:
            EmbeddingError: If the model fails.
        """
        self._update()
        self._backend.link(self._graph.progress)

    def _write(self, ids: Sequence[str]) -> None:
        """Write nodes in batches. If there are many, show a progress bar."""
        show = len(ids) >= _LONG and self._graph.progress
        batches = list(_batches(ids))
        what = f"vectors of {self._group}"
        for batch in track(batches, len(batches), what, " batches", show):
            self._put(self._graph.reader.existing_nodes(batch), self._record.read(batch))

    def _stored_size(self) -> int:
        """Return the number of nodes in the store."""
        total = self._backend.count()
        return self.size if total is None else min(total, self.size)

    def _state(self) -> State:
        revision, version = self._synced
        return revision, (*version, self._model)

    def _sample(self) -> list[str]:
        rows = np.flatnonzero(self.table.alive)
        return self.table.ids_of(rows[:: len(rows) // _SAMPLE + 1])

    def _is_intact(self, sample: Sequence[str], size: int) -> bool:
        """Check that the store contains all rows of a sample, and no fewer rows than recorded."""
        total = self._backend.count()
        if total is not None and total < size:
            return False
        recorded = self._record.read(sample)
        recorded = {i: f for i, f in recorded.items() if not f.startswith(_UNUSABLE)}
        if not recorded:
            return True
        stored = self._backend.stored(list(recorded))
        return stored is None or all(stored.get(i) == f for i, f in recorded.items())

    def _refill(self) -> None:
        """Look up all recorded rows in the store, and write the missing and outdated rows again."""
        for batch in _batches(self._record.ids()):
            self._put(self._graph.reader.existing_nodes(batch), {})

    def _remove(self, removed: Sequence[str], ids: Sequence[str], *, complete: bool) -> None:
        recorded = self._record.ids() if complete else self._record.read(removed)
        for batch in _batches({*recorded}.difference(ids)):
            with self._backend.transaction():
                stored = self._backend.stored(batch)
                existing = batch if stored is None else list(stored)
                if existing:
                    self._backend.delete(existing)
                self._record.delete(batch)

    def _put(self, nodes: Sequence[Node], recorded: Mapping[str, str]) -> None:
        """Write nodes that are neither recorded as written nor already in the store.

        Zero vectors are recorded but not written.
        """
        rows = self._changed_rows(nodes, recorded)
        if not rows:
            return
        ids = [row.node.id for row in rows]
        stored = self._backend.stored(ids)
        new = rows
        if stored is not None:
            new = [row for row in rows if stored.get(row.node.id) != row.fingerprint]
        embedded = self._embedded(new)
        added = [row for row in embedded if row.vector.any()]
        unusable = {row.node.id for row in embedded if not row.vector.any()}
        fingerprints = {}
        for row in rows:
            prefix = _UNUSABLE if row.node.id in unusable else ""
            fingerprints[row.node.id] = f"{prefix}{row.fingerprint}"
        outdated = self._outdated(ids, new, stored, added)
        with self._backend.transaction():
            if new and not self._backend.is_atomic:
                # if the write fails, the contents of the store are unknown
                self._record.write(dict.fromkeys(ids, ""))
            if outdated:
                self._backend.delete(outdated)
            if added:
                self._backend.add(added)
            self._record.write(fingerprints)

    def _changed_rows(self, nodes: Sequence[Node], recorded: Mapping[str, str]) -> list[NodeText]:
        """Return the nodes whose current fingerprints are not recorded, along with their texts."""
        changed = []
        texts = self._graph.reader.searched_texts(nodes)
        for node, text in zip(nodes, texts, strict=True):
            fingerprint = digest("unit", self._model, text)
            if recorded.get(node.id, "").removeprefix(_UNUSABLE) != fingerprint:
                changed.append(NodeText(node, text, fingerprint))
        return changed

    def _embedded(self, rows: Sequence[NodeText]) -> list[EmbeddedNode]:
        """Return nodes with their vectors. A vector may be zero."""
        texts = [row.text for row in rows]
        vectors = unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))
        return [
            EmbeddedNode(row.node, row.text, row.fingerprint, vector)
            for row, vector in zip(rows, vectors, strict=True)
        ]

    def _outdated(
        self,
        ids: Sequence[str],
        new: Sequence[NodeText],
        stored: Mapping[str, str] | None,
        added: Sequence[EmbeddedNode],
    ) -> Sequence[str]:
        """Return the ids of nodes that must be deleted before nodes are added.

        Vector stores either reject, ignore or duplicate an id that already exists.
        """
        if stored is not None:
            return [row.node.id for row in new if row.node.id in stored]
        if added and not self._backend.nearest_ids(added[0].vector, 1):
            return []  # an empty store may have no collection to delete from
        return ids

    # Searching

    def search(self, query: Vectors, limit: int | None, filter: Filter) -> Hits:
        """Return the nodes that are nearest to a vector. Equal scores are sorted in document order.

        Args:
            query: The query vector of shape (dimension,). A zero vector matches no nodes.
            limit: The maximum number of nodes. If None, all nodes are returned.
            filter: The filter, which is applied before ranking.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[Vectors], filter: Filter) -> Snapshot:
        """Return a search that queries the store without holding the graph's lock."""
        table = self.table
        relatives = table.snapshot(filter)
        mask = table.allowed(filter)
        directions = [unit(query[np.newaxis])[0] for query in queries]
        unwritten = self._unwritten_ids()

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            return [self._best(table, mask, unwritten, directions[n], limit) for n in numbers]

        return Snapshot(search, relatives.parents_of, inherits=relatives.inherit)

    def _best(
        self,
        table: NodeTable,
        allowed: Mask,
        unwritten: list[str] | None,
        query: Vectors,
        limit: int | None,
    ) -> Hits:
        """Return the nodes with the highest cosine similarity to a query.

        Args:
            table: The table of nodes.
            allowed: A boolean array that is True for the rows that match the filter.
            unwritten: The ids of the nodes that are not in the store. If None, any node may be
                missing.
            query: The unit vector of the query.
            limit: The maximum number of nodes. If None, all nodes are returned.
        """
        count = int(allowed.sum())
        if not count or not query.any():
            return Hits([], [])
        found: tuple[Rows, Scores] | None = None
        if limit is not None and limit < count and unwritten is not None:
            found = self._candidates(table, allowed, unwritten, query, limit)
        rows, scores = found or self._scored(table, np.flatnonzero(allowed), query, {})
        ranking = np.lexsort((table.orders[rows], -scores))[:limit]
        return Hits(table.ids_of(rows[ranking]), scores[ranking].tolist())

    def _candidates(
        self, table: NodeTable, allowed: Mask, unwritten: list[str], query: Vectors, limit: int
    ) -> tuple[Rows, Scores] | None:
        """Return scored rows that are guaranteed to include the best rows.

        Return None if the store returned too few candidates.
        """
        count = int(allowed.sum())
        selected = None
        requested = limit + limit // 4 + 4
        if count <= self._backend.max_selected and count < table.size:
            selected = table.ids_of(np.flatnonzero(allowed))
        elif count < table.size:
            requested = requested * table.size // count
        others = _rows(table, allowed, unwritten)
        most = self._backend.max_requested
        # Beyond this number of candidates, comparing all vectors is faster.
        while most is None or requested <= min(most, count):
            ids, vectors = self._backend.nearest(query, requested, selected)
            known = dict(zip(ids, vectors or (), strict=False))
            proposed = _rows(table, allowed, ids)
            rows, scores = self._scored(table, np.union1d(proposed, others), query, known)
            is_exhausted = len(ids) < requested
            # If the worst candidate scores less than the last result, no other node can be better.
            worst = scores[np.isin(rows, proposed)].min(initial=np.inf)
            is_enough = len(rows) >= limit and (
                is_exhausted or np.partition(scores, -limit)[-limit] > worst
            )
            if is_enough or is_exhausted:
                self._note_candidates(is_enough, count)
                if not is_enough:
                    return None
                return rows, scores
            requested *= 4
        return None

    def _note_candidates(self, is_enough: bool, count: int) -> None:
        """Log a warning if the store returned too few nodes.

        The next search then refills the store.

        Args:
            is_enough: Whether the store returned enough nodes.
            count: The number of nodes that match the filter.
        """
        if is_enough:
            self._refill_helps = True
            return
        if self._refill_helps:
            self._written = None
            self._updated_state = None
        logger.warning(
            "the vector store %s returned too few of %s nodes of the group %r; all are "
            "compared one by one instead",
            self._backend.name,
            count,
            self._group,
        )

    def _scored(
        self, table: NodeTable, rows: Rows, query: Vectors, known: Mapping[str, Vectors]
    ) -> tuple[Rows, Scores]:
        """Return the rows that have a usable vector, and their cosine similarities.

        The built-in index returns equal scores.

        Args:
            table: The table of nodes.
            rows: The rows to compare. Missing vectors are read in pages.
            query: The unit vector of the query.
            known: Unit vectors that do not need to be read again, keyed by node id.
        """
        pages = [rows[start : start + _PAGE] for start in range(0, len(rows), _PAGE)]
        scores = np.zeros(0)
        usable = np.zeros(0, np.bool_)
        for page in pages:
            ids = table.ids_of(page)
            vectors = known
            if missing := [i for i in ids if i not in known]:
                texts = self._graph.reader.searched_texts(self._graph.reader.nodes_by_id(missing))
                read = unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))
                vectors = {**known, **dict(zip(missing, read, strict=True))}
            units = np.array([vectors[i] for i in ids])
            check_dimension(query, units.shape[1], self._group, self._model, self._key)
            cosines = np.round((units * query.astype(np.float64)).sum(axis=1), _DECIMALS)
            scores = np.append(scores, cosines + 0.0)  # adding 0.0 turns -0.0 into 0.0
            usable = np.append(usable, units.any(axis=1))
        return rows[usable], scores[usable]

    def _unwritten_ids(self) -> list[str] | None:
        """Return the ids of the nodes that are not in the store, or None if any may be missing."""
        written = self._written
        now = self._state()
        if written == now:
            return []
        if self._unwritten[0] != (written, now):
            changes = self._graph.reader.changes(self._group, _since(written, now))
            ids = None if changes.complete else _ids(changes.added)
            self._unwritten = (written, now), ids
        return self._unwritten[1]

    # The node table is saved in a file, so that a new process does not need to read all nodes.

    def file_name(self) -> str:
        """Return the name of the file in which the node table is saved."""
        return "store-nodes"

    def header(self) -> dict[str, Any]:
        """Return the settings that a saved index must match in order to be loaded."""
        return {"kind": "store nodes"}

    def arrays(self) -> Arrays:
        """Return the arrays of the node table, to be saved in a file."""
        return self.table.arrays()

    def restore(self, arrays: Arrays) -> None:
        """Load the node table from saved arrays."""
        self.table = NodeTable.from_arrays(arrays)


def _rows(table: NodeTable, allowed: Mask, ids: Sequence[str]) -> Rows:
    """Return the table rows of the given nodes, without rows that are excluded by the filter."""
    rows = table.rows_of(dict.fromkeys(ids))
    # nodes that were added later are not in this table
    rows = rows[(rows >= 0) & (rows < len(allowed))]
    selected: Rows = rows[allowed[rows]]
    return selected


def _since(written: State | None, new: State) -> int:
    """Return the revision from which changes must be read, or 0 if everything must be compared."""
    if written is None or written[1] != new[1]:
        return 0
    return written[0]


def _ids(nodes: Sequence[Node]) -> list[str]:
    return [node.id for node in nodes]


def _batches(items: Iterable[ItemT]) -> Iterator[list[ItemT]]:
    distinct = list(dict.fromkeys(items))
    for start in range(0, len(distinct), _BATCH):
        yield distinct[start : start + _BATCH]


def record_kind(identity: str, group: str, key: str) -> str:
    """Return the name under which a graph records the vectors of a group in a vector store.

    Args:
        identity: The identity of the store.
        group: The name of the group.
        key: The key of the embedding.
    """
    return f"vector store {digest(identity, group, key)}"


class StoreRecord:
    """A record of the vectors that were written to a vector store.

    It contains the fingerprint of each written vector by node id, and the state of the store. If
    later processes can recognize the store, the record is saved in the graph, so that they do not
    need to look up all vectors. Otherwise, the record is kept in memory.

    Args:
        graph: The node graph.
        identity: The identity of the store, or None if later processes cannot recognize it.
        group: The name of the group.
        key: The key of the embedding.
    """

    def __init__(self, graph: NodeGraph, identity: str | None, group: str, key: str) -> None:
        self._reader = graph.reader
        self._kind = "" if identity is None else record_kind(identity, group, key)
        self._rows: dict[str, str] = {}  # the record if the store has no identity

    def state(self) -> tuple[State | None, int]:
        """Return the recorded state of the store and its number of rows.

        The state is None if nothing has been recorded yet.
        """
        value = self.read([_STATE]).get(_STATE)
        if value is None:
            return None, 0
        revision, version, size = json.loads(value)
        return (revision, tuple(version)), size

    def write_state(self, state: State, size: int) -> None:
        """Record the state of the store, and its number of rows."""
        self.write({_STATE: json.dumps([*state, size])})

    def read(self, ids: Collection[str]) -> dict[str, str]:
        """Return a dictionary from the ids of written nodes to their fingerprints.

        A fingerprint is empty if writing the node may have failed.
        """
        if not self._kind:
            return {node_id: self._rows[node_id] for node_id in ids if node_id in self._rows}
        values = self._reader.values(self._kind, ids)
        return {node_id: value.decode() for node_id, value in values.items()}

    def ids(self) -> list[str]:
        """Return the ids of all written nodes."""
        ids = self._reader.values(self._kind) if self._kind else self._rows
        return [node_id for node_id in ids if node_id != _STATE]

    def write(self, fingerprints: Mapping[str, str]) -> None:
        """Record the fingerprints of nodes, which are keyed by node id."""
        if self._kind:
            rows = {i: value.encode() for i, value in fingerprints.items()}
            self._reader.save(self._kind, rows, derived=True)
        else:
            self._rows.update(fingerprints)

    def delete(self, ids: Collection[str]) -> None:
        """Delete nodes from the record."""
        if self._kind:
            self._reader.delete_values(self._kind, ids)
        for node_id in ids:
            self._rows.pop(node_id, None)
