"""Values by kind and key in the file: vectors, answers of models, source files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .connection import Connection
from .values import from_key, marks, portions, to_key


def recall(db: Connection, kind: str, keys: Collection[str] | None) -> dict[str, bytes]:
    """Return those of the values that are there, or all of a kind, by key."""
    query = (
        "SELECT memory.key, value FROM memory WHERE kind = (SELECT key FROM kinds WHERE name = ?)"
    )
    if keys is None:
        return {from_key(key): value for key, value in db.rows(query, [kind])}
    found: dict[str, bytes] = {}
    for some in portions(to_key(i) for i in keys):
        rows = db.rows(f"{query} AND memory.key IN ({marks(some)})", [kind, *some])
        found.update((from_key(key), value) for key, value in rows)
    return found


def remember(db: Connection, kind: str, values: Mapping[str, bytes]) -> None:
    """Keep values, over what was there."""
    row = db.row("SELECT key FROM kinds WHERE name = ?", [kind])
    key = row[0] if row else db.run("INSERT INTO kinds (name) VALUES (?)", [kind])
    db.run_many(
        "INSERT INTO memory VALUES (?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
        ((key, to_key(name), value) for name, value in values.items()),
    )


def forget(db: Connection, kind: str, keys: Collection[str] | None) -> None:
    """Drop values, or all of a kind."""
    if keys is None:
        db.run("DELETE FROM kinds WHERE name = ?", [kind])
        return
    db.run_many(
        "DELETE FROM memory WHERE key = ? AND kind = (SELECT key FROM kinds WHERE name = ?)",
        ((to_key(key), kind) for key in keys),
    )
