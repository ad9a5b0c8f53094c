"""Documents, nodes and links in a schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ....nodegraph.codec import encode
from ....nodegraph.database import DatabaseStore
from ....nodegraph.derivation import CORPUS, Amendment, Derivation, Stamp
from ....nodegraph.errors import StoreError
from ....nodegraph.hashing import digest
from ....nodegraph.journal import Journal
from ....nodegraph.locking import retried
from ....nodegraph.node import ROOT, Link, Node
from ....nodegraph.vector_table import VectorTable
from .graph_database import GraphDatabase
from .pgvector_table import PostgresVectorTable, drop_outdated, find_pgvector
from .server_connection import (
    NodeContext,
    PostgresAddress,
    ServerConnection,
    Values,
    context_hash,
    from_bytes,
    from_id,
    from_metadata,
    portions,
    to_bytes,
    to_id,
    to_link,
    to_metadata,
)
from .value_numbers import ValueNumbers

_CONTEXTS = 100_000  # in memory, above which reading begins anew

_NODE = """
    SELECT n.id, n.text, n.content, n.start, n.shift, n.metadata, n.context, n.parent, n.position,
        d.grp, d.document
    FROM nodes n JOIN derivations d ON d.key = n.derivation
"""

_COLUMNS = {
    "id": "bytea",
    "derivation": "int8",
    "position": "int8",
    "parent": "bytea",
    "text": "bytea",
    "content": "bytea",
    "start": "int8",
    "shift": "int8",
    "metadata": "bytea",
    "context": "bytea",
}

_PUT_STAMPS = f"""
    INSERT INTO derivations (grp, document, place, source, rule, metadata)
    SELECT %b, new.document, coalesce(new.place, root.place, 0), new.source, new.rule, new.metadata
    FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[])
        AS new (document, place, source, rule, metadata)
    LEFT JOIN derivations root
        ON root.document = new.document AND root.grp = '\\x{ROOT.encode().hex()}'
    ON CONFLICT (grp, document) DO UPDATE SET place = excluded.place, source = excluded.source,
        rule = excluded.rule, metadata = excluded.metadata
    RETURNING document, key
"""

_PUT_LINKS = """
    INSERT INTO links (source, target, type, weight, metadata, derived)
    SELECT source, target, type, weight, metadata, derived
    FROM unnest(%b::bytea[], %b::bytea[], %b::bytea[], %b::float8[], %b::bytea[], %b::boolean[])
        WITH ORDINALITY AS new (source, target, type, weight, metadata, derived, at)
    ORDER BY at
    ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight,
        metadata = excluded.metadata, derived = excluded.derived
"""

_LINK = "SELECT l.source, l.target, l.type, l.weight, l.metadata, l.derived FROM links l"


class PostgresStore(DatabaseStore[GraphDatabase]):
    """Store a graph in a schema of a PostgreSQL database, shared by processes and machines.

    Every write is a transaction; what has returned is as durable as the server makes it. Any
    number of processes read while one writes, each of them one state. Several graphs are in one
    database by the names of their schemas. Where the database has pgvector, or its user may install
    it, vectors are searched there; other indexes are in the memory of each process.

    Args:
        address: ``postgresql://user:password@host/database?schema=name``, with any other
            parameter of libpq; without ``schema`` it is "nodekin". The schema and its tables are
            made where they are missing. ``vectors=pgvector`` demands pgvector, ``vectors=memory``
            does without. ``cache=/var/cache/nodekin`` stores other indexes in a folder of this
            machine, which its processes map.
        timeout: Seconds to wait while another process writes.

    Raises:
        ImportError: If psycopg is not installed; it names the extra.
        StoreError: If the server can't be reached, or the tables are of a newer version.
        ValueError: If it is no such address.

    Example:
        >>> graph = NodeGraph(store=PostgresStore("postgresql://me@db/texts"))  # doctest: +SKIP
    """

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        self.address = address
        self.timeout = timeout
        super().__init__()

    def _set_up(self) -> None:
        self._database = GraphDatabase(PostgresAddress.parse(self.address), self.timeout)
        self._journal = Journal(_JournalValues(self._database))
        self._pgvector: tuple[str | None] | None = None  # its schema, once it was looked for
        self._value_numbers = ValueNumbers(self)

    @property
    def index_folder(self) -> Path | None:
        """Return where this machine stores indexes that can be built again: below ``cache``."""
        address = self._database.address
        if not address.cache:
            return None
        folder = Path(address.cache).expanduser() / f"nodekin-{digest(address.shown)}"
        if not folder.is_dir():
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it has words of the texts
            except OSError as error:
                raise StoreError(
                    f"the folder {str(folder)!r} for indexes can't be made: {error}; give another "
                    "one by cache= in the address, or none"
                ) from error
        return folder

    @property
    def place(self) -> str:
        """The address of the schema."""
        return self._database.address.shown

    @contextmanager
    def exclusive(self, purpose: str, *, wait: bool) -> Iterator[bool]:
        """Keep others from the same work, by a lock of the server."""
        with self._database.exclusive(purpose, wait=wait) as connection:
            yield connection is not None

    def vector_table(self, group: str, *names: str) -> VectorTable | None:
        """Return a table of vectors where the database has pgvector; None where it has not.

        Raises:
            StoreError: If the address demands pgvector, and it can't be had.
        """
        address = self._database.address
        if address.vectors == "memory":
            return None
        if self._pgvector is None:
            self._pgvector = (find_pgvector(self._database),)
        (schema,) = self._pgvector
        if schema is None and address.vectors == "pgvector":
            raise StoreError(
                f"{address.shown} has no pgvector 0.8 or later, and its user may not install it; "
                "have CREATE EXTENSION vector run in the database, or leave vectors=pgvector out"
            )
        if schema is None:
            return None
        numbers, name = self._value_numbers, digest(group, *names)
        return PostgresVectorTable(self._database, numbers, schema, group, name)

    def compact(self) -> None:
        """Delete what nothing refers to any more; the server frees the space by itself."""
        drop_outdated(self._database, self.revision)
        with self._database.transaction() as db:
            db.run(
                "DELETE FROM contexts c WHERE NOT EXISTS "
                "(SELECT FROM nodes n WHERE n.context = c.hash)"
            )
            db.run(
                "DELETE FROM kinds k WHERE NOT EXISTS (SELECT FROM memory m WHERE m.kind = k.key)"
            )
            db.run("DELETE FROM writers WHERE seen < now() - interval '1 day'")

    # Writing

    def write_derivations(
        self, group: str, derivations: Mapping[str, Derivation | None], changed: Collection[str]
    ) -> None:
        """Insert, replace or delete derivations.

        Raises:
            TypeError: If a node has a value that no store can hold.
        """
        name = to_bytes(group)
        with self._database.transaction() as db:
            for documents in portions(map(to_id, derivations)):
                db.run(
                    "DELETE FROM nodes WHERE derivation IN "
                    "(SELECT key FROM derivations WHERE grp = %b AND document = ANY(%b))",
                    [name, documents],
                )
            deleted = (to_id(i) for i, new in derivations.items() if new is None)
            for documents in portions(deleted):
                query = "DELETE FROM derivations WHERE grp = %b AND document = ANY(%b)"
                db.run(query, [name, documents])
            new = {i: new for i, new in derivations.items() if new is not None}
            positions = {
                i: derivation.nodes[0].order if group == ROOT else None
                for i, derivation in new.items()
            }
            keys = _put_stamps(db, name, {i: d.stamp for i, d in new.items()}, positions)
            nodes = ((keys[i], node) for i, d in new.items() for node in d.nodes)
            for batch in portions(nodes):
                self._put_nodes(db, batch)

    def write_amendment(self, group: str, document_id: str, amendment: Amendment) -> None:
        """Write the nodes and the stamp of an amendment."""
        with self._database.transaction() as db:
            stamps = {document_id: amendment.stamp}
            keys = _put_stamps(db, to_bytes(group), stamps, {document_id: None})
            for ids in portions(map(to_id, amendment.removed)):
                db.run("DELETE FROM nodes WHERE id = ANY(%b)", [ids])
            for batch in portions((keys[document_id], node) for node in amendment.nodes):
                self._put_nodes(db, batch)

    def _put_nodes(self, db: ServerConnection, nodes: Sequence[tuple[int, Node]]) -> None:
        """Write nodes with the keys of their derivations, over those of their ids."""
        rows: dict[bytes, Values] = {}
        contexts: dict[bytes, bytes] = {}
        latest: tuple[NodeContext | None, bytes | None] = (None, None)
        for derivation, node in nodes:
            context = NodeContext.of(node)
            if latest[0] is None or any(
                new is not old for new, old in zip(context, latest[0], strict=True)
            ):
                try:
                    value = context.write()
                except TypeError as error:
                    raise TypeError(f"metadata above node {node.id!r}: {error}") from error
                latest = context, None if value is None else context_hash(value)
                if value is not None:
                    contexts[context_hash(value)] = value
            try:
                metadata = to_metadata(node.own_metadata)
            except TypeError as error:
                what = "document" if node.group == ROOT else "node"
                raise TypeError(f"metadata of {what} {node.id!r}: {error}") from error
            key = to_id(node.id)
            rows[key] = (
                *(key, derivation, node.order),
                None if node.parent_id is None else to_id(node.parent_id),
                to_bytes(node.text),
                None if node.content == node.text else to_bytes(encode(node.content)),
                *(node.start, node.offset, metadata, latest[1]),
            )
        if contexts:
            db.run(
                "INSERT INTO contexts SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
                "ON CONFLICT DO NOTHING",
                [list(contexts), list(contexts.values())],
            )
        db.run("DELETE FROM nodes WHERE id = ANY(%b)", [list(rows)])
        db.copy("nodes", list(_COLUMNS), list(_COLUMNS.values()), rows.values())

    # Reading

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived."""
        with self.snapshot():
            stamp = self.stamps(group, [document_id]).get(document_id)
            if stamp is None:
                return None
            key_values = [to_bytes(group), to_id(document_id)]
            of_document = "WHERE d.grp = %b AND d.document = %b ORDER BY n.position"
            nodes = self._nodes_of(self._database.rows(f"{_NODE} {of_document}", key_values))
            links = self._database.rows(
                f"{_LINK} JOIN nodes n ON n.id = l.source "
                "JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = %b AND d.document = %b AND l.derived ORDER BY l.key",
                key_values,
            )
            return Derivation(*stamp, tuple(nodes), tuple(map(to_link, links)))

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group."""
        query = "SELECT document, source, rule, metadata FROM derivations WHERE grp = %b"
        name = to_bytes(group)
        if ids is None:
            rows = self._database.rows(f"{query} ORDER BY place", [name])
        else:
            with self.snapshot() if len(ids) > 1 else nullcontext():
                rows = [
                    row
                    for batch in portions(dict.fromkeys(map(to_id, ids)))
                    for row in self._database.rows(
                        f"{query} AND document = ANY(%b) ORDER BY place", [name, batch]
                    )
                ]
        return {from_id(i): Stamp(*map(from_bytes, stamp)) for i, *stamp in rows}

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group."""
        query = f"{_NODE} WHERE d.grp = %b ORDER BY d.place, n.position"
        with (
            self.snapshot(),
            closing(self._database.stream(query, [to_bytes(group)])) as stream,
        ):
            for rows in stream:
                yield from self._nodes_of(rows)

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group."""
        rows = self._database.rows(
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "WHERE d.grp = %b ORDER BY d.place, n.position",
            [to_bytes(group)],
        )
        return [from_id(i) for (i,) in rows]

    def node_ids(self, group: str, document_id: str) -> list[str]:
        """Return the ids of the nodes of a derivation."""
        rows = self._database.rows(
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "WHERE d.grp = %b AND d.document = %b ORDER BY n.position",
            [to_bytes(group), to_id(document_id)],
        )
        return [from_id(i) for (i,) in rows]

    def _read_nodes(self, ids: Collection[str]) -> Iterator[Node]:
        for batch in portions(map(to_id, ids)):
            yield from self._nodes_of(self._database.rows(f"{_NODE} WHERE n.id = ANY(%b)", [batch]))

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent."""
        query = (
            f"{_NODE} WHERE d.grp = %b AND d.document = %b AND n.parent = %b ORDER BY n.position"
        )
        values = [to_bytes(group), to_id(parent.document_id), to_id(parent.id)]
        with self.snapshot():
            return tuple(self._nodes_of(self._database.rows(query, values)))

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document."""
        of_document = f"{_NODE} WHERE d.grp = %b AND d.document = %b AND n.position"
        values = [to_bytes(node.group), to_id(node.document_id), node.order]
        query = (
            f"({of_document} < %b ORDER BY n.position DESC LIMIT 1) UNION ALL "
            f"({of_document} > %b ORDER BY n.position LIMIT 1)"
        )
        with self.snapshot():
            beside = self._nodes_of(self._database.rows(query, [*values, *values]))
        before = [other for other in beside if other.order < node.order]
        after = [other for other in beside if other.order > node.order]
        return before[0] if before else None, after[0] if after else None

    def _nodes_of(self, rows: Sequence[Values]) -> list[Node]:
        contexts = self._contexts({row[6] for row in rows if row[6] is not None})
        nothing = NodeContext()
        nodes: list[Node] = []
        for row in rows:
            node_id, text, content, start, shift, own, context, parent, position, group, of = row
            words = from_bytes(text)
            inherited, search_text, above = nothing if context is None else contexts[context]
            value = None if content is None else from_metadata(content)
            nodes.append(
                Node(
                    words,
                    from_metadata(own),
                    value,
                    start,
                    None if start is None else start + len(words),
                    from_id(node_id),
                    from_bytes(group),
                    from_id(of),
                    None if parent is None else from_id(parent),
                    shift,
                    position,
                    inherited,
                    search_text,
                    above,
                )
            )
        return nodes

    def _contexts(self, hashes: set[bytes]) -> Mapping[bytes, NodeContext]:
        read = self._database.contexts
        missing = [key for key in hashes if key not in read]
        if not missing:
            return read
        if len(read) > _CONTEXTS:
            read = self._database.contexts = {}
            missing = list(hashes)
        for batch in portions(missing):
            query = "SELECT hash, value FROM contexts WHERE hash = ANY(%b)"
            for key, value in self._database.rows(query, [batch]):
                read[key] = NodeContext.read(value)
        return read

    # Links

    def read_links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each id."""
        return self._links(ids, incoming, existing=False)

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node."""
        return self._links(ids, incoming, existing=True)

    def _links(self, ids: Sequence[str], incoming: bool, *, existing: bool) -> list[list[Link]]:
        links: dict[str, list[Link]] = {i: [] for i in ids}
        side = "l.target" if incoming else "l.source"
        ends = "JOIN nodes s ON s.id = l.source JOIN nodes t ON t.id = l.target"
        query = f"{_LINK} {ends if existing else ''} WHERE {side} = ANY(%b) ORDER BY l.key"
        for batch in portions(map(to_id, links)):
            for link in map(to_link, self._database.rows(query, [batch])):
                links[link.target if incoming else link.source].append(link)
        return [links[i] for i in ids]

    def put_links(self, links: Sequence[Link]) -> None:
        """Store links."""
        rows = {
            (to_id(k.source), to_id(k.target), to_bytes(k.type)): (
                *(float(k.weight), to_metadata(k.metadata), bool(k.derived)),
            )
            for k in links
        }
        with self._database.transaction() as db:
            for batch in portions((*key, *row) for key, row in rows.items()):
                db.run(_PUT_LINKS, _columns(batch))

    def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links."""
        ends = ((to_id(k.source), to_id(k.target), to_bytes(k.type)) for k in links)
        with self._database.transaction() as db:
            for batch in portions(ends):
                db.run(
                    "DELETE FROM links l USING unnest(%b::bytea[], %b::bytea[], %b::bytea[]) "
                    "AS gone (source, target, type) WHERE l.source = gone.source "
                    "AND l.target = gone.target AND l.type = gone.type",
                    _columns(batch),
                )

    # Values

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return values, also what came since this thread's snapshot."""
        query = "SELECT m.key, m.value FROM memory m JOIN kinds k ON k.key = m.kind WHERE k.name = "
        name = to_bytes(kind)
        if keys is None:
            rows = self._database.rows(f"{query} %b", [name], latest=True)
            return {from_id(key): value for key, value in rows}
        values: dict[str, bytes] = {}
        for batch in portions(map(to_id, keys)):
            rows = self._database.rows(
                f"{query} %b AND m.key = ANY(%b)", [name, batch], latest=True
            )
            values.update((from_id(key), value) for key, value in rows)
        return values

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values; what models made is paid, so that it is tried again for some seconds."""
        if self._database.is_writing():
            self._put_values(kind, values)
        elif values:
            retried(lambda: self._put_values(kind, values))

    def _put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        if not values:
            return
        name = to_bytes(kind)
        with self._database.transaction() as db:
            db.run("INSERT INTO kinds (name) VALUES (%b) ON CONFLICT DO NOTHING", [name])
            for batch in portions((to_id(key), bytes(value)) for key, value in values.items()):
                db.run(
                    "INSERT INTO memory SELECT k.key, new.key, new.value "
                    "FROM kinds k, unnest(%b::bytea[], %b::bytea[]) AS new (key, value) "
                    "WHERE k.name = %b "
                    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                    [*_columns(batch), name],
                )

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values."""
        with self._database.transaction() as db:
            if keys is None:
                db.run("DELETE FROM kinds WHERE name = %b", [to_bytes(kind)])
                return
            for batch in portions(map(to_id, keys)):
                db.run(
                    "DELETE FROM memory WHERE key = ANY(%b) "
                    "AND kind = (SELECT key FROM kinds WHERE name = %b)",
                    [batch, to_bytes(kind)],
                )

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        rows = self._database.rows(
            "SELECT name FROM kinds k WHERE EXISTS "
            "(SELECT FROM memory m WHERE m.kind = k.key) ORDER BY key",
            latest=True,
        )
        return [from_bytes(name) for (name,) in rows]


class _JournalValues:
    """Store the values of the journal, which are read as of a thread's snapshot."""

    def __init__(self, database: GraphDatabase) -> None:
        self._database = database

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return those of the values that exist, or all of a kind, by key."""
        query, values = "SELECT key, value FROM journal WHERE kind = %b", [to_bytes(kind)]
        if keys is None:
            rows = self._database.rows(query, values)
            return {from_bytes(key): value for key, value in rows}
        cache = self._database.snapshot_cache()  # the states of groups are read again and again
        read: dict[tuple[str, str], bytes | None] = {} if cache is None else cache.groups
        missing = [key for key in keys if (kind, key) not in read]
        for batch in portions(missing):
            new: dict[tuple[str, str], bytes | None] = {(kind, key): None for key in batch}
            ids = [to_bytes(key) for key in batch]
            for key, value in self._database.rows(f"{query} AND key = ANY(%b)", [*values, ids]):
                new[kind, from_bytes(key)] = value
            read.update(new)
        matches = {key: read[kind, key] for key in keys}
        return {key: value for key, value in matches.items() if value is not None}

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values, over existing ones."""
        with self._database.transaction() as db:
            for key, value in values.items():
                db.run(
                    "INSERT INTO journal VALUES (%b, %b, %b) "
                    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                    [to_bytes(kind), to_bytes(key), value],
                )

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values, or all of a kind."""
        with self._database.transaction() as db:
            if keys is None:
                db.run("DELETE FROM journal WHERE kind = %b", [to_bytes(kind)])
                return
            for batch in portions(map(to_bytes, keys)):
                query = "DELETE FROM journal WHERE kind = %b AND key = ANY(%b)"
                db.run(query, [to_bytes(kind), batch])


def _put_stamps(
    db: ServerConnection,
    group: bytes,
    stamps: Mapping[str, Stamp],
    places: Mapping[str, int | None],
) -> dict[str, int]:
    """Write stamps by document id; return the keys of their derivations."""
    rows = (
        (to_id(i), 0 if i == CORPUS else places[i], *map(to_bytes, stamp))
        for i, stamp in stamps.items()
    )
    keys: dict[str, int] = {}
    for batch in portions(rows):
        matches = db.rows(_PUT_STAMPS, [group, *_columns(batch)])
        keys.update((from_id(document), key) for document, key in matches)
    return keys


def _columns(rows: Sequence[Values]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
