"""Documents, nodes and links in one SQLite file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from ..codec import encode
from ..derivation import DOCUMENT_STRIDE, derive_root, unmoved
from ..document import Document
from ..node import NO_METADATA, ROOT, Link, Node
from ..store import Changes, Derivation, Stamp
from .connection import Connection, Row
from .file import GraphFile
from .history import Journal, Versions, sequence_of
from .rows import (
    derived_links,
    forget,
    from_column,
    from_json,
    from_key,
    marks,
    portions,
    put_links,
    read_links,
    recall,
    remember,
    remove_links,
    replace_derived_links,
    to_column,
    to_json,
    to_key,
)

_NODE = """
    SELECT n.id, n.text, n.content, n.begin, n.size, n.shift, n.metadata, n.inherited, n.parent,
        n.place, d.version, d.document, docs.id, groups.name
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document JOIN groups ON groups.key = d.grp
"""

_PUT_NODE = """
    INSERT INTO nodes (id, derivation, place, parent, text, content, begin, size, shift, metadata,
        inherited, sequence)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET derivation = excluded.derivation, place = excluded.place,
        parent = excluded.parent, text = excluded.text, content = excluded.content,
        begin = excluded.begin, size = excluded.size, shift = excluded.shift,
        metadata = excluded.metadata, inherited = excluded.inherited, sequence = excluded.sequence
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


class SQLiteStore:
    """Keep a graph in one file, for years: crash-safe, shared by threads and processes.

    Every write is a transaction; what has returned is on the disk. Many threads and processes
    read while one writes, each of them one state. A node that was cut out of its document is
    kept as a span, so that the text is there once.

    Args:
        path: The file; made where it is missing. SQLite keeps ``-wal`` and ``-shm`` beside it
            while it is open, and a ``.lock`` lets one process write at a time. In a folder that
            can't be written to the graph can be read.
        timeout: Seconds to wait while another process writes.

    Raises:
        StoreError: If the file can't be opened, is not a nodekin graph, or a newer one.
    """

    def __init__(self, path: str | Path, *, timeout: float = 60.0) -> None:
        self.path = Path(path).expanduser().absolute()
        self.timeout = timeout
        self._set_up()

    def _set_up(self) -> None:
        self._file = GraphFile(self.path, self.timeout, lambda: self._versions.forget())
        self._versions = Versions(self._file)
        self._journal = Journal(self._file)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"

    @property
    def index_folder(self) -> Path:
        """Where indexes that can be made again are kept: ``<file>-indexes``."""
        return self.path.with_name(self.path.name + "-indexes")

    def snapshot(self) -> AbstractContextManager[int]:
        """Read one state in this thread until the block ends."""
        return self._file.snapshot()

    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing."""
        return self._file.writing()

    def transaction(self) -> AbstractContextManager[object]:
        """Take all writes of this thread as one."""
        return self._file.transaction()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()
        self._versions.forget()

    def compact(self) -> None:
        """Write the file anew without the space of what was removed.

        Raises:
            StoreError: If there is no room for a second file meanwhile; nothing has changed then.
        """
        self._file.compact()

    # Documents

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove and put documents.

        Raises:
            TypeError: If metadata has a value that no file can hold; nothing has changed then.
        """
        with self._file.transaction() as db:
            removed = self._remove(db, remove)
            grown = -len(removed)
            known = self.stamps(ROOT, {document.id for document in put})
            changed: list[tuple[Document, Derivation]] = []
            for document in put:
                root = derive_root(document, 0)
                old = known.get(document.id)
                if old == root.stamp:
                    continue
                if old is None:
                    grown += 1
                else:
                    removed.append(document.id)
                known[document.id] = root.stamp
                changed.append((document, root))
            if not removed and not changed:
                return
            sequence = self._journal.advance(db, 0, removed, len(changed), grown)
            for document, root in changed:
                self._put_root(db, document, root, sequence)

    def _put_root(
        self, db: Connection, document: Document, root: Derivation, sequence: int
    ) -> None:
        name = to_column(document.id)
        db.run("INSERT INTO documents (id) VALUES (?) ON CONFLICT DO NOTHING", [name])
        share = self._share(db, 0, document.id)
        version = self._versions.put(db, document)
        derivation = self._put_stamp(db, 0, share, version, root.stamp, sequence)
        self._put_nodes(db, derivation, root.nodes, version, sequence, {})
        self._versions.drop_unused(db, [share.version])

    def _remove(self, db: Connection, ids: Sequence[str]) -> list[str]:
        """Remove documents with everything made from them; return which there were."""
        known: list[str] = []
        gone: dict[int, list[str]] = {}
        versions: set[int | None] = set()
        for document_id in dict.fromkeys(ids):
            name = to_column(document_id)
            row = db.row("SELECT key FROM documents WHERE id = ? AND key > 0", [name])
            if row is None:
                continue
            known.append(document_id)
            for group, node_id in db.rows(
                "SELECT d.grp, n.id FROM derivations d JOIN nodes n ON n.derivation = d.key "
                "WHERE d.document = ? AND d.grp > 0",
                row,
            ):
                gone.setdefault(group, []).append(from_key(node_id))
            made_from = db.rows("SELECT version FROM derivations WHERE document = ?", row)
            versions.update(version for (version,) in made_from)
            db.run("DELETE FROM documents WHERE key = ?", row)
        for group, nodes in gone.items():
            self._journal.advance(db, group, nodes, 0, -len(nodes))
        self._versions.drop_unused(db, versions)
        return known

    def document_ids(self) -> Iterable[str]:
        """Return the ids of all documents."""
        return list(self.stamps(ROOT))

    # Nodes

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace what was derived.

        Raises:
            LookupError: If there is no such document.
            TypeError: If a node has a value that no file can hold.
        """
        with self._file.transaction() as db:
            key = self._journal.key(db, group)
            plans: list[tuple[_Share, Derivation, set[str]]] = []
            removed: list[str] = []
            grown = changed = 0
            for document_id, new in derivations.items():
                share = self._share(db, key, document_id)
                before = {node.id: node for node in self._nodes_in(db, share.derivation)}
                after = {node.id for node in new.nodes}
                gone = [i for i in before if i not in after]
                same = {n.id for n in new.nodes if n.id in before and unmoved(before[n.id], n)}
                removed += [i for i in before if i not in same]
                changed += len(new.nodes) - len(same)
                grown += len(after) - len(before)
                db.run_many("DELETE FROM nodes WHERE id = ?", ([to_key(i)] for i in gone))
                plans.append((share, new, same))
            sequence = 0
            if removed or changed:
                sequence = self._journal.advance(db, key, removed, changed, grown)
            for share, new, same in plans:
                self._put_derivation(db, key, share, new, same, sequence)

    def _share(self, db: Connection, group: int, document_id: str) -> _Share:
        row = db.row(
            "SELECT docs.key, d.key, d.version, d.sequence, root.version FROM documents docs "
            "LEFT JOIN derivations d ON d.document = docs.key AND d.grp = ? "
            "LEFT JOIN derivations root ON root.document = docs.key AND root.grp = 0 "
            "WHERE docs.id = ?",
            [group, to_column(document_id)],
        )
        if row is None:
            raise LookupError(f"no document {document_id!r} to derive nodes from")
        return _Share(*row)

    def _put_derivation(
        self,
        db: Connection,
        group: int,
        share: _Share,
        new: Derivation,
        same: set[str],
        sequence: int,
    ) -> None:
        """Write one document's nodes; those that are the same keep the number of their change."""
        query = "SELECT id, sequence FROM nodes WHERE derivation = ?"
        known = db.rows(query, [share.derivation]) if same else []
        kept = {i: number for i, number in known if from_key(i) in same}
        if len(same) == len(new.nodes) and share.sequence is not None:
            sequence = share.sequence
        derivation = self._put_stamp(db, group, share, share.newest, new.stamp, sequence)
        self._put_nodes(db, derivation, new.nodes, share.newest, sequence, kept)
        if share.derivation is not None or new.links:
            replace_derived_links(db, derivation, new.links)
        if share.version != share.newest:
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
        derivation: int,
        nodes: Sequence[Node],
        version: int | None,
        sequence: int,
        kept: Mapping[bytes | str, int],
    ) -> None:
        shared = NO_METADATA if version is None else self._versions.metadata(version)
        rows: list[Row] = []
        for place, node in enumerate(nodes):
            key = to_key(node.id)
            text: str | bytes | None = to_column(node.text)
            if node.start is not None and version is not None:
                there = self._versions.text(version, node.start, len(node.text))
                text = None if there == node.text else text
            of_document = node.parent_id is None or node.parent_id == node.document_id
            rows.append(
                (
                    *(key, derivation, place),
                    None if of_document else to_key(node.parent_id or ""),
                    text,
                    None if node.content == node.text else to_column(encode(node.content)),
                    *(node.start, None if text else len(node.text), node.offset),
                    None if node.group == ROOT else to_json(node.own_metadata),
                    to_json(_beyond(node.inherited, shared)),
                    kept.get(key, sequence),
                )
            )
        db.run_many(_PUT_NODE, rows)

    def check(self, nodes: Sequence[Node]) -> None:
        """Try to write what is not text."""
        for node in nodes:
            if node.content is not node.text:
                encode(node.content)
            if node.own_metadata:
                encode(node.own_metadata)

    def drop_group(self, group: str) -> None:
        """Remove all nodes of a group."""
        with self._file.transaction() as db:
            row = db.row("SELECT key, size FROM groups WHERE name = ?", [group])
            if row is None:
                return
            key, size = row
            versions = db.rows("SELECT DISTINCT version FROM derivations WHERE grp = ?", [key])
            db.run("DELETE FROM derivations WHERE grp = ?", [key])
            self._versions.drop_unused(db, (version for (version,) in versions))
            self._journal.advance(db, key, [], 0, -size)
            db.run("DELETE FROM journal WHERE grp = ?", [key])
            db.run(
                "UPDATE groups SET journaled = 0, rules = NULL, built_for = 0 WHERE key = ?", [key]
            )

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        with self._file.snapshot():
            db = self._file.db
            row = db.row(f"{_STAMP} AND docs.id = ?", [group, to_column(document_id)])
            if row is None:
                return None
            nodes, links = tuple(self._nodes_in(db, row[4])), tuple(derived_links(db, row[4]))
            return Derivation(row[1], row[2], row[3], nodes, links)

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group."""
        db = self._file.db
        if ids is None:
            rows = db.rows(f"{_STAMP} ORDER BY d.document", [group])
        else:
            rows = [
                row
                for some in portions(to_column(i) for i in ids)
                for row in db.rows(f"{_STAMP} AND docs.id IN ({marks(some)})", [group, *some])
            ]
        return {from_column(i): Stamp(*stamp) for i, *stamp, _ in rows}

    def groups(self) -> Iterable[str]:
        """Return the names of the groups that have been built."""
        query = "SELECT name FROM groups WHERE key > 0 AND sequence > 0 ORDER BY key"
        return [name for (name,) in self._file.db.rows(query)]

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group."""
        with self._file.snapshot():
            query = f"{_NODE} WHERE d.grp = ? ORDER BY d.document, n.place"
            key = self._journal.group(group).key
            yield from self._nodes_of(self._file.db.stream(query, [key]))

    def count(self, group: str) -> int:
        """Return how many nodes a group has."""
        return self._journal.group(group).size

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id."""
        wanted = [to_key(i) for i in ids]
        seen = self._file.seen()  # a hit's parent is often asked for again and again
        found: dict[Any, Node | None] = {} if seen is None else seen.setdefault(_NODE, {})
        missing = [key for key in wanted if key not in found]
        if missing:
            with self._file.snapshot():
                rows = [
                    row
                    for some in portions(missing)
                    for row in self._file.db.rows(f"{_NODE} WHERE n.id IN ({marks(some)})", some)
                ]
                found.update(dict.fromkeys(missing))
                found.update(zip((row[0] for row in rows), self._nodes_of(rows), strict=True))
        return [found[key] for key in wanted]

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent."""
        wanted: list[Any] = [group, to_column(parent.document_id)]
        of_parent = "n.parent IS NULL"
        if parent.id != parent.document_id:
            of_parent = "n.parent = ?"
            wanted.append(to_key(parent.id))
        query = f"{_NODE} WHERE groups.name = ? AND docs.id = ? AND {of_parent} ORDER BY n.place"
        with self._file.snapshot():
            return tuple(self._nodes_of(self._file.db.rows(query, wanted)))

    def _nodes_in(self, db: Connection, derivation: int | None) -> Iterator[Node]:
        if derivation is None:
            return iter(())
        query = f"{_NODE} WHERE n.derivation = ? ORDER BY n.place"
        return self._nodes_of(db.rows(query, [derivation]))

    def _nodes_of(self, rows: Iterable[Row]) -> Iterator[Node]:
        for row in rows:
            node_id, text, content, begin, size, shift, own, inherited, parent, place = row[:10]
            version, document, document_id, group = row[10:]
            shared = NO_METADATA if version is None else self._versions.metadata(version)
            words = self._versions.text(version, begin, size) if text is None else from_column(text)
            name = from_column(document_id)
            above = shared if inherited is None else {**shared, **from_json(inherited)}
            of_document = name or None  # what was made from a whole group has no parent
            root = group == ROOT
            yield Node(
                words,
                shared if root else NO_METADATA if own is None else from_json(own),
                None if content is None else from_json(content),
                begin,
                None if begin is None else begin + len(words),
                from_key(node_id),
                group,
                name,
                None if root else of_document if parent is None else from_key(parent),
                shift,
                document * DOCUMENT_STRIDE + place,
                NO_METADATA if root else above,
            )

    # What changed

    def revision(self, group: str) -> int:
        """Return the group's counter."""
        return self._journal.group(group).revision

    def changes(self, group: str, since: int) -> Changes:
        """Return what happened after a revision."""
        with self._file.snapshot():
            now, db = self._journal.group(group), self._file.db
            if since and since == now.revision:
                return Changes(since, [], [])
            removed = self._journal.removed_since(db, now, since)
            if removed is None:
                return Changes(now.revision, [], list(self.nodes(group)), complete=True)
            after = sequence_of(since)
            rows = db.rows(
                f"{_NODE} WHERE d.grp = ? AND d.sequence > ? AND n.sequence > ? "
                "ORDER BY d.document, n.place",
                [now.key, after, after],
            )
            return Changes(now.revision, removed, list(self._nodes_of(rows)))

    def built(self, group: str) -> tuple[str, int] | None:
        """Return by which rules a group is built, and up to which revision."""
        known = self._journal.group(group)
        return None if known.rules is None else (known.rules, known.built_for)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Note by which rules a group is built, and up to which revision."""
        with self._file.transaction() as db:
            key = self._journal.key(db, group)
            db.run(
                "UPDATE groups SET rules = ?, built_for = ? WHERE key = ?", [rules, revision, key]
            )
            self._file.touch()

    # Links

    def link(self, links: Sequence[Link]) -> None:
        """Put links."""
        with self._file.transaction() as db:
            ends = [i for link in links for i in (link.source, link.target)]
            for i, node in zip(ends, self.get(ends), strict=True):
                if node is None:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
            put_links(db, links)
            self._file.touch()

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links."""
        with self._file.transaction() as db:
            remove_links(db, links)
            self._file.touch()

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node."""
        return read_links(self._file.db, ids, incoming=incoming)

    # What is remembered

    def kinds(self) -> Iterable[str]:
        """Return the kinds of what is remembered."""
        return [name for (name,) in self._file.db.rows("SELECT name FROM kinds ORDER BY key")]

    def recall(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return what was remembered, also what came since this thread's snapshot."""
        with self._file.latest() as db:
            return recall(db, kind, keys)

    def remember(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Keep values."""
        if values:
            with self._file.transaction() as db:
                remember(db, kind, values)

    def forget(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Drop values."""
        with self._file.transaction() as db:
            forget(db, kind, keys)


def _beyond(inherited: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what inherited metadata has that the document's has not."""
    if inherited is shared:
        return NO_METADATA
    return {k: v for k, v in inherited.items() if k not in shared or shared[k] != v}
