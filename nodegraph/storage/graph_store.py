"""The store of a graph: documents, nodes, links and values in the tables of an SQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..derivation import DOCUMENT_STRIDE, Derivation, Stamp, derive_root, unmoved
from ..document import Document
from ..locations import LAYOUTS
from ..node import NO_METADATA, ROOT, Link, Node
from .database import Database, Row
from .links import LinkTable
from .revisions import Groups
from .rows import ValueColumns, from_id, from_text, marks, portions, to_id, to_text
from .versions import Versions

if TYPE_CHECKING:
    from ..vector_table import VectorTable

PAGE = 1000
"""Nodes that are read in one turn."""

_CACHED_NODES = 2000

_NODE_COLUMNS = (
    "derivation, place, parent, text, content, begin, size, shift, metadata, inherited, "
    "search_text, inherited_search_text, revision"
)

_INSERT_NODE = f"INSERT INTO nodes (key, id, {_NODE_COLUMNS}) VALUES ({marks(range(15))})"

_UPDATE_NODE = (
    f"UPDATE nodes SET {', '.join(f'{name} = ?' for name in _NODE_COLUMNS.split(', '))} "
    "WHERE key = ?"
)

_NODE = """
    SELECT n.id, n.text, n.content, n.begin, n.size, n.shift, n.metadata, n.inherited, n.parent,
        n.place, d.version, d.document, docs.id, d.grp, n.search_text, n.inherited_search_text,
        n.key, n.revision
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document
"""

# SQLite looks up the documents first: with JOIN it may read all derivations of the group.
_OF_DOCUMENTS = "documents docs CROSS JOIN derivations d"

_STAMP = """
    SELECT d.document, docs.id, d.source, d.rule, d.metadata FROM derivations d
    JOIN documents docs ON docs.key = d.document
    WHERE d.grp = ?
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a group between two revisions.

    Attributes:
        revision: The revision that the changes lead to.
        removed: Ids of removed nodes. Apply the removals first.
        added: New nodes, and nodes whose place or metadata changed, whose ids are in ``removed``
            as well.
        complete: Whether ``added`` is the whole group and the former content is invalid.
    """

    revision: int
    removed: Sequence[str]
    added: Sequence[Node]
    complete: bool = False


@dataclass(slots=True)
class _Batch:
    """The writes of one group, collected for a few statements.

    Attributes:
        removed: Ids of nodes that are deleted or changed.
        changed: Ids of nodes that are new or changed.
        deleted: Ids of deleted nodes.
        replaced: Ids of all former nodes.
        links_changed: Whether links of unchanged nodes differ.
    """

    removed: list[str]
    changed: set[str]
    deleted: list[str]
    replaced: list[str]
    links_changed: bool = False


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
        self._state = -1  # unknown: another transaction may have changed it
        self._counters: dict[str, int] = {}  # inside a transaction
        self._groups = Groups(self.database, self._next_key)
        self._versions = Versions(self.database, self._columns, self._next_key)
        self._links = LinkTable(self.database, self._columns, self._next_key)
        self._nodes: dict[str, Node | None] = {}
        self._touched = False

    def __getstate__(self) -> dict[str, Any]:
        return {"database": self.database, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

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

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        with self.database.lock:
            self.database.close()
            self._forget()

    def compact(self) -> None:
        """Free the disk space of deleted data."""
        self.database.compact()

    def vector_table(self, group: str, *names: str) -> VectorTable | None:
        """Return the table of a group's vectors in the database; None if it has no such tables."""
        return None

    # Turns and transactions

    @contextmanager
    def turn(self) -> Iterator[int]:
        """Hold the lock and read one state until the block ends. The block gets its number.

        The number changes with every change of nodes and links, by any process.
        """
        with self.database.turn() as outermost:
            if outermost:
                ((state,),) = self.database.rows("SELECT value FROM counters WHERE name = 'state'")
                if state != self._state:
                    self._groups.forget()
                    self._nodes = {}
                    self._state = state
                elif len(self._nodes) > _CACHED_NODES:
                    self._nodes = {}
            yield self._state

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """Hold the lock and commit all writes of the block, or none if the block raises.

        Args:
            durable: Whether the commit survives a power failure.

        Raises:
            RuntimeError: If the thread is inside a turn.
            StoreError: If the store cannot be written to.
        """
        with self.database.lock:
            try:
                with self.database.transaction(durable=durable) as outermost:
                    if not outermost:
                        yield
                        return
                    self._state, self._touched, self._nodes = -1, False, {}
                    self._groups.forget()
                    self._counters = dict(self.database.rows("SELECT name, value FROM counters"))
                    before = dict(self._counters)
                    yield
                    self._counters["state"] += self._touched
                    changed = [
                        (value, name)
                        for name, value in self._counters.items()
                        if value != before[name]
                    ]
                    self.database.run_many("UPDATE counters SET value = ? WHERE name = ?", changed)
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        """Clear all caches, which may hold rows that were rolled back."""
        self._state, self._nodes = -1, {}
        self._groups.forget()
        self._versions.forget()

    def _next_key(self, table: str, count: int) -> int:
        """Assign keys; return the last one."""
        self._counters[table] += count
        return self._counters[table]

    # Documents

    def document_ids(self) -> list[str]:
        """Return the ids of all documents, in the order they were first added."""
        return list(self.stamps(ROOT))

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with their derived nodes, then insert or replace documents.

        Unknown ids are ignored. A document whose id exists is replaced and keeps its place in
        order; its derivations stay until they are derived again.

        Raises:
            TypeError: If metadata has a value that the store cannot hold; nothing is changed.
        """
        with self.transaction():
            if remove and (removed := self._documents(remove)):
                for group in (*self._groups.others(), ROOT):
                    stored = self.stamps(group, removed)
                    self._write(group, dict.fromkeys(stored), removed)
                self.database.run_many(
                    "DELETE FROM documents WHERE key = ?", [(key,) for key in removed.values()]
                )
                self.delete_values(LAYOUTS, removed)
            unique = {document.id: document for document in put}
            documents = self._documents(unique)
            stamps = self.stamps(ROOT, unique) if documents else {}
            new = [i for i in unique if i not in documents]
            last = self._next_key("documents", len(new))
            keys = dict(zip(new, range(last - len(new) + 1, last + 1), strict=True))
            rows = [(key, to_id(i)) for i, key in keys.items()]
            self.database.run_many("INSERT INTO documents VALUES (?, ?)", rows)
            documents |= keys
            roots = {
                i: derive_root(document, documents[i])
                for i, document in unique.items()
                if i in keys or derive_root(document, 0).stamp != stamps.get(i)
            }
            self._write(ROOT, roots, documents)

    def _documents(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the keys of existing documents."""
        found: dict[str, int] = {}
        for batch in portions(map(to_id, ids)):
            query = f"SELECT id, key FROM documents WHERE id IN ({marks(batch)})"
            found.update((from_id(i), key) for i, key in self.database.rows(query, batch))
        return found

    # Derivations

    def groups(self) -> list[str]:
        """Return the names of the groups in the store, without ``ROOT``."""
        with self.turn():
            return list(self._groups.others())

    def count(self, group: str) -> int:
        """Return the number of nodes of a group; 0 if it was never built."""
        with self.turn():
            return self._groups.row(group).size

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group's derivations by document id, in document order."""
        with self.turn():
            key, db = self._groups.row(group).key, self.database
            if ids is None:
                rows = db.rows(f"{_STAMP} ORDER BY d.document", [key])
            else:
                rows = sorted(
                    row
                    for batch in portions(map(to_id, ids))
                    for row in db.rows(
                        "SELECT d.document, docs.id, d.source, d.rule, d.metadata "
                        f"FROM {_OF_DOCUMENTS} WHERE d.document = docs.key AND d.grp = ? "
                        f"AND docs.id IN ({marks(batch)})",
                        [key, *batch],
                    )
                )
            return {from_id(i): Stamp(*stamp) for _, i, *stamp in rows}

    def derivations(self, group: str, ids: Collection[str]) -> dict[str, Derivation]:
        """Return the derivations of a group from some documents, by document id."""
        with self.turn():
            stamps = self.stamps(group, ids)
            nodes: dict[str, list[Node]] = {i: [] for i in stamps}
            key = self._groups.row(group).key
            for batch in portions(map(to_id, stamps)):
                query = (
                    f"SELECT d.key FROM {_OF_DOCUMENTS} WHERE d.document = docs.key "
                    f"AND d.grp = ? AND docs.id IN ({marks(batch)})"
                )
                keys = [number for (number,) in self.database.rows(query, [key, *batch])]
                where = f"n.derivation IN ({marks(keys)}) ORDER BY d.document, n.place"
                for node in self._nodes_of(self._node_rows(where, keys)):
                    nodes[node.document_id].append(node)
            links = self._links.derived([node.id for of_one in nodes.values() for node in of_one])
            return {
                i: Derivation(
                    *stamp,
                    tuple(nodes[i]),
                    tuple(link for node in nodes[i] for link in links.get(node.id, ())),
                )
                for i, stamp in stamps.items()
            }

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return the derivation of a group from one document, or None."""
        return self.derivations(group, [document_id]).get(document_id)

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace the derivations of one group, by document id.

        Raises:
            LookupError: If a document does not exist.
            TypeError: If a node has a value that the store cannot hold.
        """
        with self.transaction():
            documents = self._documents(derivations)
            for document_id in derivations:
                if document_id not in documents:
                    raise LookupError(f"no document {document_id!r} to derive nodes from")
            self._write(group, derivations, documents)

    def _write(
        self,
        group: str,
        derivations: Mapping[str, Derivation | None],
        documents: Mapping[str, int],
    ) -> None:
        """Write derivations; delete those given as None. ``documents`` maps ids to keys."""
        if not derivations:
            return
        grp = self._groups.key(group)
        by_document = {documents[i]: i for i in derivations}
        old: dict[str, tuple[int, int | None, int]] = {}  # derivation, version, revision
        newest: dict[str, int | None] = {}
        for batch in portions(by_document):
            where = f"document IN ({marks(batch)})"
            query = (
                "SELECT document, key, version, revision FROM derivations WHERE grp = ? "
                f"AND {where}"
            )
            for key, *share in self.database.rows(query, [grp, *batch]):
                old[by_document[key]] = share[0], share[1], share[2]
            if group != ROOT:
                query = f"SELECT document, version FROM derivations WHERE grp = 0 AND {where}"
                for key, version in self.database.rows(query, batch):
                    newest[by_document[key]] = version
        rows_of: dict[str, list[Row]] = {i: [] for i in old}
        if old:
            by_key = {share[0]: i for i, share in old.items()}
            for batch in portions(by_key):
                where = f"n.derivation IN ({marks(batch)}) ORDER BY d.document, n.place"
                for row in self._node_rows(where, batch):
                    rows_of[by_document[row[11]]].append(row)
        changes = self._compare(group, derivations, rows_of)
        revision = self._groups.row(group).revision
        if changes.removed or changes.changed or changes.links_changed:
            revision = self._groups.next_revision(group)
            self._groups.record(group, revision, changes.removed, len(changes.changed))
        if changes.replaced:
            self._links.delete_of_nodes(changes.replaced, changes.deleted)
        new = {i: derivation for i, derivation in derivations.items() if derivation is not None}
        if group == ROOT:
            newest |= self._versions.put(new[i].nodes[0] for i in new)
        self._put_rows(grp, new, documents, old, newest, rows_of, changes, revision)
        deleted = [i for i in derivations if i not in new and i in old]
        db = self.database
        db.run_many("DELETE FROM derivations WHERE key = ?", [(old[i][0],) for i in deleted])
        db.run_many("DELETE FROM nodes WHERE derivation = ?", [(old[i][0],) for i in deleted])
        self._versions.delete_unused(
            version for i, (_, version, _) in old.items() if newest.get(i) != version
        )
        self._links.put(
            replace(link, derived=True) for derivation in new.values() for link in derivation.links
        )
        self._touched = True

    def _compare(
        self,
        group: str,
        derivations: Mapping[str, Derivation | None],
        rows_of: Mapping[str, Sequence[Row]],
    ) -> _Batch:
        """Compare derivations with the stored nodes."""
        batch = _Batch([], set(), [], [])
        for document_id, new in derivations.items():
            nodes = {} if new is None else {node.id: node for node in new.nodes}
            stored = rows_of.get(document_id, ())
            unchanged: set[str] = set()
            ids = [from_id(row[0]) for row in stored]
            if stored and new is not None and group != ROOT:
                former = list(self._nodes_of(stored))
                unchanged = {
                    node.id for node in former if node.id in nodes and unmoved(node, nodes[node.id])
                }
                old_links = [link for of in self._links.derived(ids).values() for link in of]
                new_links = [replace(link, derived=True) for link in new.links]
                batch.links_changed |= old_links != new_links
            batch.removed += [i for i in ids if i not in unchanged]
            batch.changed.update(i for i in nodes if i not in unchanged)
            batch.deleted += [i for i in ids if i not in nodes]
            batch.replaced += ids
        return batch

    def _put_rows(
        self,
        grp: int,
        new: Mapping[str, Derivation],
        documents: Mapping[str, int],
        old: Mapping[str, tuple[int, int | None, int]],
        newest: Mapping[str, int | None],
        rows_of: Mapping[str, Sequence[Row]],
        batch: _Batch,
        revision: int,
    ) -> None:
        """Write the rows of derivations and their nodes."""
        self._versions.load({newest.get(document_id) for document_id in new})
        last = self._next_key("derivations", len(new.keys() - old.keys()))
        keys = iter(range(last - len(new.keys() - old.keys()) + 1, last + 1))
        inserted: list[Row] = []
        updated: list[Row] = []
        nodes: list[Row] = []
        changed_nodes: list[Row] = []
        count = sum(len(derivation.nodes) for derivation in new.values())
        node_key = self._next_key("nodes", count) - count
        for document_id, derivation in new.items():
            version = newest.get(document_id)
            existing = {row[0]: (row[16], row[17]) for row in rows_of.get(document_id, ())}
            is_changed = any(node.id in batch.changed for node in derivation.nodes)
            share = old.get(document_id)
            of_share = revision if share is None or is_changed else share[2]
            key = next(keys) if share is None else share[0]
            stamp = derivation.stamp
            if share is None:
                document = documents[document_id]
                inserted.append((key, grp, document, version, *stamp, of_share))
            else:
                updated.append((version, *stamp, of_share, key))
            for name, row in self._rows_of(derivation.nodes, key, version, f"group {grp}"):
                stored = existing.get(name)
                if stored is None:
                    node_key += 1
                    nodes.append((node_key, name, *row, revision))
                else:
                    number = revision if from_id(name) in batch.changed else stored[1]
                    changed_nodes.append((*row, number, stored[0]))
        db = self.database
        db.run_many("DELETE FROM nodes WHERE id = ?", [(to_id(i),) for i in batch.deleted])
        db.run_many(
            "INSERT INTO derivations (key, grp, document, version, source, rule, metadata, "
            f"revision) VALUES ({marks(range(8))})",
            inserted,
        )
        db.run_many(
            "UPDATE derivations SET version = ?, source = ?, rule = ?, metadata = ?, "
            "revision = ? WHERE key = ?",
            updated,
        )
        db.run_many(_INSERT_NODE, nodes)
        db.run_many(_UPDATE_NODE, changed_nodes)

    def _rows_of(
        self, nodes: Sequence[Node], derivation: int, version: int | None, owner: str
    ) -> Iterator[tuple[bytes, Row]]:
        """Yield the id of each node and its columns, without the revision."""
        columns, versions = self._columns, self._versions
        shared, search_text = (NO_METADATA, None) if version is None else versions.document(version)
        siblings, beyond = NO_METADATA, None
        if shared:
            siblings = shared
        for node in nodes:
            is_root = node.group == ROOT
            text: bytes | None = None
            if (
                node.start is None
                or version is None
                or (not is_root and versions.text(version, node.start, len(node.text)) != node.text)
            ):
                text = to_text(node.text)
            if node.inherited is not siblings:
                siblings = node.inherited
                beyond = columns.to_metadata(_beyond(siblings, shared), "a parent")
            own, above = None, None
            if not is_root:
                own = self._versions.put_search_text(node.search_text)
                if node.inherited_search_text != search_text:
                    above = self._versions.put_search_text(node.inherited_search_text) or 0
            of_document = node.parent_id is None or node.parent_id == node.document_id
            metadata = None
            if not is_root and node.own_metadata:
                metadata = columns.to_metadata(
                    node.own_metadata, f"a node of document {node.document_id!r}"
                )
            row = (
                derivation,
                node.order % DOCUMENT_STRIDE,
                None if of_document else to_id(node.parent_id or ""),
                text,
                None if node.content is node.text else _content(columns, node),
                node.start,
                None if text is not None else len(node.text),
                node.offset,
                metadata,
                None if is_root else beyond,
                own,
                above,
            )
            yield to_id(node.id), row

    # Nodes

    def _node_rows(self, where: str, values: Sequence[Any]) -> list[Row]:
        return self.database.rows(f"{_NODE} WHERE {where}", values)

    def _nodes_of(self, rows: Sequence[Row]) -> Iterator[Node]:
        versions, columns = self._versions, self._columns
        versions.load({row[10] for row in rows})
        of_siblings: tuple[Any, Any] = None, None  # siblings share their inherited metadata
        above: Mapping[str, Any] = NO_METADATA
        for row in rows:
            node_id, text, content, start, size, shift, own, inherited, parent, place = row[:10]
            version, document, document_id, grp, own_key, above_key = row[10:16]
            shared, search_text = NO_METADATA, None
            if version is not None:
                shared, search_text = versions.document(version)
            words = versions.text(version, start, size) if text is None else from_text(text)
            if (version, inherited) != of_siblings:
                of_siblings = version, inherited
                above = shared
                if inherited is not None:
                    above = {**shared, **columns.from_value(inherited)}
            name, group = from_id(document_id), self._groups.name(grp)
            if group == ROOT:
                yield Node(
                    words, shared, None, start, len(words), name, ROOT, name, None, None,
                    document * DOCUMENT_STRIDE, NO_METADATA, search_text,
                )  # fmt: skip
                continue
            yield Node(
                words,
                NO_METADATA if own is None else columns.from_value(own),
                None if content is None else columns.from_value(content),
                start,
                None if start is None else start + len(words),
                from_id(node_id),
                group,
                name,
                (name or None) if parent is None else from_id(parent),
                shift,
                document * DOCUMENT_STRIDE + place,
                above,
                None if own_key is None else versions.search_text(own_key),
                search_text if above_key is None else versions.search_text(above_key),
            )

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id; None for ids that do not exist."""
        requested = list(ids)
        with self.turn():
            cached = self._nodes if self._state >= 0 else {}
            missing = [i for i in dict.fromkeys(requested) if i not in cached]
            for batch in portions(map(to_id, missing)):
                for node in self._nodes_of(self._node_rows(f"n.id IN ({marks(batch)})", batch)):
                    cached[node.id] = node
            for i in missing:
                cached.setdefault(i, None)
            return [cached[i] for i in requested]

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of the parent of each existing node; None for nodes without a parent."""
        parents: dict[str, str | None] = {}
        with self.turn():
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
        with self.turn():
            rows = self._node_rows(
                "d.grp = ? AND d.document >= ? AND (d.document > ? OR n.place > ?) "
                "ORDER BY d.document, n.place LIMIT ?",
                [self._groups.row(group).key, document, document, place, PAGE],
            )
            return list(self._nodes_of(rows))

    def nodes(self, group: str) -> Iterator[Node]:
        """Yield the nodes of a group in document order, read in pages."""
        page = self.page(group)
        while page:
            yield from page
            page = self.page(group, page[-1].order) if len(page) == PAGE else []

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group (also ``ROOT``), in document order."""
        with self.turn():
            rows = self.database.rows(
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = ? ORDER BY d.document, n.place",
                [self._groups.row(group).key],
            )
            return [from_id(i) for (i,) in rows]

    def children(self, group: str, parent: Node) -> list[Node]:
        """Return the children of a node in a group, in document order."""
        with self.turn():
            values: list[Any] = [self._groups.row(group).key, to_id(parent.document_id)]
            of_parent = "n.parent IS NULL"
            if parent.id != parent.document_id:
                of_parent = "n.parent = ?"
                values.append(to_id(parent.id))
            where = f"d.grp = ? AND docs.id = ? AND {of_parent} ORDER BY n.place"
            return list(self._nodes_of(self._node_rows(where, values)))

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document, across parents."""
        place = node.order % DOCUMENT_STRIDE
        with self.turn():
            key = self._groups.row(node.group).key
            rows = self._node_rows(
                "d.grp = ? AND docs.id = ? AND n.place IN (?, ?)",
                [key, to_id(node.document_id), place - 1, place + 1],
            )
            found = {other.order: other for other in self._nodes_of(rows)}
        return found.get(node.order - 1), found.get(node.order + 1)

    # Revisions

    def revision(self, group: str) -> int:
        """Return the revision of a group, which grows with every change of its nodes and links."""
        with self.turn():
            return self._groups.row(group).revision

    def changed_ids(self, group: str, since: int) -> tuple[list[str], list[str]] | None:
        """Return the ids of removed and of added nodes after a revision; None if unknown."""
        with self.turn():
            if since == self.revision(group):
                return [], []
            return self._groups.changed_ids(group, since)

    def changes(self, group: str, since: int) -> Changes:
        """Return the changes of a group after a revision.

        All nodes if the revision is 0, unknown or too old.
        """
        with self.turn():
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
        with self.turn():
            row = self._groups.row(group)
            return None if row.rules is None else (row.rules, row.built_for)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Store the rules of a complete build, and its ``ROOT`` revision."""
        with self.transaction(durable=False):
            row = self._groups.row(group)
            if (row.rules, row.built_for) != (rules, revision):
                self._groups.key(group)
                row = self._groups.row(group)
                self._groups.put(group, row._replace(rules=rules, built_for=revision))
                self._touched = True

    def check(self, nodes: Sequence[Node]) -> None:
        """Check that nodes can be stored.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        if not self._columns.keeps_objects:
            for node in nodes:
                self._columns.to_metadata(node.own_metadata, f"node {node.text!r:.40}")
                _content(self._columns, node)

    # Links

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node, in insertion order.

        Only links whose both ends exist.
        """
        with self.turn():
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
        self._touched = True

    # Values

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return existing values of a kind by key: some of them, or all."""
        query = (
            "SELECT kept.key, kept.value FROM kept JOIN kinds ON kinds.key = kept.kind "
            "WHERE kinds.name = ?"
        )
        name = to_text(kind)
        if keys is None:
            rows = self.database.rows(query, [name])
        else:
            rows = [
                row
                for batch in portions(map(to_id, keys))
                for row in self.database.rows(
                    f"{query} AND kept.key IN ({marks(batch)})", [name, *batch]
                )
            ]
        return {from_id(key): value for key, value in rows}

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Insert or replace values of a kind, by key."""
        if not values:
            return
        with self.transaction():
            rows = self.database.rows("SELECT key FROM kinds WHERE name = ?", [to_text(kind)])
            key = rows[0][0] if rows else self._next_key("kinds", 1)
            if not rows:
                self.database.run_many("INSERT INTO kinds VALUES (?, ?)", [(key, to_text(kind))])
            self.database.run_many(
                "INSERT INTO kept VALUES (?, ?, ?) "
                "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                [(key, to_id(name), value) for name, value in values.items()],
            )

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values of a kind: some of them, or all."""
        with self.transaction():
            of_kind = "kind = (SELECT key FROM kinds WHERE name = ?)"
            name = to_text(kind)
            if keys is None:
                self.database.run_many(f"DELETE FROM kept WHERE {of_kind}", [(name,)])
                self.database.run_many("DELETE FROM kinds WHERE name = ?", [(name,)])
            else:
                self.database.run_many(
                    f"DELETE FROM kept WHERE {of_kind} AND key = ?",
                    [(name, to_id(key)) for key in keys],
                )

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        rows = self.database.rows(
            "SELECT name FROM kinds WHERE EXISTS "
            "(SELECT 1 FROM kept WHERE kept.kind = kinds.key) ORDER BY key"
        )
        return [from_text(name) for (name,) in rows]


class AllNodes(Sequence[Node]):
    """The nodes of a group in document order, read in pages each time they are iterated."""

    def __init__(self, store: GraphStore, group: str) -> None:
        self._store = store
        self._group = group

    def __len__(self) -> int:
        return self._store.count(self._group)

    def __iter__(self) -> Iterator[Node]:
        return self._store.nodes(self._group)

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


def _content(columns: ValueColumns, node: Node) -> bytes | None:
    """Return the content of a node; None if it equals the text."""
    if type(node.content) is str and node.content == node.text:
        return None
    return columns.to_value(node.content)


def _beyond(inherited: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inherited metadata that the document does not have."""
    return {k: v for k, v in inherited.items() if k not in shared or shared[k] != v}
