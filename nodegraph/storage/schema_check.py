"""Check the schema of an SQLite file, which may come from an untrusted source."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from ..errors import StoreError
from .columns import DAMAGED
from .database import TABLES, VECTOR_TABLES

_CREATED = re.compile(r"CREATE (TABLE|INDEX) (\w+)")


def protect(db: sqlite3.Connection) -> None:
    """Set the options that SQLite recommends for files from untrusted sources."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def check_schema(
    db: sqlite3.Connection,
    place: object,
    tables: Iterable[str] = (*TABLES, *VECTOR_TABLES),
) -> None:
    """Check that a file contains exactly the tables of a graph, and no views or triggers.

    This is necessary because a view that replaces a table could return endless rows, and triggers
    and expressions would run on each write.

    Args:
        db: The connection to the database.
        place: The path of the file.
        tables: The SQL statements that create the expected tables and indexes.

    Raises:
        StoreError: If the file has a different schema.
    """
    rows = db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    parts = [
        (str(kind), str(name), sql) for kind, name, sql in rows if not _is_internal(kind, str(name))
    ]
    found = {name: _normal(sql) for _, name, sql in parts}
    expected = _expected(tables)
    changed = [name for name in expected if found.get(name) != expected[name]]
    if changed:
        raise StoreError(
            f"{place} must have the tables of a graph, and has other definitions of "
            f"{', '.join(changed)}; {DAMAGED}"
        )
    added = [f"{kind.upper()} {name}"[:80] for kind, name, _ in parts if name not in expected]
    if added:
        raise StoreError(
            f"{place} must have the tables of a graph only, and also has {', '.join(added[:3])}"
            f"{_more(len(added) - 3)}; if you added them, remove them with the sqlite3 program "
            f"(DROP {added[0]};), otherwise {DAMAGED}"
        )


def _is_internal(kind: object, name: str) -> bool:
    """Return whether a schema entry is internal to SQLite, such as the statistics of ANALYZE."""
    return kind in ("table", "index") and name.startswith("sqlite_")


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _normal(sql: object) -> str:
    return " ".join(str(sql).split())


def _expected(tables: Iterable[str]) -> dict[str, str]:
    """Return the expected definitions of tables and indexes, keyed by name."""
    expected = {}
    for statement in tables:
        match = _CREATED.match(statement)
        if match is not None:
            expected[match[2]] = _normal(statement)
    return expected
