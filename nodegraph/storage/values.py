"""Cached and kept values of a store: vectors, LLM answers, records of source files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .rows import Table, from_id, from_text, marks, portions, to_id, to_text


class ValueTable(Table):
    """Values by kind and key."""

    def get(self, kind: str, keys: Collection[str] | None, limit: int | None) -> dict[str, bytes]:
        """Return existing values of a kind by key: some of them, all, or any up to a limit."""
        query = (
            "SELECT kept.key, kept.value FROM kept JOIN kinds ON kinds.key = kept.kind "
            "WHERE kinds.name = ?"
        )
        name = to_text(kind)
        if keys is None:
            rows = self._db.rows(query if limit is None else f"{query} LIMIT {limit}", [name])
        else:
            rows = [
                row
                for batch in portions(map(to_id, keys))
                for row in self._db.rows(
                    f"{query} AND kept.key IN ({marks(batch)})", [name, *batch]
                )
            ]
        return {from_id(key): value for key, value in rows}

    def put(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Insert or replace values of a kind, by key."""
        rows = self._db.rows("SELECT key FROM kinds WHERE name = ?", [to_text(kind)])
        key = rows[0][0] if rows else self._next_key("kinds", 1)
        if not rows:
            self._db.run_many("INSERT INTO kinds VALUES (?, ?)", [(key, to_text(kind))])
        self._db.run_many(
            "INSERT INTO kept VALUES (?, ?, ?) "
            "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
            [(key, to_id(name), value) for name, value in values.items()],
        )

    def delete(self, kind: str, keys: Collection[str] | None) -> None:
        """Delete values of a kind: some of them, or all."""
        delete = "DELETE FROM kept WHERE kind = (SELECT key FROM kinds WHERE name = ?)"
        name = to_text(kind)
        if keys is None:
            self._db.run_many(delete, [(name,)])
            self._db.run_many("DELETE FROM kinds WHERE name = ?", [(name,)])
        else:
            self._db.run_many(f"{delete} AND key = ?", [(name, to_id(key)) for key in keys])

    def kinds(self) -> list[str]:
        """Return the kinds of the values."""
        rows = self._db.rows(
            "SELECT name FROM kinds WHERE EXISTS "
            "(SELECT 1 FROM kept WHERE kept.kind = kinds.key) ORDER BY key"
        )
        return [from_text(name) for (name,) in rows]
