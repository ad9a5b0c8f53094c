"""The store of a graph: documents, nodes, links and values in the tables of an SQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..derivation import CORPUS, DOCUMENT_STRIDE, Derivation, Stamp, derive_root, unmoved
from ..document import Document
from ..errors import nearest_names
from ..locations import LAYOUTS
from ..node import ROOT, Link, Node
from .database import Database, Row
from .links import LinkTable
from .node_rows import NO_FIELDS, Fields, NodeRows
from .rows import ValueColumns, from_id, marks, portions, to_id
from .sqlite import SQLiteDatabase
from .turns import Turns
from .values import ValueTable

PAGE = 1000
"""Nodes that are read in one turn."""

_INSERT_DERIVATION = (
    "INSERT INTO derivations (key, grp, document, source, rule, metadata, revision, fields, "
    f"search_text) VALUES ({marks(range(9))})"
)

# SQLite looks up the documents first: with JOIN it may read all derivations of the group.
_OF_DOCUMENTS = "documents docs CROSS JOIN derivations d"

_STAMP = "SELECT d.document, docs.id, d.key, d.source, d.rule, d.metadata FROM"


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


class GraphStore:
    """The store of a graph. All writes of a transaction happen, or none.

    Args:
        database: The database.
        keeps_objects: Whether metadata may have objects that only this process can hold.

    Attributes:
        database: The database, whose lock guards the graph.
    """

    def __init__(self, database: Database, *, keeps_objects: bool = False) -> None:
        self.database = database
        self._columns = ValueColumns(keeps_objects)
        self._set_up()

    def _set_up(self) -> None:
        self._turns = Turns(self.database, lambda: self._rows.forget())
        self._groups = self._turns.groups
        self._rows = NodeRows(self.database, self._columns, self._groups)
        self._links = LinkTable(self.database, self._turns.next_key, self._columns)
        self._values = ValueTable(self.database, self._turns.next_key)

    def __getstate__(self) -> dict[str, Any]:
        return {"database": self.database, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def attach_to(self, graph: Any) -> None:
        """Connect all nodes that are read from now on with a graph."""
        self._rows.graph = graph
        self._rows.forget()

    def __repr__(self) -> str:
        return f"GraphStore({self.place or 'memory'!r})"

    @property
    def place(self) -> str:
        """The path or address of the store. Empty for a store in memory."""
        return self.database.place

    @property
    def index_folder(self) -> Path | None:
        """The folder for index files. None if indexes stay in memory."""
        return self.database.index_folder

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
        self._columns.check_no_objects()
        copy(path)

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        with self.database.lock:
            self.database.close()
            self._turns.forget()

    def compact(self) -> None:
        """Free the disk space of deleted data."""
        with self.database.lock:
            self.database.compact()

    def vector_index(self, graph: Any, group: str, key: str) -> Any | None:
        """Return the index of a group's vectors in the database; None if it does not search."""
        return None

    # Turns and transactions

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        return self._turns.is_held

    def turn(self) -> AbstractContextManager[int]:
        """Hold the lock and read one state until the block ends. See ``Turns``."""
        return self._turns

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[int]:
        """Commit all writes of the block, or none if it raises. See ``Turns.transaction``."""
        return self._turns.transaction(durable=durable)

    # Documents

    def document_ids(self) -> list[str]:
        """Return the ids of all documents, in the order they were first added."""
        return self.ids(ROOT)

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with their derived nodes, then insert or replace documents.

        Unknown ids are ignored. A document whose id exists is replaced and keeps its place in
        order; its derivations stay until they are derived again.

        Raises:
            TypeError: If metadata has a value that the store cannot hold; nothing is changed.
        """
        with self.transaction():
            self._remove_documents(remove)
            unique = {document.id: document for document in put}
            stored, _ = self._stored(ROOT, unique)
            new = [i for i in unique if i not in stored]
            for node in self._rows.get(new):
                if node is not None:
                    raise ValueError(
                        f"document id {node.id!r} is already used by a node of group "
                        f"{node.group!r}; choose another id"
                    )
            last = self._turns.next_key("documents", len(new))
            documents = {i: share.document for i, share in stored.items()}
            documents |= zip(new, range(last - len(new) + 1, last + 1), strict=True)
            rows = [(documents[i], to_id(i)) for i in new]
            self.database.run_many("INSERT INTO documents VALUES (?, ?)", rows)
            roots = {i: derive_root(unique[i], documents[i]) for i in unique}
            changed = {
                i: root
                for i, root in roots.items()
                if i not in stored or root.stamp != stored[i].stamp
            }
            self._write(ROOT, changed, documents, stored, {})

    def _remove_documents(self, ids: Sequence[str]) -> None:
        for group in (*self._groups.others(), ROOT) if ids else ():
            removed, _ = self._stored(group, ids)
            self._write(group, dict.fromkeys(removed), {}, removed, {})
        self.database.run_many("DELETE FROM documents WHERE id = ?", [(to_id(i),) for i in ids])
        self.delete_values(LAYOUTS, ids)

    # Derivations

    def groups(self) -> list[str]:
        """Return the names of the groups in the store, without ``ROOT``."""
        with self._turns:
            return self._groups.others()

    def count(self, group: str) -> int:
        """Return the number of nodes of a group; 0 if it was never built."""
        with self._turns:
            return self._groups.row(group).size

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group's derivations by document id, in document order."""
        return {from_id(i): Stamp(*stamp) for _, i, _, *stamp in self._stamp_rows(group, ids)}

    def _stamp_rows(self, group: str, ids: Collection[str] | None) -> list[Row]:
        with self._turns:
            key = self._groups.row(group).key
            if ids is None:
                query = (
                    f"{_STAMP} derivations d JOIN documents docs ON docs.key = d.document "
                    "WHERE d.grp = ? ORDER BY d.document"
                )
                return self.database.rows(query, [key])
            rows: list[Row] = []
            for batch in portions(map(to_id, ids)):
                query = (
                    f"{_STAMP} {_OF_DOCUMENTS} WHERE d.document = docs.key AND d.grp = ? "
                    f"AND docs.id IN ({marks(batch)})"
                )
                rows += self.database.rows(query, [key, *batch])
            return sorted(rows)

    def derivations(self, group: str, ids: Collection[str]) -> dict[str, Derivation]:
        """Return the derivations of a group from some documents, by document id."""
        with self._turns:
            rows = self._stamp_rows(group, ids)
            nodes: dict[str, list[Node]] = {from_id(row[1]): [] for row in rows}
            for node in self._rows.of_derivations(row[2] for row in rows):
                nodes[node.document_id].append(node)
            links = self._links.derived([node.id for of_one in nodes.values() for node in of_one])
            return {
                i: Derivation(
                    Stamp(*row[3:]),
                    tuple(nodes[i]),
                    tuple(link for node in nodes[i] for link in links.get(node.id, ())),
                )
                for i, row in zip(nodes, rows, strict=True)
            }

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace the derivations of one group, by document id.

        Raises:
            LookupError: If a document does not exist.
            TypeError: If a node has a value that the store cannot hold.
        """
        with self.transaction():
            stored, roots = self._stored(group, derivations)
            documents = {CORPUS: 0, **{i: root.document for i, root in roots.items()}}
            for document_id in derivations:
                if document_id not in documents:
                    raise LookupError(f"no document {document_id!r} to derive nodes from")
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
        grp = self._groups.key(group)
        replaced = {i: share for i, share in stored.items() if i in derivations}
        old_nodes: dict[str, dict[str, Node]] = {i: {} for i in replaced}
        for node in self._rows.of_derivations(share.key for share in replaced.values()):
            old_nodes[node.document_id][node.id] = node
        former = [i for nodes in old_nodes.values() for i in nodes]
        self._rows.drop(former)
        links = self._links.derived(former)
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
            if new is None:
                continue
            changed[document_id] = [node for i, node in nodes.items() if i not in unchanged]
            if old:
                old_links = [link for i in old for link in links.get(i, ())]
                links_changed |= old_links != [replace(link, derived=True) for link in new.links]
        count = sum(map(len, changed.values()))
        revision = self._groups.row(group).revision
        if removed or count or links_changed:
            revision = self._groups.next_revision(group)
            self._groups.record(group, revision, removed, count)
        if former:
            self._links.delete_of_nodes(former, deleted)
        db = self.database
        db.run_many("DELETE FROM nodes WHERE id = ?", [(to_id(i),) for i in removed])
        keys = [(share.key,) for share in replaced.values()]
        db.run_many("DELETE FROM derivations WHERE key = ?", keys)
        new_key = self._turns.next_key("derivations", len(derivations)) - len(derivations)
        node_key = self._turns.next_key("nodes", count) - count
        shares: list[Row] = []
        rows: list[Row] = []
        for document_id, nodes_of_one in changed.items():
            derivation = derivations[document_id]
            assert derivation is not None
            share = stored.get(document_id)
            new_key += 1
            key = new_key if share is None else share.key
            if group == ROOT:
                (root,) = derivation.nodes
                of_document = self._rows.fields(root)
                rows.append(self._rows.of_root(node_key + 1, key, revision, root))
            else:
                of_document = fields.get(document_id, NO_FIELDS)
                rows += self._rows.rows(node_key + 1, key, revision, nodes_of_one, of_document)
            node_key += len(nodes_of_one)
            of_share = revision if share is None or nodes_of_one else share.revision
            document = documents[document_id]
            shares.append((key, grp, document, *derivation.stamp, of_share, *of_document))
        db.run_many(_INSERT_DERIVATION, shares)
        self._rows.insert(rows)
        self._links.put(
            replace(link, derived=True)
            for derivation in derivations.values()
            if derivation is not None
            for link in derivation.links
        )
        self._turns.has_changed = True

    def _stored(
        self, group: str, ids: Iterable[str]
    ) -> tuple[dict[str, _Stored], dict[str, _Stored]]:
        """Return the derivations of a group, and those of ``ROOT``, by document id."""
        grp = self._groups.row(group).key
        stored: dict[str, _Stored] = {}
        roots: dict[str, _Stored] = {}
        for batch in portions(map(to_id, ids)):
            query = (
                "SELECT docs.id, d.grp, docs.key, d.key, d.revision, d.fields, d.search_text, "
                f"d.source, d.rule, d.metadata FROM {_OF_DOCUMENTS} "
                f"WHERE d.document = docs.key AND d.grp IN (0, ?) AND docs.id IN ({marks(batch)})"
            )
            for row in self.database.rows(query, [grp, *batch]):
                i, of, document, key, revision, fields, declared, *stamp = row
                share = _Stored(document, key, revision, (fields, declared), Stamp(*stamp))
                if of == grp:
                    stored[from_id(i)] = share
                if of == 0:
                    roots[from_id(i)] = share
        return stored, roots

    # Nodes

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id; None for ids that do not exist."""
        with self._turns:
            return self._rows.get(list(ids))

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of the parent of each existing node; None for nodes without a parent."""
        parents: dict[str, str | None] = {}
        with self._turns:
            for batch in portions(map(to_id, ids)):
                rows = self.database.rows(
                    "SELECT n.id, n.parent, docs.id, d.grp FROM nodes n JOIN derivations d "
                    "ON d.key = n.derivation JOIN documents docs ON docs.key = d.document "
                    f"WHERE n.id IN ({marks(batch)})",
                    batch,
                )
                for node, parent, document, grp in rows:
                    above = document if parent is None else parent
                    parents[from_id(node)] = (from_id(above) or None) if grp else None
        return parents

    def page(self, group: str, after: int = -1) -> list[Node]:
        """Return the next nodes of a group (also ``ROOT``) in document order, about 1,000.

        Args:
            group: The group.
            after: The ``order`` of the last node that was read before.
        """
        document, place = divmod(after, DOCUMENT_STRIDE) if after >= 0 else (-1, 0)
        with self._turns:
            return self._rows.read(
                "d.grp = ? AND d.document >= ? AND (d.document > ? OR n.place > ?) "
                "ORDER BY d.document, n.place LIMIT ?",
                [self._groups.row(group).key, document, document, place, PAGE],
            )

    def nodes(self, group: str) -> Iterator[Node]:
        """Yield the nodes of a group in document order, read in pages."""
        page = self.page(group)
        while page:
            yield from page
            page = self.page(group, page[-1].order) if len(page) == PAGE else []

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group (also ``ROOT``), in document order."""
        with self._turns:
            rows = self.database.rows(
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = ? ORDER BY d.document, n.place",
                [self._groups.row(group).key],
            )
            return [from_id(i) for (i,) in rows]

    def children(self, group: str, parent: Node) -> list[Node]:
        """Return the children of a node in a group, in document order."""
        with self._turns:
            values: list[Any] = [self._groups.row(group).key, to_id(parent.document_id)]
            of_parent = "n.parent IS NULL"
            if parent.id != parent.document_id:
                of_parent = "n.parent = ?"
                values.append(to_id(parent.id))
            where = f"d.grp = ? AND docs.id = ? AND {of_parent} ORDER BY n.place"
            return self._rows.read(where, values)

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document, across parents."""
        place = node.order % DOCUMENT_STRIDE
        with self._turns:
            key = self._groups.row(node.group).key
            nodes = self._rows.read(
                "d.grp = ? AND docs.id = ? AND n.place IN (?, ?)",
                [key, to_id(node.document_id), place - 1, place + 1],
            )
            found = {other.order: other for other in nodes}
        return found.get(node.order - 1), found.get(node.order + 1)

    # Revisions

    def revision(self, group: str) -> int:
        """Return the revision of a group, which grows with every change of its nodes and links."""
        with self._turns:
            return self._groups.row(group).revision

    def changed_ids(self, group: str, since: int) -> tuple[list[str], list[str]] | None:
        """Return the ids of removed and of added nodes after a revision; None if unknown."""
        with self._turns:
            if since == self.revision(group):
                return [], []
            return self._groups.changed_ids(group, since)

    def changes(self, group: str, since: int) -> Changes:
        """Return the changes of a group after a revision.

        All nodes, read in pages, if the revision is 0, unknown or too old.
        """
        with self._turns:
            revision = self.revision(group)
            if since and since == revision:
                return Changes(revision, [], [])
            ids = self._groups.changed_ids(group, since) if since else None
            if ids is None:
                everything = AllNodes(self, group) if self.count(group) else []
                return Changes(revision, [], everything, complete=True)
            removed, added = ids
            nodes = [node for node in self.get(added) if node is not None]
            return Changes(revision, removed, sorted(nodes, key=lambda node: node.order))

    def built(self, group: str) -> tuple[str, int] | None:
        """Return the rules of a group's last complete build, and its ``ROOT`` revision."""
        with self._turns:
            row = self._groups.row(group)
            return None if row.rules is None else (row.rules, row.built_for)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Store the rules of a complete build, and its ``ROOT`` revision."""
        with self.transaction(durable=False):
            row = self._groups.row(group)
            if (row.rules, row.built_for) != (rules, revision):
                self._groups.put(group, row._replace(rules=rules, built_for=revision))
                self._turns.has_changed = True

    def check(self, nodes: Sequence[Node]) -> None:
        """Check that nodes can be stored.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        self._rows.check(nodes)

    # Links

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node, in insertion order.

        Links to or from missing nodes are omitted.
        """
        with self._turns:
            return self._links.of(ids, incoming=incoming)

    def link(self, links: Sequence[Link]) -> None:
        """Insert links, or replace links with equal nodes and type.

        Raises:
            LookupError: If a node does not exist.
        """
        with self.transaction():
            ends = [i for link in links for i in (link.source, link.target)]
            nodes = self.get(ends)
            for i, node in zip(ends, nodes, strict=True):
                if node is None:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
            self._links.put(links)
            self._record_links(nodes[::2])

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links; unknown links are ignored."""
        with self.transaction():
            self._links.delete(links)
            self._record_links(self.get([link.source for link in links]))

    def _record_links(self, sources: Sequence[Node | None]) -> None:
        """Record a change of links as a change of the groups of their sources."""
        groups = dict.fromkeys(node.group for node in sources if node is not None)
        groups.pop(ROOT, None)  # nothing is derived from the links of documents
        for group in groups:
            self._groups.record(group, self._groups.next_revision(group), [], 0)
        self._turns.has_changed = True

    # Values

    def get_values(
        self, kind: str, keys: Collection[str] | None = None, *, limit: int | None = None
    ) -> dict[str, bytes]:
        """Return existing values of a kind by key: some of them, all, or any up to a limit."""
        with self.database.lock:
            return self._values.get(kind, keys, limit)

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Insert or replace values of a kind, by key."""
        if values:
            with self.transaction():
                self._values.put(kind, values)

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values of a kind: some of them, or all."""
        if keys is None or keys:
            with self.transaction():
                self._values.delete(kind, keys)

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        with self.database.lock:
            return self._values.kinds()


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
    if separator:
        return _opened_by_plugin(scheme, str(store))
    return GraphStore(SQLiteDatabase(Path(store).expanduser().absolute()))


def _opened_by_plugin(scheme: str, address: str) -> GraphStore:
    from ..plugins import STORES, load_plugin, plugins  # most graphs are in files

    if scheme not in plugins(STORES):
        raise ValueError(
            f"the scheme of a store must be one of {nearest_names(scheme, plugins(STORES))}, got "
            f"{scheme!r:.80}; write 'postgresql://user@host/database?schema=name', or the path of "
            "a file"
        )
    opened: GraphStore = load_plugin(STORES, scheme)(address)
    return opened
