"""The store of a graph, which keeps documents, nodes, links and values in SQL tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..derivation import CORPUS, Derivation, Stamp, document_stamp
from ..document import Document
from ..errors import nearest_names
from ..hashing import digest
from ..lazy_names import STORES, plugins
from ..locations import LAYOUTS
from ..node import ROOT, Node
from .block_table import StoredBlocks
from .columns import ValueColumns, encode, portions, to_id, to_ids
from .database import Database
from .derivation_table import DerivationRow, NewDerivation, StoredDerivations
from .group_table import StoredGroups
from .link_table import StoredLinks
from .node_rows import NodeRows
from .node_table import StoredNodes
from .sqlite import SQLiteDatabase
from .transactions import Transactions
from .value_table import StoredValues
from .vector_table import StoredVectors

_INSERT_DOCUMENT = "INSERT INTO documents (key, id, fields, search_text) VALUES (?, ?, ?, ?)"

_DOCUMENTS = 2_000  # number of documents that are written at a time, which limits the memory

_CORPUS_KEY = 0  # the database key of the document that represents the whole corpus


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a node group between two revisions.

    Attributes:
        revision: The revision after the changes.
        removed: The ids of removed nodes. Removals must be applied first.
        added: The new and changed nodes. The ids of changed nodes are also listed in ``removed``.
        complete: Whether ``added`` contains the whole group. If True, all earlier content is
            invalid.
    """

    revision: int
    removed: Sequence[str]
    added: Sequence[Node]
    complete: bool = False


class GraphStore:
    """Stores the documents of a graph and the nodes that are derived from them.

    Args:
        database: The database in which the data is stored.
        keeps_objects: Whether metadata may contain objects that cannot be stored in a file.

    Attributes:
        database: The database, whose lock protects the graph.
        place: The path or URL of the store. It is empty for a store in memory.
        transactions: The manager of transactions.
        groups: The table of groups.
        nodes: The table of nodes.
        links: The table of links.
        values: The table of values that are stored with the graph.
        vectors: The tables of vectors.
        node_rows: The converter between nodes and rows.
    """

    def __init__(self, database: Database, *, keeps_objects: bool = False) -> None:
        self.database = database
        self._columns = ValueColumns([] if keeps_objects else None)
        self._set_up()

    def _set_up(self) -> None:
        """Create the attributes that are not included when the store is pickled."""
        self.place = self.database.place
        self.transactions = Transactions(self.database)
        self.node_rows = NodeRows(self._columns)
        self.groups = StoredGroups(self.transactions)
        self.values = StoredValues(self.transactions)
        self.vectors = StoredVectors(self.transactions, self.values)
        self._blocks = StoredBlocks(self.database)
        self.nodes = StoredNodes(self.transactions, self.groups, self._blocks, self.node_rows)
        self.links = StoredLinks(self.transactions, self.groups, self.nodes, self._columns)
        self._derivations = StoredDerivations(
            self.transactions, self.groups, self.nodes, self._blocks, self.links, self.node_rows
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"database": self.database, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __repr__(self) -> str:
        return f"GraphStore({self.place or 'memory'!r})"

    def copy_to(self, path: Path) -> None:
        """Copy the store to a file. An existing file is replaced.

        Raises:
            TypeError: If the store is on a server, or if the metadata contains objects that cannot
                be stored in a file.
        """
        if str(path.resolve()) == self.place:
            return
        copy = getattr(self.database, "copy_to", None)
        if copy is None:
            raise TypeError(f"only a store in memory or in a file can be copied, got {self.place}")
        for value in self._columns.objects or ():
            encode(value)
        copy(path)

    def close(self) -> None:
        """Close the connection. It is reopened when it is needed again."""
        with self.database.lock:
            self.database.close()
            self.values.forget_derived()
            self.transactions.forget()

    def compact(self) -> None:
        """Free the disk space used by deleted data. Other threads can read at the same time."""
        with self.transactions.alone():
            self.database.compact()

    def vector_index(self, graph: Any, group: str, key: str) -> Any | None:
        """Return the database's vector index for a group, or None if the database has none."""
        return None

    # Documents and derivations

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with their derived nodes, and insert or replace other documents.

        Unknown ids are ignored. If a document with the same id exists, it is replaced and the new
        document takes its position. Nodes that were derived from the old document remain until the
        next build.

        Raises:
            TypeError: If metadata contains a value that cannot be stored. Nothing is changed in
                this case.
            ValueError: If a derived node already uses the id of a document. Nothing is changed in
                this case.
        """
        with self.transactions.transaction():
            if remove:
                self._remove(remove)
            documents = {document.id: document for document in put}
            for portion in portions(documents.values(), _DOCUMENTS):
                self._put({document.id: document for document in portion})

    def _remove(self, ids: Sequence[str]) -> None:
        for group in (*self.groups.names(), ROOT):
            stored = self._derivations.stored(group, ids)
            removed = {i: NewDerivation(row.document, row) for i, row in stored.items()}
            self._derivations.write(group, removed)
        self.database.run_many("DELETE FROM documents WHERE id = ?", [(i,) for i in to_ids(ids)])
        self.values.delete(LAYOUTS, ids)

    def _put(self, documents: Mapping[str, Document]) -> None:
        stored = self._derivations.stored(ROOT, documents)
        new = [i for i in documents if i not in stored]
        self._check_unused(new)
        first = self.transactions.next_key("documents", len(new))
        keys = {i: row.document for i, row in stored.items()}
        keys |= {i: key for key, i in enumerate(new, first)}
        changed: dict[str, NewDerivation] = {}
        texts: dict[int, str] = {}
        for i, document in documents.items():
            stamp = document_stamp(document)
            if i not in stored or stored[i].stamp != stamp:
                fields = self.node_rows.fields(document)
                node = self.nodes.of_document(document, keys[i], fields)
                root = Derivation(stamp, (node,), text=document.text)
                text = self._text_key(root, stored.get(i))
                texts[text] = document.text
                changed[i] = NewDerivation(keys[i], stored.get(i), root, fields, text)
        rows = [(keys[i], to_id(i), *changed[i].fields) for i in new]
        self.database.run_many(_INSERT_DOCUMENT, rows)
        # The first search or build needs all documents.
        keep_nodes = self.nodes.are_all_written(ROOT)
        self._derivations.write(ROOT, changed, keep_nodes=keep_nodes)
        self._derivations.change_fields(changed.values())
        former = {row.text for row in stored.values()}
        new_texts = {key: text for key, text in texts.items() if key and key not in former}
        self._blocks.write(new_texts)

    def _text_key(self, root: Derivation, stored: DerivationRow | None) -> int:
        """Return the database key of a document's text.

        If the text has changed, it gets a new key.
        """
        if not self.database.has_blocks:
            return 0
        if stored is not None and stored.text and stored.stamp.key == root.stamp.key:
            return stored.text
        return self.transactions.next_key("texts", 1)

    def _check_unused(self, ids: Sequence[str]) -> None:
        if not self.groups.names():
            return  # There are no derived nodes.
        for node in self.nodes.get(ids):
            if node is not None:
                raise ValueError(
                    f"document id {node.id!r} is already used by a node of group {node.group!r}; "
                    "choose another id"
                )

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the content hashes of a group's derivations, keyed by document id."""
        return self._derivations.stamps(group, ids)

    def derivations(self, group: str, ids: Collection[str]) -> dict[str, Derivation]:
        """Return the derivations of a group from the given documents, keyed by document id."""
        return self._derivations.get(group, ids)

    def derived_nodes(self, group: str, ids: Collection[str]) -> dict[str, list[Node]]:
        """Return the nodes of a group, keyed by document id.

        Documents from which the group has not been derived are left out.
        """
        return self._derivations.nodes(group, ids)

    def forget_written_documents(self) -> None:
        """Discard the new documents that were kept in memory for the first build."""
        self.nodes.forget_written(ROOT)
        self._derivations.forget_written()

    def put_derivations(
        self,
        group: str,
        derivations: Mapping[str, Derivation],
        *,
        keep_nodes: bool = False,
        are_current: bool = False,
    ) -> None:
        """Insert or replace derivations of a group.

        Args:
            group: The name of the group.
            derivations: The derivations to write, keyed by document id.
            keep_nodes: Whether to keep the new nodes in memory. See ``StoredDerivations.write``.
            are_current: Whether the documents are known to be unchanged since they were read.

        Raises:
            LookupError: If a document does not exist.
            TypeError: If a node contains a value that cannot be stored.
        """
        with self.transactions.transaction():
            roots = self._derivations.stored(ROOT, derivations)
            documents = [_CORPUS_KEY, *[root.document for root in roots.values()]]
            stored = self._derivations.of_documents(group, documents)
            new: dict[str, NewDerivation] = {}
            for i, derivation in derivations.items():
                if i == CORPUS:
                    new[i] = NewDerivation(0, stored.get(i), derivation)
                    continue
                root = roots[i]
                is_of_text = derivation.text is not None
                if is_of_text and not are_current:
                    is_of_text = _is_of_text(derivation, root)
                text = root.text if is_of_text else 0
                new[i] = NewDerivation(root.document, stored.get(i), derivation, root.fields, text)
            self._derivations.write(group, new, keep_nodes=keep_nodes)

    def changes(self, group: str, since: int) -> Changes:
        """Return the nodes of a group that were added and removed since a revision.

        If the revision is 0, unknown or too old, all nodes are returned. They are read in pages.
        """
        with self.transactions:
            row = self.groups.row(group)
            ids = self.groups.changed_ids(group, since) if since else None
            if ids is None:
                everything = AllNodes(self, group) if row.size else []
                return Changes(row.revision, [], everything, complete=True)
            removed, added = ids
            nodes = [node for node in self.nodes.get(added) if node is not None]
            nodes.sort(key=lambda node: node.order)
            return Changes(row.revision, removed, nodes)


def _is_of_text(derivation: Derivation, root: DerivationRow) -> bool:
    """Return whether a derivation was made from the stored text of its document.

    If not, the nodes are stored with their own texts, since their positions do not fit the stored
    text. This happens if another process changes the document while a group is derived from an
    intermediate group.
    """
    return derivation.text is not None and digest(derivation.text) == root.stamp.key


class AllNodes(Sequence[Node]):
    """A sequence of all nodes in a group. The nodes are read in pages on each iteration.

    Args:
        store: The store that contains the nodes.
        group: The name of the group.
    """

    def __init__(self, store: GraphStore, group: str) -> None:
        self._store = store
        self._group = group

    def __len__(self) -> int:
        return self._store.groups.count(self._group)

    def __iter__(self) -> Iterator[Node]:
        return self._store.nodes.of_group(self._group)

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


def as_store(store: object) -> GraphStore:
    """Open the store at a path or URL. If ``store`` is None, create a new store in memory.

    Raises:
        TypeError: If the type of ``store`` is not supported.
        ValueError: If no installed package supports the scheme of the URL.
        StoreError: If the store cannot be opened.
    """
    if store is None:
        return GraphStore(SQLiteDatabase(None), keeps_objects=True)
    if isinstance(store, GraphStore):
        return store
    if not isinstance(store, str | Path):
        raise TypeError(
            "store must be the path of a file, the address of a PostgreSQL server, or None for "
            f'memory, got {store!r:.80}; write NodeGraph(store="graph.db")'
        )
    scheme, separator, _ = store.partition("://") if isinstance(store, str) else ("", "", "")
    if not separator:
        return GraphStore(SQLiteDatabase(Path(store).expanduser().absolute()))
    stores = plugins(STORES)
    if scheme not in stores:
        raise ValueError(
            f"the scheme of a store must be one of {nearest_names(scheme, stores)}, got "
            f"{scheme!r:.80}; write 'postgresql://user@host/database?schema=name', or the path of "
            "a file"
        )
    opened: GraphStore = stores[scheme].load()(store)
    return opened
