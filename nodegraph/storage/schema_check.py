"""Check the schema of an SQLite file that a stranger may have written."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from ..errors import StoreError
from .columns import DAMAGED
from .database import TABLES

_CREATED = re.compile(r"CREATE (TABLE|INDEX) (\w+)")


def protect(db: sqlite3.Connection) -> None:
    """Set the options that SQLite recommends for files of strangers."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def check_schema(db: sqlite3.Connection, place: object) -> None:
    """Check that a file has the tables of a graph, and neither views nor triggers.

    A view in place of a table may be endless, and triggers and expressions run at each write.

    Raises:
        StoreError: If the file has another schema.
    """
    rows = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    found = dict(filter(None, map(_described, rows)))
    if found != _EXPECTED:
        names = sorted(found.keys() ^ _EXPECTED.keys()) or sorted(
            name for name in found if found[name] != _EXPECTED[name]
        )
        raise StoreError(
            f"{place} must have the tables of a graph, and has other definitions of "
            f"{', '.join(names)[:200]}; {DAMAGED}"
        )


def _described(row: Sequence[object]) -> tuple[str, str] | None:
    """Return the name and the definition of a part of a schema. None: a part of SQLite."""
    kind, name, sql = row
    is_internal = kind in ("table", "index") and str(name).startswith("sqlite_")
    return None if is_internal else (str(name), _normal(sql))


def _normal(sql: object) -> str:
    return " ".join(str(sql).split())


def _expected() -> dict[str, str]:
    """Return the definitions of the tables and indexes, by name."""
    expected = {}
    for statement in TABLES:
        match = _CREATED.match(statement)
        if match is not None:
            expected[match[2]] = _normal(statement)
    return expected


_EXPECTED = _expected()
