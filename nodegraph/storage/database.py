"""The SQL database of a graph: the protocol of its connections, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ..concurrency import FairLock
from .columns import marks, portions

Row = tuple[Any, ...]


class Database(Protocol):
    """A connection to an SQL database, guarded by a lock that the store holds.

    Statements use ``?`` as the placeholder. Ids, names, texts and JSON are bytes.

    Attributes:
        lock: The lock of the graph. It guards the connection and the indexes. No thread may
            hold it while it waits for another thread, a model or a transform.
        has_blocks: Whether the texts of documents are stored in blocks, and the texts of nodes as
            spans of these blocks. Otherwise, each node is stored with its text.
    """

    lock: FairLock
    has_blocks: bool

    @property
    def place(self) -> str:
        """The path or address of the database. It is empty for a database in memory."""

    @property
    def index_folder(self) -> Path | None:
        """The folder for index files, or None if indexes stay in memory."""

    @property
    def is_read_only(self) -> bool:
        """Whether the database rejects all changes except those of derived rows."""

    @property
    def is_remote(self) -> bool:
        """Whether each statement takes a round trip to a server."""

    def begin(self, query: str) -> list[Row]:
        """Begin to read one state, and return the rows of its first query."""

    def begin_light(self, query: str, expected: list[Row] | None) -> list[Row]:
        """Begin a turn in which few or no queries follow, and return the rows of its first query.

        On a server, no transaction is open between the queries. Each query is sent together with
        the first one.

        Args:
            query: The first query.
            expected: The rows that the first query returned a moment ago. If None, it is sent.

        Raises:
            MissingNodeError: By a later query, if the rows of the first query have changed.
        """

    def begin_writing(self, query: str, *, durable: bool, derived: bool = False) -> list[Row]:
        """Begin a transaction after other processes have finished writing.

        Args:
            query: The first query, whose rows are returned.
            durable: Whether the commit survives a power failure. Otherwise a power failure may
                undo the commit, but never a part of it.
            derived: Whether all rows can be derived again. A read-only database writes them in
                memory.

        Raises:
            StoreError: If the database cannot be written to.
        """

    def commit(self) -> None:
        """End the current state or transaction, and commit its writes."""

    def roll_back(self) -> None:
        """End the current state or transaction, if any, and undo its writes."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values, inside a transaction.

        A database may delay the statement until the next query or the commit.
        """

    def streaming(self) -> AbstractContextManager[None]:
        """Use a small cache until the end of the block, which reads or writes many values once."""

    def truncate_log(self) -> None:
        """Free the disk space of a long log after a build, unless others are using the log."""

    def compact(self) -> None:
        """Free the disk space of deleted rows."""

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""


def select(
    database: Database,
    query: str,
    keys: Iterable[Any],
    values: Sequence[Any] = (),
    order: str = "",
) -> list[Row]:
    """Return the rows of a query with any number of keys.

    Args:
        database: The database.
        query: The query, which ends with ``IN``.
        keys: The keys. They are selected in portions that fit into one statement.
        values: The values of the placeholders in the query.
        order: The order of the rows in a portion, as SQL.
    """
    rows: list[Row] = []
    for portion in portions(keys):
        rows += database.rows(f"{query} ({marks(portion)}) {order}", [*values, *portion])
    return rows


FORMAT = 2
"""The version of the tables. Stores of version 1 are converted."""

TABLES = (
    # The last assigned keys, and the state number, which grows with every change.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    # Keys grow in the order of arrival. Document 0 stands for the corpus. Nodes that were derived
    # from a whole group belong to it.
    "CREATE TABLE documents (key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE)",
    # rules and built_for describe the last complete build. journaled counts the ids in the journal.
    """CREATE TABLE node_groups (
    key INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    journaled INTEGER NOT NULL,
    rules TEXT,
    built_for INTEGER NOT NULL
)""",
    # One row per revision of a group, with the ids of the removed nodes. Nodes and derivations have
    # the revision of their last change.
    """CREATE TABLE journal (
    grp INTEGER NOT NULL, revision INTEGER NOT NULL, removed BLOB NOT NULL,
    PRIMARY KEY (grp, revision)
)""",
    # The nodes of one group from one document. See Stamp for source, rule and metadata. text is the
    # key of the document's text. fields, search_text and text are those at that time.
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
    # The texts of documents. The upper bits of the key are the key of the text.
    "CREATE TABLE blocks (key INTEGER PRIMARY KEY, text BLOB NOT NULL)",
    # text: NULL if it is the span of the document's text from begin. content: NULL if it equals the
    # text. inherited: the parent's metadata beyond the document's metadata. parent: NULL for the
    # document. The text comes last, so that the other columns are read without it.
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
    # Cached and kept values: vectors, LLM answers, records of source files.
    """CREATE TABLE kept (
    kind BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)
)""",
    "INSERT INTO documents (key, id) VALUES (0, {empty})",
    """INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for)
    VALUES (0, {root}, 0, 0, 0, NULL, 0)""",
    """INSERT INTO counters (name, value) VALUES ('state', 0), ('documents', 0), ('node_groups', 0),
    ('derivations', 0), ('nodes', 0), ('links', 0), ('texts', 0)""",
)
"""The statements that create the tables. ``{empty}`` and ``{root}`` stand for two ids."""
