"""The store of a graph: documents, nodes, links and values in the tables of an SQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..derivation import CORPUS, DOCUMENT_STRIDE, Derivation, Stamp, derive_root, unmoved
from ..document import Document
from ..errors import nearest_names
from ..lazy_names import STORES, plugins
from ..locations import LAYOUTS
from ..node import ROOT, Node
from .columns import check_numbers, encode, from_id, marks, portions, reading_rows, to_id
from .database import Row
from .node_tables import NO_FIELDS, Fields, NodeTables
from .sqlite import SQLiteDatabase

_INSERT_DERIVATION = (
    "INSERT INTO derivations (key, grp, document, source, rule, metadata, revision, fields, "
    f"search_text) VALUES ({marks(range(9))})"
)

_INSERT_NODE = (
    "INSERT INTO nodes (key, id, derivation, place, revision, parent, begin, shift, metadata, "
    f"inherited, search_text, inherited_search_text, content, text) VALUES ({marks(range(14))})"
)

# SQLite looks up the documents first: with JOIN it may read all derivations of the group.
_OF_DOCUMENTS = "documents docs CROSS JOIN derivations d"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a group between two revisions.

    Attributes:
        revision: The revision that the changes lead to.
        removed: Ids of removed nodes. Apply the removals first.
        added: New and changed nodes. The ids of changed nodes are in ``removed``, too.
        complete: Whether ``added`` is the whole group and the former content is invalid.
    """

    revision: int
    removed: Sequence[str]
    added: Sequence[Node]
    complete: bool = False


class _Stored(NamedTuple):
    """A derivation in the store.

    Attributes:
        document: The key of its document.
        key: Its key.
        revision: The revision of its last change.
        fields: The columns ``fields`` and ``search_text``.
        stamp: Its stamp.
    """

    document: int
    key: int
    revision: int
    fields: Fields
    stamp: Stamp


class GraphStore(NodeTables):
    """The store of a graph: documents, and the derivations of their nodes.

    Attributes:
        place: The path or address of the store. Empty for a store in memory.
        index_folder: The folder for index files. None if indexes stay in memory.
    """

    def _set_up(self) -> None:
        super()._set_up()
        self.place, self.index_folder = self.database.place, self.database.index_folder

    def __repr__(self) -> str:
        return f"GraphStore({self.place or 'memory'!r})"

    def copy_to(self, path: Path) -> None:
        """Replace the content of a file with a copy of the store.

        Raises:
            TypeError: If the store is on a server, or metadata have objects that a file cannot
                store.
        """
        if str(path.resolve()) == self.place:
            return
        copy = getattr(self.database, "copy_to", None)
        if copy is None:
            raise TypeError(f"only a store in memory or in a file can be copied, got {self.place}")
        for value in self._objects or ():
            encode(value)
        copy(path)

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        with self.database.lock:
            self.database.close()
            self._derived_values.clear()
            self._forget()

    def compact(self) -> None:
        """Free the disk space of deleted data. Other threads can read at the same time."""
        with self.alone():
            self.database.compact()

    @property
    def is_read_only(self) -> bool:
        """Whether the store rejects changes of documents and links."""
        return self.database.is_read_only

    def vector_index(self, graph: Any, group: str, key: str) -> Any | None:
        """Return the index of a group's vectors in the database; None if it does not search."""
        return None

    # Documents and derivations

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with their derived nodes, then insert or replace documents.

        Unknown ids are ignored. A document whose id exists is replaced and keeps its place in
        order; its derivations stay until they are derived again.

        Raises:
            TypeError: If metadata has a value that the store cannot hold; nothing is changed.
            ValueError: If a derived node has the id of a document; nothing is changed.
        """
        db = self.database
        with self.transaction():
            for group in (*self.groups(), ROOT) if remove else ():
                removed = self._stored(group, remove)
                self._write(group, dict.fromkeys(removed), {}, removed, {})
            db.run_many("DELETE FROM documents WHERE id = ?", [(to_id(i),) for i in remove])
            self.delete_values(LAYOUTS, remove)
            unique = {document.id: document for document in put}
            stored = self._stored(ROOT, unique)
            new = [i for i in unique if i not in stored]
            for node in self.get(new):
                if node is not None:
                    raise ValueError(
                        f"document id {node.id!r} is already used by a node of group "
                        f"{node.group!r}; choose another id"
                    )
            last = self._next_key("documents", len(new))
            keys = {i: share.document for i, share in stored.items()}
            keys |= zip(new, range(last - len(new) + 1, last + 1), strict=True)
            rows = [(keys[i], to_id(i)) for i in new]
            db.run_many("INSERT INTO documents VALUES (?, ?)", rows)
            roots = {i: derive_root(document, keys[i]) for i, document in unique.items()}
            same = {i for i, share in stored.items() if roots[i].stamp == share.stamp}
            changed = {i: root for i, root in roots.items() if i not in same}
            self._write(ROOT, changed, keys, stored, {})

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group's derivations by document id, in document order."""
        return {i: share.stamp for i, share in self._stored(group, ids).items()}

    def _stored(self, group: str, ids: Collection[str] | None) -> dict[str, _Stored]:
        """Return the derivations of a group by document id, in document order. None: all."""
        if ids is not None and not ids:
            return {}
        query = (
            "SELECT docs.key, docs.id, d.key, d.revision, d.fields, d.search_text, d.source, "
            f"d.rule, d.metadata FROM {_OF_DOCUMENTS} WHERE d.document = docs.key AND d.grp = ?"
        )
        with self:
            values = [self._group(group).key]
            if ids is None:
                rows = self.database.rows(query, values)
            else:
                rows = []
                for batch in portions(map(to_id, ids)):
                    of_batch = f"{query} AND docs.id IN ({marks(batch)})"
                    rows += self.database.rows(of_batch, [*values, *batch])
        with reading_rows(self.place):
            return {from_id(row[1]): _stored_row(*row) for row in sorted(rows, key=_document_key)}

    def derivations(self, group: str, ids: Collection[str]) -> dict[str, Derivation]:
        """Return the derivations of a group from some documents, by document id."""
        with self:
            stored = self._stored(group, ids)
            nodes: dict[str, list[Node]] = {i: [] for i in stored}
            with reading_rows(self.place):
                for node in self._of_derivations(share.key for share in stored.values()):
                    nodes[node.document_id].append(node)
            links = self._derived_links([node.id for of_one in nodes.values() for node in of_one])
        return {
            i: Derivation(
                share.stamp,
                tuple(nodes[i]),
                tuple(link for node in nodes[i] for link in links.get(node.id, ())),
            )
            for i, share in stored.items()
        }

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace the derivations of one group, by document id.

        Raises:
            LookupError: If a document does not exist.
            TypeError: If a node has a value that the store cannot hold.
        """
        with self.transaction():
            stored, roots = self._stored(group, derivations), self._stored(ROOT, derivations)
            documents = {CORPUS: 0, **{i: root.document for i, root in roots.items()}}
            fields = {i: root.fields for i, root in roots.items()}
            self._write(group, derivations, documents, stored, fields)

    def _write(
        self,
        group: str,
        derivations: Mapping[str, Derivation | None],
        documents: Mapping[str, int],
        stored: Mapping[str, _Stored],
        fields: Mapping[str, Fields],
    ) -> None:
        """Write derivations; delete those given as None.

        Args:
            group: The group.
            derivations: The derivations by document id.
            documents: The keys of the documents.
            stored: The derivations in the store.
            fields: The columns of the documents' metadata. Empty for ``ROOT``.
        """
        if not derivations:
            return
        db, grp = self.database, self._group_key(group)
        replaced = {i: share for i, share in stored.items() if i in derivations}
        old_nodes: dict[str, dict[str, Node]] = {i: {} for i in replaced}
        with reading_rows(self.place):
            for node in self._of_derivations(share.key for share in replaced.values()):
                old_nodes[node.document_id][node.id] = node
                self._nodes.pop(node.id, None)
        former = [i for nodes in old_nodes.values() for i in nodes]
        links = self._derived_links(former)
        changed: dict[str, list[Node]] = {}  # by document id
        removed: list[str] = []
        deleted: list[str] = []
        links_changed = False
        for document_id, new in derivations.items():
            share, old = stored.get(document_id), old_nodes.get(document_id, {})
            same_fields = share is not None and share.fields == fields.get(document_id, NO_FIELDS)
            nodes = {} if new is None else {node.id: node for node in new.nodes}
            unchanged = {
                i
                for i, node in old.items()
                if group != ROOT and same_fields and i in nodes and unmoved(node, nodes[i])
            }
            removed += [i for i in old if i not in unchanged]
            deleted += [i for i in old if i not in nodes]
            if new is not None:
                changed[document_id] = [node for i, node in nodes.items() if i not in unchanged]
                if old:
                    old_links = [link for i in old for link in links.get(i, ())]
                    links_changed |= old_links != [*new.links]
        count = sum(map(len, changed.values()))
        revision = self._group(group).revision
        if removed or count or links_changed:
            revision = self._record(group, removed, count)
        self._delete_links(former, deleted)
        db.run_many("DELETE FROM nodes WHERE id = ?", [(to_id(i),) for i in removed])
        keys = [(share.key,) for share in replaced.values()]
        db.run_many("DELETE FROM derivations WHERE key = ?", keys)
        new_key = self._next_key("derivations", len(derivations)) - len(derivations)
        node_key = self._next_key("nodes", count) - count + 1
        shares: list[Row] = []
        rows: list[Row] = []
        for document_id, nodes_of_one in changed.items():
            derivation, share = derivations[document_id], stored.get(document_id)
            assert derivation is not None
            new_key += 1
            key = new_key if share is None else share.key
            of_document = fields.get(document_id, NO_FIELDS)
            if group == ROOT:
                of_document = self._fields(derivation.nodes[0])
            rows += self._node_rows(node_key, key, revision, nodes_of_one, of_document)
            node_key += len(nodes_of_one)
            last = revision if share is None or nodes_of_one else share.revision
            document = documents[document_id]
            shares.append((key, grp, document, *derivation.stamp, last, *of_document))
        db.run_many(_INSERT_DERIVATION, shares)
        db.run_many(_INSERT_NODE, rows)
        self._put_links(
            link
            for derivation in derivations.values()
            if derivation is not None
            for link in derivation.links
        )
        self._has_changed = True

    # Relatives of nodes

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group (also ``ROOT``), in document order."""
        with self:
            rows = self.database.rows(
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = ? ORDER BY d.document, n.place",
                [self._group(group).key],
            )
            with reading_rows(self.place):
                return [from_id(i) for (i,) in rows]

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of the parent of each existing node; None for nodes without a parent."""
        parents: dict[str, str | None] = {}
        with self:
            for batch in portions(map(to_id, ids)):
                rows = self.database.rows(
                    "SELECT n.id, n.parent, docs.id, d.grp FROM nodes n JOIN derivations d "
                    "ON d.key = n.derivation JOIN documents docs ON docs.key = d.document "
                    f"WHERE n.id IN ({marks(batch)})",
                    batch,
                )
                with reading_rows(self.place):
                    for node, parent, document, grp in rows:
                        above = document if parent is None else parent
                        parents[from_id(node)] = (from_id(above) or None) if grp else None
        return parents

    def children(self, group: str, parent: Node) -> list[Node]:
        """Return the children of a node in a group, in document order."""
        of_parent = "n.parent = ?"
        values = [to_id(parent.document_id), to_id(parent.id)]
        if parent.id == parent.document_id:
            of_parent = "n.parent IS NULL"
            del values[1:]
        where = f"d.grp = ? AND docs.id = ? AND {of_parent} ORDER BY n.place"
        with self:
            return self._read(where, [self._group(group).key, *values])

    def neighbors(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document, across parents."""
        place = node.order % DOCUMENT_STRIDE
        with self:
            nodes = self._read(
                "d.grp = ? AND docs.id = ? AND n.place IN (?, ?)",
                [self._group(node.group).key, to_id(node.document_id), place - 1, place + 1],
            )
        found = {other.order: other for other in nodes}
        return found.get(node.order - 1), found.get(node.order + 1)

    def changes(self, group: str, since: int) -> Changes:
        """Return the changes of a group after a revision.

        All nodes, read in pages, if the revision is 0, unknown or too old.
        """
        with self:
            revision = self.revision(group)
            ids = self.changed_ids(group, since) if since else None
            if ids is None:
                everything = AllNodes(self, group) if self.count(group) else []
                return Changes(revision, [], everything, complete=True)
            removed, added = ids
            nodes = [node for node in self.get(added) if node is not None]
            return Changes(revision, removed, sorted(nodes, key=lambda node: node.order))


def _document_key(row: Row) -> int:
    """Return the key of a document, the first column of a stored derivation."""
    return int(row[0])


def _stored_row(
    document: int, document_id: bytes, key: int, revision: int, *columns: Any
) -> _Stored:
    """Return a derivation in the store from its row.

    Raises:
        ValueError: If a column has a wrong type.
    """
    fields, declared, *stamp = columns
    check_numbers(document, key, revision)
    if any(type(value) is not str for value in stamp):
        raise ValueError("a stamp must have texts")
    return _Stored(document, key, revision, (fields, declared), Stamp(*stamp))


class AllNodes(Sequence[Node]):
    """The nodes of a group in document order, read in pages each time they are iterated.

    Args:
        store: The store.
        group: The group.
    """

    def __init__(self, store: GraphStore, group: str) -> None:
        self._store = store
        self._group = group

    def __len__(self) -> int:
        return self._store.count(self._group)

    def __iter__(self) -> Iterator[Node]:
        return self._store.nodes(self._group)

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


def as_store(store: object) -> GraphStore:
    """Return the store for a path or an address. None: a new store in memory.

    Raises:
        TypeError: If ``store`` has an unsupported type.
        ValueError: If no installed package has stores for the scheme of the address.
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
