"""Convert files of format 1, in which each node is stored together with its text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from .block_table import StoredBlocks
from .columns import check_numbers, from_words, marks, portions, reading_rows, to_id, to_text
from .database import FORMAT, TABLES, VECTOR_TABLES, Row
from .node_rows import NO_FIELD
from .vector_block import DIGEST, INSERT_BLOCK, INSERT_PLACE, VectorBlock, blocks_of
from .vector_table import VECTOR_KIND

_DERIVATIONS = """CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL,
    document INTEGER NOT NULL,
    source TEXT NOT NULL,
    rule TEXT NOT NULL,
    metadata TEXT NOT NULL,
    revision INTEGER NOT NULL,
    fields BLOB,
    search_text BLOB,
    UNIQUE (grp, document)
)"""

_NODES = """CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    derivation INTEGER NOT NULL,
    place INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    parent BLOB,
    begin INTEGER,
    shift INTEGER,
    metadata BLOB,
    inherited BLOB,
    search_text BLOB,
    inherited_search_text BLOB,
    content BLOB,
    text BLOB NOT NULL
)"""

_DOCUMENTS = "CREATE TABLE documents (key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE)"

_CHANGED = ("documents", "derivations", "nodes", "blocks")
"""The tables that differ between format 1 and the current format."""


def _is_changed(statement: str, kind: str) -> bool:
    """Return whether an SQL statement creates one of the changed tables, or an index of one."""
    first, _, _ = statement.partition("(")
    words = first.split()
    return words[:2] == ["CREATE", kind] and words[-1] in _CHANGED


_NEW_TABLES = [statement for statement in TABLES if _is_changed(statement, "TABLE")]

_NEW_INDEXES = [statement for statement in TABLES if _is_changed(statement, "INDEX")]

_KEPT = [s for s in TABLES if s not in _NEW_TABLES and s not in _NEW_INDEXES]

TABLES_OF_FORMAT_1 = (
    *_KEPT,
    _DOCUMENTS,
    _DERIVATIONS,
    _NODES,
    "CREATE INDEX derivations_by_document ON derivations (document)",
    "CREATE INDEX derivations_by_revision ON derivations (grp, revision)",
    "CREATE INDEX nodes_by_place ON nodes (derivation, place)",
    "CREATE INDEX nodes_by_parent ON nodes (derivation, parent)",
)
"""The SQL statements that created the tables in format 1."""


def convert(db: sqlite3.Connection, place: str) -> None:
    """Convert the tables of an SQLite database from format 1 to the current format.

    This must be called inside a transaction. All documents, nodes, links and values are kept, so
    that nothing has to be derived again.

    Args:
        db: The connection to the database.
        place: The path of the file, for error messages.

    Raises:
        StoreError: If a row is damaged.
    """
    with reading_rows(place):
        db.execute("ALTER TABLE documents RENAME TO old_documents")
        db.execute("ALTER TABLE derivations RENAME TO old_derivations")
        db.execute("ALTER TABLE nodes RENAME TO old_nodes")
        for statement in _NEW_TABLES:
            db.execute(statement)
        count = _copy(db)
        db.execute("DROP TABLE old_nodes")
        db.execute("DROP TABLE old_derivations")
        db.execute("DROP TABLE old_documents")
        for statement in (*_NEW_INDEXES, *VECTOR_TABLES):
            db.execute(statement)
        _move_vectors(db)
        db.execute("INSERT INTO counters (name, value) VALUES ('texts', ?)", [count])
        db.execute(f"PRAGMA user_version = {FORMAT}")


def _copy(db: sqlite3.Connection) -> int:
    """Copy all derivations and their nodes to the new tables, and return the number of texts."""
    db.execute(
        "INSERT INTO documents SELECT o.key, o.id, d.fields, d.search_text FROM old_documents o "
        "LEFT JOIN old_derivations d ON d.grp = 0 AND d.document = o.key"
    )
    _copy_document(db, 0, 0, None)
    roots = db.execute(
        "SELECT d.document, n.text FROM old_derivations d JOIN old_nodes n "
        "ON n.derivation = d.key WHERE d.grp = 0 ORDER BY d.document"
    )
    count = 0
    for document, column in roots:
        count += 1
        text = from_words(column)
        db.executemany("INSERT INTO blocks VALUES (?, ?)", StoredBlocks.rows(count, text))
        _copy_document(db, document, count, text)
    return count


def _copy_document(db: sqlite3.Connection, document: int, key: int, text: str | None) -> None:
    """Copy the derivations of a document to the new tables.

    Args:
        db: The connection.
        document: The database key of the document.
        key: The database key of its text.
        text: The text of the document, or None for nodes that were derived from a whole group.
    """
    derivations = db.execute(
        "SELECT key, grp, source, rule, metadata, revision, fields, search_text "
        "FROM old_derivations WHERE document = ?",
        [document],
    ).fetchall()
    now = db.execute("SELECT fields, search_text FROM documents WHERE key = ?", [document])
    present = now.fetchone()
    for derivation, group, *stamp, revision, fields, search_text in derivations:
        columns = [to_id(part) for part in stamp]
        own: Row = (None, None)
        if (fields, search_text) != present:
            own = (NO_FIELD if fields is None else fields, search_text)
        db.execute(
            f"INSERT INTO derivations VALUES ({marks(range(10))})",
            [derivation, group, document, key, *columns, revision, *own],
        )
        old = db.execute(
            "SELECT key, id, derivation, place, revision, parent, begin, shift, metadata, "
            "inherited, search_text, inherited_search_text, content, text FROM old_nodes "
            "WHERE derivation = ?",
            [derivation],
        )
        db.executemany(f"INSERT INTO nodes VALUES ({marks(range(15))})", _new_rows(old, text))


def _new_rows(rows: Iterator[Row], text: str | None) -> Iterator[Row]:
    """Convert rows of nodes, and replace copies of the document's text by references to it."""
    for *first, begin, shift, metadata, inherited, own, above, content, column in rows:
        length: int | None = None
        copy: Any = column
        of_node = from_words(column)
        if text is not None and begin is not None:
            check_numbers(begin)
            if text.startswith(of_node, begin):
                length = len(of_node)
                copy = None
        yield (*first, begin, length, shift, metadata, inherited, own, above, content, copy)


_VECTORS = 4_096  # the number of vectors that are moved at a time


def _move_vectors(db: sqlite3.Connection) -> None:
    """Move the vectors of all models from the table of values to blocks."""
    prefix = to_text(VECTOR_KIND)
    kinds = [kind for (kind,) in db.execute("SELECT DISTINCT kind FROM kept")]
    next_key = 1
    for model, kind in enumerate([kind for kind in kinds if kind.startswith(prefix)], start=1):
        name = kind.removeprefix(prefix)
        db.execute("INSERT INTO vector_models (key, name) VALUES (?, ?)", [model, name])
        rows = db.execute("SELECT key, value FROM kept WHERE kind = ? ORDER BY rowid", [kind])
        for page in portions(rows, _VECTORS):
            for block in _vector_blocks(next_key, model, page):
                db.execute(INSERT_BLOCK, block.row)
                db.executemany(INSERT_PLACE, block.places)
                next_key += 1
        db.execute("DELETE FROM kept WHERE kind = ?", [kind])


def _vector_blocks(next_key: int, model: int, rows: Sequence[Row]) -> Iterator[VectorBlock]:
    """Divide rows with the digest of a text and its vector into blocks."""
    import numpy as np

    by_size: dict[int, list[Row]] = {}
    for row in rows:
        _, vector = row
        by_size.setdefault(len(vector), []).append(row)
    for equal in by_size.values():
        digests = np.frombuffer(b"".join([digest for digest, _ in equal]), np.uint8)
        vectors = np.frombuffer(b"".join([vector for _, vector in equal]), "<f4")
        blocks = blocks_of(
            next_key,
            model,
            digests.reshape(len(equal), DIGEST),
            vectors.reshape(len(equal), -1),
        )
        for block in blocks:
            yield block
            next_key += 1
