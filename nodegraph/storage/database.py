"""The interface of database connections, and the definitions of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ..concurrency import FairLock
from .columns import marks, portions

Row = tuple[Any, ...]


class Database(Protocol):
    """The interface of a connection to an SQL database. The store holds a lock while it is used.

    SQL statements use ``?`` as placeholder. Texts, names, JSON and ids are stored as bytes.

    Attributes:
        lock: The lock of the graph, which protects the connection and the indexes. A thread must
            not hold it while it waits for another thread, a model or a transform.
        has_blocks: Whether the texts of documents and the vectors are stored in blocks, to which
            other rows refer. If False, each node is stored together with its text, and each vector
            is a value.
    """

    lock: FairLock
    has_blocks: bool

    @property
    def place(self) -> str:
        """The path or URL of the database. It is empty for a database in memory."""

    @property
    def index_folder(self) -> Path | None:
        """The folder for index files, or None if indexes are kept in memory."""

    @property
    def is_read_only(self) -> bool:
        """True if the database is read-only. Rows that can be computed again are still accepted."""

    @property
    def is_remote(self) -> bool:
        """True if each statement requires a round trip to a server."""

    def begin(self, query: str) -> list[Row]:
        """Begin to read a consistent state, and return the rows of the first query."""

    def begin_light(self, query: str, expected: list[Row] | None) -> list[Row]:
        """Begin a read transaction with few further queries, and return the rows of the first.

        On a server, no transaction is kept open between queries. Instead, the first query is sent
        again together with each later query.

        Args:
            query: The first query.
            expected: The rows that the first query returned a moment ago. If None, the query is
                sent.

        Raises:
            MissingNodeError: Raised by a later query if the rows of the first query have changed.
        """

    def begin_writing(self, query: str, *, durable: bool, derived: bool = False) -> list[Row]:
        """Wait until other processes have finished writing, and begin a transaction.

        Args:
            query: The first query of the transaction, whose rows are returned.
            durable: Whether the commit must survive a power failure. If False, a power failure may
                undo the whole commit, but never only a part of it.
            derived: Whether all written rows can be computed again. A read-only database keeps such
                rows in memory.

        Raises:
            StoreError: If the database cannot be written to.
        """

    def commit(self) -> None:
        """End the current transaction and commit all writes."""

    def roll_back(self) -> None:
        """End the current transaction, if there is one, and undo all writes."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all rows."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values. This must be called inside a transaction.

        A database may postpone the statement until the next query or the commit.
        """

    def streaming(self) -> AbstractContextManager[None]:
        """Use a small page cache inside the block, which reads or writes many values only once."""

    def truncate_log(self) -> None:
        """Free the disk space of a long log after a build, unless other connections use the log."""

    def compact(self) -> None:
        """Free the disk space used by deleted rows."""

    def close(self) -> None:
        """Close the connection. It is reopened when it is needed again."""


def select(
    database: Database,
    query: str,
    keys: Iterable[Any],
    values: Sequence[Any] = (),
    order: str = "",
) -> list[Row]:
    """Run a query with any number of keys, and return all rows.

    Args:
        database: The database to query.
        query: The SQL query, which must end with ``IN``.
        keys: The keys to select. They are divided into portions that fit into one statement.
        values: The values for the placeholders in the query.
        order: An SQL clause for the order of the rows in each portion.
    """
    rows: list[Row] = []
    for portion in portions(keys):
        rows += database.rows(f"{query} ({marks(portion)}) {order}", [*values, *portion])
    return rows


FORMAT = 3
"""The version of the table definitions. Stores with version 1 are converted."""

TABLES = (
    # The last keys that were assigned, and the state number, which increases with every change.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    # Keys increase in the order in which documents were added. Document 0 represents the whole
    # corpus. Nodes that were derived from a whole group belong to it. The columns fields and
    # search_text contain the current metadata and search text of the document.
    """CREATE TABLE documents (
    key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, fields BLOB, search_text BLOB
)""",
    # The columns rules and built_for describe the last complete build. The column journaled counts
    # the ids in the journal.
    """CREATE TABLE node_groups (
    key INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    journaled INTEGER NOT NULL,
    rules TEXT,
    built_for INTEGER NOT NULL
)""",
    # The journal contains one row per revision of a group, with the ids of the removed nodes. Nodes
    # and derivations contain the revision of their last change.
    """CREATE TABLE journal (
    grp INTEGER NOT NULL, revision INTEGER NOT NULL, removed BLOB NOT NULL,
    PRIMARY KEY (grp, revision)
)""",
    # A derivation represents the nodes of one group that were derived from one document. For
    # source, rule and metadata, see the class Stamp. The column text is the key of the document's
    # text. The columns fields, search_text and text contain the values at the time of the
    # derivation. If fields is NULL, fields and search_text are the current values of the document.
    """CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL,
    document INTEGER NOT NULL,
    text INTEGER NOT NULL,
    source BLOB NOT NULL,
    rule BLOB NOT NULL,
    metadata BLOB NOT NULL,
    revision INTEGER NOT NULL,
    fields BLOB,
    search_text BLOB,
    UNIQUE (grp, document)
)""",
    "CREATE INDEX derivations_by_revision ON derivations (grp, revision)",
    # The texts of documents. The upper bits of a block's key are the key of the text.
    "CREATE TABLE blocks (key INTEGER PRIMARY KEY, text BLOB NOT NULL)",
    # The column text is NULL if the text is the part of the document's text that starts at begin.
    # The column content is NULL if the content equals the text. The column inherited contains the
    # parent's metadata that does not come from the document. The column parent is NULL if the
    # parent is the document. The text comes last, so that other columns can be read without it.
    """CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    derivation INTEGER NOT NULL,
    place INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    parent BLOB,
    begin INTEGER,
    length INTEGER,
    shift INTEGER,
    metadata BLOB,
    inherited BLOB,
    search_text BLOB,
    inherited_search_text BLOB,
    content BLOB,
    text BLOB
)""",
    "CREATE INDEX nodes_by_place ON nodes (derivation, place)",
    "CREATE INDEX nodes_by_parent ON nodes (parent) WHERE parent IS NOT NULL",
    """CREATE TABLE links (
    key INTEGER PRIMARY KEY,
    source BLOB NOT NULL,
    target BLOB NOT NULL,
    type BLOB NOT NULL,
    weight REAL NOT NULL,
    metadata BLOB,
    derived INTEGER NOT NULL,
    UNIQUE (source, target, type)
)""",
    "CREATE INDEX links_by_target ON links (target)",
    # Cached values and values that are kept with the graph: LLM answers, records of source files
    # and, in databases without blocks, vectors.
    """CREATE TABLE kept (
    kind BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)
)""",
    "INSERT INTO documents (key, id) VALUES (0, {empty})",
    """INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for)
    VALUES (0, {root}, 0, 0, 0, NULL, 0)""",
    """INSERT INTO counters (name, value) VALUES ('state', 0), ('documents', 0), ('node_groups', 0),
    ('derivations', 0), ('nodes', 0), ('links', 0), ('texts', 0)""",
)
"""The SQL statements that create the tables. The placeholders ``{empty}`` and ``{root}`` are
replaced by ids."""

VECTOR_TABLES = (
    "CREATE TABLE vector_models (key INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
    # A block contains vectors of one model, and the digests of their texts in the same order. The
    # column size contains the number of bytes of one vector. Small blocks are joined later.
    """CREATE TABLE vector_blocks (
    key INTEGER PRIMARY KEY,
    model INTEGER NOT NULL,
    count INTEGER NOT NULL,
    size INTEGER NOT NULL,
    digests BLOB NOT NULL,
    vectors BLOB NOT NULL
)""",
    """CREATE INDEX vector_tail ON vector_blocks (model, size)
    WHERE count < 128 AND count * size < 49152""",
    # The place of a vector is the key of its block, multiplied by 256, plus its position there. A
    # vector without a place was deleted or replaced.
    """CREATE TABLE vector_places (
    model INTEGER NOT NULL, digest BLOB NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (model, digest)
) WITHOUT ROWID""",
)
"""The SQL statements that create the tables of vectors in databases that have blocks."""
