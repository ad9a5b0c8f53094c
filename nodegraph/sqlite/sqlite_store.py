"""Documents, nodes and links in one SQLite file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from ..codec import encode
from ..database import DatabaseStore
from ..derivation import CORPUS, DOCUMENT_STRIDE, Amendment, Derivation, Stamp
from ..hashing import digest
from ..node import NO_METADATA, ROOT, Link, Node
from . import tables
from .connection import Connection, Row
from .file import GraphFile
from .tables import (
    NODE,
    SQLiteJournal,
    Versions,
    from_column,
    from_json,
    from_key,
    placeholders,
    portions,
    to_column,
    to_json,
    to_key,
)

_PUT_NODE = """
    INSERT INTO nodes (id, derivation, place, parent, text, content, begin, size, shift, metadata,
        inherited, sequence, search_text, inherited_search_text)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET derivation = excluded.derivation, place = excluded.place,
        parent = excluded.parent, text = excluded.text, content = excluded.content,
        begin = excluded.begin, size = excluded.size, shift = excluded.shift,
        metadata = excluded.metadata, inherited = excluded.inherited, sequence = excluded.sequence,
        search_text = excluded.search_text,
        inherited_search_text = excluded.inherited_search_text
"""

_STAMP = """
    SELECT docs.id, d.source, d.rule, d.metadata, d.key FROM derivations d
    JOIN groups ON groups.key = d.grp JOIN documents docs ON docs.key = d.document
    WHERE groups.name = ?
"""


class _Share(NamedTuple):
    """What the file has of one document in one group, None where it has nothing."""

    document: int
    derivation: int | None
    version: int | None
    sequence: int | None
    newest: int | None  # the version that the document has now


class SQLiteStore(DatabaseStore[GraphFile]):
    """Keep a graph in one file, for years: crash-safe, shared by threads and processes.

    Every write is a transaction; what has returned is on the disk. Many threads and processes
    read while one writes, each of them one state. A node that was cut out of its document is
    kept as a span, so that the text is there once.

    Args:
        path: The file; made where it is missing. SQLite keeps ``-wal`` and ``-shm`` beside it
            while it is open, and a ``.lock`` lets one process write at a time.
        timeout: Seconds to wait while another process writes.

    Raises:
        StoreError: If the file can't be opened, is not a nodekin graph, or has another format.
    """

    def __init__(self, path: str | Path, *, timeout: float = 60.0) -> None:
        self.path = Path(path).expanduser().absolute()
        self.timeout = timeout
        super().__init__()

    def _set_up(self) -> None:
        self._database = GraphFile(self.path, self.timeout, lambda: self._versions.clear_cache())
        self._versions = Versions(self._database)
        self._journal: SQLiteJournal = SQLiteJournal(self._database)

    @property
    def index_folder(self) -> Path:
        """Where indexes that can be made again are kept: ``<file>-indexes``."""
        return self.path.with_name(self.path.name + "-indexes")

    @property
    def place(self) -> str:
        """The path of the file, without links."""
        return str(self.path.resolve())

    def exclusive(self, purpose: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Keep others from the same work, by a lock of a file beside the indexes."""
        return self._database.exclusive(self.index_folder / f"{digest(purpose)}.lock", wait)

    def made_again(self) -> AbstractContextManager[None]:
        """Commit without waiting for the disk: a power cut may undo the last transactions."""
        return self._database.made_again()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        super().close()
        self._versions.clear_cache()

    def compact(self) -> None:
        """Write the file again, without the space of what was removed.

        Raises:
            StoreError: If there is no room for a second file meanwhile.
        """
        self._database.compact()

    # Writing

    def write_derivations(
        self, group: str, derivations: Mapping[str, Derivation | None], changed: Collection[str]
    ) -> None:
        """Insert, replace or delete derivations.

        Raises:
            TypeError: If a node has a value that no file can hold.
        """
        with self._database.transaction() as db:
            key, sequence = self._journal.key(group), self._journal.state(group).sequence
            changed = set(changed)
            for document_id, new in derivations.items():
                share = self._share(db, key, document_id)
                if new is not None:
                    self._put_derivation(db, key, share, new, changed, sequence)
                elif group == ROOT:
                    query = "SELECT version FROM derivations WHERE document = ?"
                    versions = {version for (version,) in db.rows(query, [share.document])}
                    db.run("DELETE FROM documents WHERE key = ?", [share.document])
                    self._versions.drop_unused(db, versions)
                else:
                    db.run("DELETE FROM derivations WHERE key = ?", [share.derivation])
                    self._versions.drop_unused(db, [share.version])

    def write_amendment(self, group: str, document_id: str, amendment: Amendment) -> None:
        """Write the nodes and the stamp of an amendment."""
        with self._database.transaction() as db:
            key, sequence = self._journal.key(group), self._journal.state(group).sequence
            share = self._share(db, key, document_id)
            stamp, version = amendment.stamp, share.newest
            derivation = self._put_stamp(db, key, share, version, stamp, sequence)
            removed = ([to_key(node_id)] for node_id in amendment.removed)
            db.run_many("DELETE FROM nodes WHERE id = ?", removed)
            context = derivation, version
            self._put_nodes(db, context, amendment.nodes, sequence, {})

    def _place(self, document_id: str) -> int:
        """Return the number of a document, which may be damaged."""
        query = "SELECT key FROM documents WHERE id = ?"
        (place,) = self._database.db.row(query, [to_column(document_id)]) or (0,)
        return int(place)

    def _share(self, db: Connection, group: int, document_id: str) -> _Share:
        """Return what the file has of a document in a group; a new document gets a key."""
        name = to_column(document_id)
        query = (
            "SELECT docs.key, d.key, d.version, d.sequence, root.version FROM documents docs "
            "LEFT JOIN derivations d ON d.document = docs.key AND d.grp = ? "
            "LEFT JOIN derivations root ON root.document = docs.key AND root.grp = 0 "
            "WHERE docs.id = ?"
        )
        row = db.row(query, [group, name])
        if row is None:
            document = db.run("INSERT INTO documents (id) VALUES (?)", [name])
            return _Share(document, None, None, None, None)
        return _Share(*row)

    def _put_derivation(
        self,
        db: Connection,
        group: int,
        share: _Share,
        new: Derivation,
        changed: Collection[str],
        sequence: int,
    ) -> None:
        """Write one document's nodes; unchanged ones retain the number of their last change."""
        version = self._versions.put(db, new.nodes[0]) if group == 0 else share.newest
        unchanged: dict[bytes | str, int] = {}
        if share.derivation is not None:
            query = "SELECT id, sequence FROM nodes WHERE derivation = ?"
            stored = db.rows(query, [share.derivation])
            keys = {to_key(node.id) for node in new.nodes}
            db.run_many("DELETE FROM nodes WHERE id = ?", ([i] for i, _ in stored if i not in keys))
            unchanged = {i: n for i, n in stored if i in keys and from_key(i) not in changed}
        if len(unchanged) == len(new.nodes) and share.sequence is not None:
            sequence = share.sequence
        derivation = self._put_stamp(db, group, share, version, new.stamp, sequence)
        context = derivation, version
        self._put_nodes(db, context, new.nodes, sequence, unchanged)
        if share.version != version:
            self._versions.drop_unused(db, [share.version])

    def _put_stamp(
        self,
        db: Connection,
        group: int,
        share: _Share,
        version: int | None,
        stamp: Stamp,
        sequence: int,
    ) -> int:
        if share.derivation is None:
            return db.run(
                "INSERT INTO derivations (grp, document, version, source, rule, metadata, "
                "sequence) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [group, share.document, version, *stamp, sequence],
            )
        db.run(
            "UPDATE derivations SET version = ?, source = ?, rule = ?, metadata = ?, sequence = ? "
            "WHERE key = ?",
            [version, *stamp, sequence, share.derivation],
        )
        return share.derivation

    def _put_nodes(
        self,
        db: Connection,
        context: tuple[int, int | None],
        nodes: Sequence[Node],
        sequence: int,
        unchanged: Mapping[bytes | str, int],
    ) -> None:
        """Write nodes of a derivation, by its key and the key of the version."""
        derivation, version = context
        shared, search_text = (
            (NO_METADATA, None) if version is None else self._versions.document(version)
        )
        rows: list[Row] = []
        of_siblings, beyond = shared, to_json({})
        for at, node in enumerate(nodes):
            position = node.order % DOCUMENT_STRIDE if node.document_id == CORPUS else at
            key = to_key(node.id)
            text: str | bytes | None = to_column(node.text)
            if node.start is not None and version is not None:
                original = self._versions.text(version, node.start, len(node.text))
                text = None if original == node.text else text
            of_document = node.parent_id is None or node.parent_id == node.document_id
            own = None if node.group == ROOT else tables.put_search_text(db, node.search_text)
            above = None
            if node.group != ROOT and node.inherited_search_text != search_text:
                above = tables.put_search_text(db, node.inherited_search_text)
            parent = None if of_document else to_key(node.parent_id or "")
            if node.inherited is not of_siblings:
                of_siblings, beyond = node.inherited, to_json(_beyond(node.inherited, shared))
            values = (
                text,
                None if node.content == node.text else to_column(encode(node.content)),
                *(node.start, None if text else len(node.text), node.offset),
                None if node.group == ROOT else to_json(node.own_metadata),
                beyond,
            )
            changed = unchanged.get(key, sequence)
            rows.append((key, derivation, position, parent, *values, changed, own, above))
        db.run_many(_PUT_NODE, rows)

    # Reading

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        with self._database.snapshot():
            db = self._database.db
            row = db.row(f"{_STAMP} AND docs.id = ?", [group, to_column(document_id)])
            if row is None:
                return None
            nodes, links = (
                tuple(self._nodes_in(db, row[4])),
                tuple(tables.derived_links(db, row[4])),
            )
            return Derivation(row[1], row[2], row[3], nodes, links)

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group."""
        db = self._database.db
        if ids is None:
            rows = db.rows(f"{_STAMP} ORDER BY d.document", [group])
        else:
            rows = [
                row
                for batch in portions(to_column(i) for i in ids)
                for row in db.rows(
                    f"{_STAMP} AND docs.id IN ({placeholders(batch)})", [group, *batch]
                )
            ]
        return {from_column(i): Stamp(*stamp) for i, *stamp, _ in rows}

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group."""
        with self._database.snapshot():
            query = f"{NODE} WHERE d.grp = ? ORDER BY d.document, n.place"
            key, _ = self._journal.row(group)
            yield from self._nodes_of(self._database.db.stream(query, [key]))

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group."""
        with self._database.snapshot():
            query = (
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = ? ORDER BY d.document, n.place"
            )
            key, _ = self._journal.row(group)
            return [from_key(i) for (i,) in self._database.db.rows(query, [key])]

    def node_ids(self, group: str, document_id: str) -> list[str]:
        """Return the ids of the nodes of a derivation."""
        query = (
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "JOIN groups ON groups.key = d.grp JOIN documents docs ON docs.key = d.document "
            "WHERE groups.name = ? AND docs.id = ? ORDER BY n.place"
        )
        rows = self._database.db.rows(query, [group, to_column(document_id)])
        return [from_key(i) for (i,) in rows]

    def _read_nodes(self, ids: Collection[str]) -> Iterator[Node]:
        for batch in portions(map(to_key, ids)):
            query = f"{NODE} WHERE n.id IN ({placeholders(batch)})"
            yield from self._nodes_of(self._database.db.rows(query, batch))

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of each node's parent; the nodes are read only where it is no node."""
        ids = list(ids)
        parents: dict[str, str | None] = {}
        for batch in portions(map(to_key, ids)):
            query = (
                "SELECT n.id, parents.id FROM nodes n JOIN nodes parents ON parents.id = n.parent "
                f"WHERE n.id IN ({placeholders(batch)})"
            )
            rows = self._database.db.rows(query, batch)
            parents.update((from_key(i), from_key(parent)) for i, parent in rows)
        others = [i for i in ids if i not in parents]
        return {**parents, **super().parent_ids(others)} if others else parents

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent."""
        params: list[Any] = [group, to_column(parent.document_id)]
        of_parent = "n.parent IS NULL"
        if parent.id != parent.document_id:
            of_parent = "n.parent = ?"
            params.append(to_key(parent.id))
        query = f"{NODE} WHERE groups.name = ? AND docs.id = ? AND {of_parent} ORDER BY n.place"
        with self._database.snapshot():
            return tuple(self._nodes_of(self._database.db.rows(query, params)))

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document."""
        position = node.order % DOCUMENT_STRIDE
        query = f"{NODE} WHERE groups.name = ? AND docs.id = ? AND n.place IN (?, ?)"
        params = [node.group, to_column(node.document_id), position - 1, position + 1]
        with self._database.snapshot():
            matches = {n.order: n for n in self._nodes_of(self._database.db.rows(query, params))}
        return matches.get(node.order - 1), matches.get(node.order + 1)

    def _nodes_in(self, db: Connection, derivation: int | None) -> Iterator[Node]:
        if derivation is None:
            return iter(())
        query = f"{NODE} WHERE n.derivation = ? ORDER BY n.place"
        return self._nodes_of(db.rows(query, [derivation]))

    def _nodes_of(self, rows: Iterable[Row]) -> Iterator[Node]:
        versions = self._versions
        of_siblings: tuple[Any, Any] = None, None  # what they inherit, which they share
        above: Mapping[str, Any] = NO_METADATA
        for row in rows:
            node_id, text, content, start, size, shift, own, inherited, parent, position = row[:10]
            version, document, document_id, group, own_key, above_key = row[10:]
            shared, search_text = NO_METADATA, None
            if version is not None:
                shared, search_text = versions.document(version)
            if text is not None:
                words = from_column(text)
            elif isinstance(version, int) and isinstance(start, int) and isinstance(size, int):
                words = versions.text(version, start, size)
            else:
                raise self._database.db.damaged("a node has neither a text nor a place in one")
            own_metadata = NO_METADATA if own is None else from_json(own)
            if (version, inherited) != of_siblings:
                of_siblings = version, inherited
                above = shared if inherited is None else {**shared, **from_json(inherited)}
            name = from_column(document_id)
            parent_id = name or None  # what was made from a whole group has no parent
            if parent is not None:
                parent_id = from_key(parent)
            own_search_text, above_search_text = None, search_text
            if own_key is not None:
                own_search_text = versions.search_text_by_key(own_key)
            if above_key is not None:
                above_search_text = versions.search_text_by_key(above_key)
            if group == ROOT:
                own_metadata, parent_id = shared, None
                own_search_text, above_search_text = search_text, None
            yield Node(
                words,
                own_metadata,
                None if content is None else from_json(content),
                start,
                None if start is None else start + len(words),
                from_key(node_id),
                group,
                name,
                parent_id,
                shift,
                document * DOCUMENT_STRIDE + position,
                NO_METADATA if group == ROOT else above,
                own_search_text,
                above_search_text,
            )

    # Links

    def read_links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each id."""
        return tables.read_links(self._database.db, ids, incoming=incoming, existing=False)

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node."""
        return tables.read_links(self._database.db, ids, incoming=incoming, existing=True)

    def put_links(self, links: Sequence[Link]) -> None:
        """Store links."""
        with self._database.transaction() as db:
            tables.put_links(db, links)

    def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links."""
        with self._database.transaction() as db:
            tables.delete_links(db, links)

    # Values

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return values, also what came since this thread's snapshot."""
        return tables.get_values(self._database.latest(), kind, keys)

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values."""
        if values:
            with self._database.transaction() as db:
                tables.put_values(db, kind, values)

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values."""
        with self._database.transaction() as db:
            tables.delete_values(db, kind, keys)

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        with_values = "EXISTS (SELECT 1 FROM memory WHERE memory.kind = kinds.key)"
        rows = self._database.db.rows(f"SELECT name FROM kinds WHERE {with_values} ORDER BY key")
        return [name for (name,) in rows]


def _beyond(inherited: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what inherited metadata has that the document's has not."""
    return {k: v for k, v in inherited.items() if k not in shared or shared[k] != v}
