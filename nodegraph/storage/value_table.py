"""The database table of values stored with a graph, such as answers and records of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .columns import from_id, reading_rows, to_id, to_ids, to_text
from .database import select
from .transactions import Transactions


class StoredValues:
    """Reads and writes binary values in a store. Each value is identified by a kind and a key.

    Args:
        transactions: The manager of transactions.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database
        # values that a read-only store keeps in memory, keyed by kind
        self._derived: dict[str, dict[str, bytes]] = {}

    def forget_derived(self) -> None:
        """Discard the values that a read-only store keeps in memory."""
        self._derived.clear()

    def get(
        self, kind: str, keys: Collection[str] | None = None, *, limit: int | None = None
    ) -> dict[str, bytes]:
        """Return values of a kind, keyed by their keys.

        Args:
            kind: The kind of the values.
            keys: The keys to read. If None, all values of this kind are returned.
            limit: The maximum number of values. If None, the number is not limited.
        """
        query = "SELECT key, value FROM kept WHERE kind = ?"
        name = to_text(kind)
        with self._database.lock:
            if keys is not None:
                query = f"{query} AND key IN"
                rows = select(self._database, query, to_ids(keys), [name])
            elif limit is not None:
                rows = self._database.rows(f"{query} LIMIT {limit}", [name])
            else:
                rows = self._database.rows(query, [name])
        with reading_rows(self._database.place):
            if any(type(value) is not bytes for _, value in rows):
                raise ValueError(f"a value of the kind {kind!r} must be bytes")
            values = {from_id(key): value for key, value in rows}
        derived = self._derived.get(kind)
        if derived:
            names = derived if keys is None else derived.keys() & set(keys)
            values |= {key: derived[key] for key in names}
        return values

    def keys(self, kind: str) -> set[str]:
        """Return the keys of all values of a kind, without reading the values."""
        rows = self._database.rows("SELECT key FROM kept WHERE kind = ?", [to_text(kind)])
        with reading_rows(self._database.place):
            found = {from_id(key) for (key,) in rows}
        return found | self._derived.get(kind, {}).keys()

    def existing(self, kind: str, keys: Collection[str]) -> set[str]:
        """Return the given keys for which a value exists, without reading the values."""
        query = "SELECT key FROM kept WHERE kind = ? AND key IN"
        rows = select(self._database, query, to_ids(keys), [to_text(kind)])
        with reading_rows(self._database.place):
            found = {from_id(key) for (key,) in rows}
        return found | (self._derived.get(kind, {}).keys() & set(keys))

    def put(self, kind: str, values: Mapping[str, bytes], *, derived: bool = False) -> None:
        """Insert or replace values of a kind.

        Args:
            kind: The kind of the values.
            values: The values to write, by key.
            derived: Whether the values can be computed again. A read-only store keeps such values
                in memory until it is closed.
        """
        if derived and self._database.is_read_only:
            with self._database.lock:
                self._derived.setdefault(kind, {}).update(values)
        elif values:
            with self._transactions.transaction():
                self._database.run_many(
                    "INSERT INTO kept VALUES (?, ?, ?) "
                    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                    [(to_text(kind), to_id(key), value) for key, value in values.items()],
                )

    def delete(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete stored values of a kind. If ``keys`` is None, all of them are deleted."""
        if keys is not None and not keys:
            return
        delete = "DELETE FROM kept WHERE kind = ?"
        name = to_text(kind)
        with self._transactions.transaction():
            if keys is None:
                self._database.run_many(delete, [(name,)])
            else:
                rows = [(name, to_id(key)) for key in keys]
                self._database.run_many(f"{delete} AND key = ?", rows)
