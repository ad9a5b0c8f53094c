"""Turns and transactions of a store, and its tables of groups and values."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from ..concurrency import fork_safe_fair_lock, turns_of_thread
from ..errors import StoreError
from ..node import ROOT
from .columns import (
    DAMAGED,
    check_numbers,
    decode,
    encode,
    from_id,
    from_text,
    marks,
    portions,
    reading_rows,
    to_id,
    to_text,
)
from .database import Database

_KEPT_ENTRIES = 500  # entries that remain in a truncated journal

_LONGEST_PAUSE = 0.25  # seconds between changes of documents, if searches wait

_OBJECT = b"\0"  # no JSON text begins with this byte


class GroupRow(NamedTuple):
    """A group in the store.

    Attributes:
        key: Its key; -1 if the store does not have it.
        size: The number of its nodes.
        revision: A number that grows with every change of its nodes or their links.
        journaled: The number of ids and entries in its journal.
        rules: The rules of its last complete build. None if it was never built.
        built_for: The revision of ``ROOT`` that it was built for.
    """

    key: int = -1
    size: int = 0
    revision: int = 0
    journaled: int = 0
    rules: str | None = None
    built_for: int = 0


_NO_GROUP = GroupRow()

_COUNTERS = {"state", "documents", "node_groups", "derivations", "nodes", "links"}


def _checked_group(row: GroupRow) -> GroupRow:
    """Return a group after a check.

    Raises:
        ValueError: If a column has a wrong type.
    """
    check_numbers(row.key, row.size, row.revision, row.journaled, row.built_for)
    if row.rules is not None and type(row.rules) is not str:
        raise ValueError("the rules of a group must be a text")
    return row


class Tables:
    """The turns and transactions of a store, its groups and its values.

    Args:
        database: The database.
        keeps_objects: Whether metadata may have objects that only this process can hold. They are
            kept next to the connection, since programs of both frameworks put objects into
            metadata.

    Attributes:
        database: The database, whose lock guards the graph.
    """

    def __init__(self, database: Database, *, keeps_objects: bool = False) -> None:
        self.database = database
        self._objects: list[Any] | None = [] if keeps_objects else None
        self._set_up()

    def _set_up(self) -> None:
        """Create the attributes that are not pickled."""
        self._writing = fork_safe_fair_lock()  # acquired before the lock of the graph
        self._next_change = 0.0  # time before which documents do not change again
        self._depth = 0  # number of nested turns, including the transaction
        self._writes = False
        self._has_changed = False  # whether the transaction has changed nodes or links
        self._counters: dict[str, int] = {}
        self._derived_values: dict[str, dict[str, bytes]] = {}  # by kind, of a read-only store
        self._forget()

    def _forget(self) -> None:
        """Clear the caches, which may be outdated, or hold rows that were rolled back."""
        self._state = -1  # the state of the last turn; -1 during a transaction
        self._groups: dict[str, GroupRow] = {}
        self._names: dict[int, str] = {}
        self._changed_groups: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {"database": self.database, "_objects": self._objects}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    # Turns and transactions

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        if not self._depth or not self.database.lock.acquire(blocking=False):
            return False
        try:
            return self._depth > 0
        finally:
            self.database.lock.release()

    def turn(self) -> Tables:
        """Hold the lock and read one state until the block ends.

        The block gets the number of the state, which changes with every change of nodes and links,
        by any process. Inside a transaction, the number is -1.
        """
        return self

    def __enter__(self) -> int:
        db = self.database
        db.lock.acquire()
        if self._depth:
            self._depth += 1
            return self._state
        try:
            self._begin()
            db.begin()
            if db.place or self._state < 0:  # no other process changes the memory
                states = db.rows("SELECT value FROM counters WHERE name = 'state'")
                if not states:
                    raise StoreError(f"{db.place}: {DAMAGED}")
                if states[0][0] != self._state:
                    with reading_rows(db.place):
                        check_numbers(states[0][0])
                    self._forget()
                    self._state = states[0][0]
        except BaseException:
            self._end()
            db.lock.release()
            raise
        return self._state

    def __exit__(self, *error: object) -> None:
        try:
            if self._depth > 1:
                self._depth -= 1
            else:
                self._end()
        finally:
            self.database.lock.release()

    @contextmanager
    def changing(self, change_lock: AbstractContextManager[object]) -> Iterator[None]:
        """Change documents in a transaction, and hold another lock until it ends.

        A thread that changes documents without end leaves half of the time to waiting searches.
        """
        with self._spread(change_lock), self.transaction():
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for transactions, and delay new transactions until the block ends.

        The block does not hold the graph's lock, so other threads can read.

        Raises:
            RuntimeError: If the thread is inside a turn or a transaction.
        """
        if self.is_held:
            raise RuntimeError("a graph cannot be compacted inside a retrieval or a change of it")
        with self._spread(nullcontext()):
            yield

    @contextmanager
    def _spread(self, lock: AbstractContextManager[object]) -> Iterator[None]:
        """Hold the lock of writers. The next such block may have to wait as long as this one took.

        It waits only if other threads waited for this block.
        """
        if self.is_held:
            yield
            return
        pause = self._next_change - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        with lock, self._writing:
            start = time.monotonic()
            try:
                yield
            finally:
                if self._writing.has_waiting or self.database.lock.has_waiting:
                    end = time.monotonic()
                    self._next_change = end + min(_LONGEST_PAUSE, end - start)

    @contextmanager
    def transaction(
        self, *, durable: bool = True, derived: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Hold the lock and commit all writes of the block, or none if the block raises.

        The block gets the numbers of the states before and after its changes of nodes and links;
        inside another transaction -1 for both.

        Args:
            durable: Whether the commit survives a power failure.
            derived: Whether all writes can be derived again. A read-only store keeps them in
                memory, and rejects other writes.

        Raises:
            RuntimeError: If the thread is inside a turn.
            StoreError: If the store cannot be written to.
        """
        db = self.database
        with nullcontext() if self.is_held else self._writing, db.lock:
            if self._depth:
                if not self._writes:
                    raise RuntimeError(
                        "the graph cannot be changed, and no group built, inside a retrieval of "
                        "the same graph; build the group before (graph.build(name)), or change "
                        "the graph after the retrieval has returned"
                    )
                yield -1, -1
                return
            try:
                self._begin()
                db.begin_writing(durable=durable, derived=derived)
                self._writes = True
                if db.place or not self._counters:
                    self._counters = self._read_counters()
                before = dict(self._counters)
                if before["state"] != self._state:
                    self._forget()
                self._state, self._has_changed = -1, False
                after = before["state"] + _random_step()
                yield before["state"], after
                if self._has_changed:
                    self._counters["state"] = after
                db.run_many(
                    "UPDATE node_groups SET size = ?, revision = ?, journaled = ?, rules = ?, "
                    "built_for = ? WHERE key = ?",
                    [(*row[1:], row.key) for row in map(self._group, self._changed_groups)],
                )
                db.run_many(
                    "UPDATE counters SET value = ? WHERE name = ?",
                    [(value, name) for name, value in self._counters.items() - before.items()],
                )
                db.commit()
                self._changed_groups.clear()
                self._state = self._counters["state"]
            except BaseException:
                self._forget()
                self._counters = {}
                raise
            finally:
                self._end()

    def _begin(self) -> None:
        self._depth = 1
        turns_of_thread.depth = getattr(turns_of_thread, "depth", 0) + 1

    def _end(self) -> None:
        """End the turn, or the transaction. Writes that are not committed are undone."""
        try:
            self.database.roll_back()
        finally:
            self._depth, self._writes = 0, False
            turns_of_thread.depth -= 1

    def _read_counters(self) -> dict[str, int]:
        """Return the counters of the store.

        Raises:
            StoreError: If a counter is missing or wrong.
        """
        counters: dict[str, int] = dict(self.database.rows("SELECT name, value FROM counters"))
        with reading_rows(self.database.place):
            check_numbers(*counters.values())
            if counters.keys() != _COUNTERS:
                raise ValueError(f"the counters must be {', '.join(sorted(_COUNTERS))}")
        return counters

    def _next_key(self, table: str, count: int) -> int:
        """Assign keys to new rows of a table, inside a transaction. Return the last key."""
        self._counters[table] += count
        return self._counters[table]

    # Groups

    def _all_groups(self) -> dict[str, GroupRow]:
        if not self._groups:
            query = (
                "SELECT name, key, size, revision, journaled, rules, built_for FROM node_groups "
                "ORDER BY key"
            )
            rows = self.database.rows(query)
            with reading_rows(self.database.place):
                groups = {from_text(name): _checked_group(GroupRow(*row)) for name, *row in rows}
                if groups[ROOT].key != 0:
                    raise ValueError(f"the group {ROOT} must have the key 0")
            self._groups = groups
            self._names = {row.key: name for name, row in groups.items()}
        return self._groups

    def _group(self, group: str) -> GroupRow:
        return self._all_groups().get(group, _NO_GROUP)

    def _group_key(self, group: str) -> int:
        """Return the key of a group. A new group is stored, inside a transaction."""
        row = self._group(group)
        if row.key < 0:
            row = row._replace(key=self._next_key("node_groups", 1))
            self.database.run_many(
                "INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for) "
                "VALUES (?, ?, 0, 0, 0, NULL, 0)",
                [(row.key, to_text(group))],
            )
            self._groups[group], self._names[row.key] = row, group
        return row.key

    def _change_group(self, group: str, **fields: Any) -> None:
        """Change the row of a group, inside a transaction."""
        self._group_key(group)
        self._groups[group] = self._groups[group]._replace(**fields)
        self._changed_groups.add(group)
        self._has_changed = True

    def _record(self, group: str, removed: Sequence[str], added: int) -> int:
        """Store a change of a group's nodes, inside a transaction. Return the new revision.

        Args:
            group: The group.
            removed: Ids of nodes that were deleted or changed.
            added: The number of nodes that are new or changed.
        """
        key, row = self._group_key(group), self._group(group)
        revision, journaled = row.revision + _random_step(), row.journaled + 1 + len(removed)
        if journaled > 2 * _KEPT_ENTRIES + row.size:  # reading the whole group is cheaper
            self.database.run_many(
                "DELETE FROM journal WHERE grp = ? AND revision <= (SELECT revision FROM journal "
                "WHERE grp = ? ORDER BY revision DESC LIMIT 1 OFFSET ?)",
                [(key, key, _KEPT_ENTRIES)],
            )
            journaled = _KEPT_ENTRIES
        ids = json.dumps([to_id(i).hex() for i in removed]).encode()
        self.database.run_many("INSERT INTO journal VALUES (?, ?, ?)", [(key, revision, ids)])
        size = row.size - len(removed) + added
        self._change_group(group, size=size, revision=revision, journaled=journaled)
        return revision

    def groups(self) -> list[str]:
        """Return the names of the groups in the store, without ``ROOT``."""
        with self:
            return [name for name in self._all_groups() if name != ROOT]

    def count(self, group: str) -> int:
        """Return the number of nodes of a group; 0 if it was never built."""
        with self:
            return self._group(group).size

    def revision(self, group: str) -> int:
        """Return the revision of a group, which grows with every change of its nodes and links."""
        with self:
            return self._group(group).revision

    def changed_ids(self, group: str, since: int) -> tuple[list[str], list[str]] | None:
        """Return the ids of removed and of added nodes after a revision. None: unknown."""
        with self:
            row = self._group(group)
            if since == row.revision:
                return [], []
            entries = self.database.rows(
                "SELECT revision, removed FROM journal WHERE grp = ? AND revision >= ? "
                "ORDER BY revision",
                [row.key, since],
            )
            if not entries or entries[0][0] != since:
                return None
            with reading_rows(self.database.place):
                removed = [bytes.fromhex(i) for _, ids in entries[1:] for i in json.loads(ids)]
                removed_ids = [*dict.fromkeys(map(from_id, removed))]
            added = self.database.rows(
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "WHERE d.grp = ? AND d.revision > ? AND n.revision > ?",
                [row.key, since, since],
            )
            with reading_rows(self.database.place):
                return removed_ids, [from_id(i) for (i,) in added]

    def built(self, group: str) -> tuple[str, int] | None:
        """Return the rules of a group's last complete build, and its ``ROOT`` revision."""
        with self:
            row = self._group(group)
            return None if row.rules is None else (row.rules, row.built_for)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Store the rules of a complete build, and its ``ROOT`` revision."""
        with self.transaction(durable=False, derived=True):
            if self.built(group) != (rules, revision):
                self._change_group(group, rules=rules, built_for=revision)

    # Values

    def get_values(
        self, kind: str, keys: Collection[str] | None = None, *, limit: int | None = None
    ) -> dict[str, bytes]:
        """Return existing values of a kind by key: some of them, all, or any up to a limit."""
        query, name = "SELECT key, value FROM kept WHERE kind = ?", to_text(kind)
        with self.database.lock:
            if keys is None:
                query = query if limit is None else f"{query} LIMIT {limit}"
                rows = self.database.rows(query, [name])
            else:
                rows = []
                for batch in portions(map(to_id, keys)):
                    of_batch = f"{query} AND key IN ({marks(batch)})"
                    rows += self.database.rows(of_batch, [name, *batch])
        with reading_rows(self.database.place):
            if any(type(value) is not bytes for _, value in rows):
                raise ValueError(f"a value of the kind {kind!r} must be bytes")
            values = {from_id(key): value for key, value in rows}
        if derived := self._derived_values.get(kind):
            names = derived if keys is None else derived.keys() & set(keys)
            values |= {key: derived[key] for key in names}
        return values

    def put_values(self, kind: str, values: Mapping[str, bytes], *, derived: bool = False) -> None:
        """Insert or replace values of a kind, by key.

        Args:
            kind: The kind.
            values: The values.
            derived: Whether the values can be derived again. A read-only store keeps them in memory
                until it is closed.
        """
        if derived and self.database.is_read_only:
            with self.database.lock:
                self._derived_values.setdefault(kind, {}).update(values)
        elif values:
            with self.transaction():
                self.database.run_many(
                    "INSERT INTO kept VALUES (?, ?, ?) "
                    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                    [(to_text(kind), to_id(key), value) for key, value in values.items()],
                )

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values of a kind: some of them, or all."""
        if keys is None or keys:
            delete, name = "DELETE FROM kept WHERE kind = ?", to_text(kind)
            with self.transaction():
                if keys is None:
                    self.database.run_many(delete, [(name,)])
                else:
                    rows = [(name, to_id(key)) for key in keys]
                    self.database.run_many(f"{delete} AND key = ?", rows)

    # Columns

    def _to_value(self, value: Any) -> bytes:
        """Convert a value to a column.

        Raises:
            TypeError: If the value cannot be stored in a file.
        """
        try:
            return to_text(encode(value))
        except TypeError:
            if self._objects is None:
                raise
            self._objects.append(dict(value) if isinstance(value, Mapping) else value)
            return _OBJECT + str(len(self._objects) - 1).encode()

    def _from_value(self, value: bytes) -> Any:
        if value[:1] == _OBJECT and self._objects is not None:
            kept = self._objects[int(value[1:])]
            return dict(kept) if isinstance(kept, dict) else kept
        return decode(from_text(value))

    def _to_metadata(self, metadata: Mapping[str, Any], owner: str) -> bytes | None:
        """Convert metadata to a column. Empty metadata gives None.

        Args:
            metadata: The metadata.
            owner: The node or document, for the error.

        Raises:
            TypeError: If a value cannot be stored in a file.
        """
        if not metadata:
            return None
        try:
            return self._to_value(dict(metadata))
        except TypeError:
            for field, value in metadata.items():
                try:
                    encode({field: value})
                except TypeError as error:
                    raise TypeError(f"metadata field {field!r} of {owner}: {error}") from error
            raise


def _random_step() -> int:
    """Return the difference to the next revision or state.

    The steps are random, so that a restored backup or a recreated file gets other numbers than the
    replaced store. They do not depend on ``random.seed`` and leave the program's random numbers
    unchanged.
    """
    return 1 + secrets.randbits(20)
