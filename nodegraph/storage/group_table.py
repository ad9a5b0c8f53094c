"""The database table of node groups, with their sizes, revisions, builds and change journals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import StoreError
from ..node import ROOT
from .columns import DAMAGED, check_numbers, from_id, from_text, reading_rows, to_id, to_text
from .transactions import Transactions, random_step

_KEPT_ENTRIES = 500  # number of entries that remain in a truncated journal


class GroupRow(NamedTuple):
    """A row of the groups table. The fields are in the order of the columns.

    Attributes:
        key: The database key of the group, or -1 if the store does not contain the group.
        size: The number of nodes in the group.
        revision: A number that increases whenever the nodes or their links change.
        journaled: The number of ids and entries in the change journal of the group.
        rules: A hash of the rules used in the last complete build, or None if the group was never
            built.
        built_for: The revision of ``ROOT`` for which the group was built.
    """

    key: int = -1
    size: int = 0
    revision: int = 0
    journaled: int = 0
    rules: str | None = None
    built_for: int = 0

    def check(self) -> None:
        """Check the types of all columns.

        Raises:
            ValueError: If a column has the wrong type.
        """
        check_numbers(self.key, self.size, self.revision, self.journaled, self.built_for)
        if self.rules is not None and type(self.rules) is not str:
            raise ValueError("the rules of a group must be a text")


ChangedIds = tuple[Sequence[str], Sequence[str]]
"""The ids of removed nodes and of added nodes."""

_REMEMBERED = 16  # the number of changes that are kept in memory

_FEW_IDS = 1_000  # the maximum number of ids in a change that is kept in memory

_NO_GROUP = GroupRow()

_COLUMNS = ", ".join(GroupRow._fields)


class StoredGroups:
    """Reads and writes the node groups in a store.

    Args:
        transactions: The manager of transactions.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._forget()
        transactions.on_forget.append(self._forget)
        transactions.on_commit.append(self._write_changed)

    def _forget(self) -> None:
        self._rows: dict[str, GroupRow] = {}
        self._names: dict[int, str] = {}
        self._changed: set[str] = set()
        # changed ids, keyed by the key of the group, the earlier and the current revision
        self._changed_ids: dict[tuple[int, int, int], ChangedIds] = {}

    # Reading rows

    def _all(self) -> dict[str, GroupRow]:
        if not self._rows:
            found = self._database.rows(f"SELECT name, {_COLUMNS} FROM node_groups ORDER BY key")
            groups: dict[str, GroupRow] = {}
            with reading_rows(self._database.place):
                for name, *columns in found:
                    row = GroupRow(*columns)
                    row.check()
                    groups[from_text(name)] = row
                if groups[ROOT].key != 0:
                    raise ValueError(f"the group {ROOT} must have the key 0")
            self._rows = groups
            self._names = {row.key: name for name, row in groups.items()}
        return self._rows

    def row(self, group: str) -> GroupRow:
        """Return the row of a group. Its key is -1 if the store does not contain the group."""
        return self._all().get(group, _NO_GROUP)

    def name(self, key: int) -> str:
        """Return the name of the group with the given database key.

        Raises:
            KeyError: If no group has this key.
        """
        if key not in self._names:
            self._all()
        return self._names[key]

    def all_keys(self) -> list[int]:
        """Return the database keys of all groups, including ``ROOT``."""
        return [row.key for row in self._all().values()]

    def names(self) -> list[str]:
        """Return the names of all groups in the store except ``ROOT``."""
        with self._transactions:
            return [name for name in self._all() if name != ROOT]

    def count(self, group: str) -> int:
        """Return the number of nodes in a group, or 0 if it was never built."""
        return self._transactions.read(lambda: self.row(group).size)

    def revision(self, group: str) -> int:
        """Return the revision number of a group, which increases when its nodes or links change."""
        with self._transactions:
            return self.row(group).revision

    def built(self, group: str) -> tuple[str, int] | None:
        """Return the hash of the rules and the ``ROOT`` revision of a group's last complete build.

        The result is None if the group has never been built completely.
        """
        with self._transactions:
            row = self.row(group)
            return None if row.rules is None else (row.rules, row.built_for)

    # Making changes (inside a transaction)

    def key(self, group: str) -> int:
        """Return the database key of a group. A group that is not in the store is added."""
        row = self.row(group)
        if row.key < 0:
            row = GroupRow(self._transactions.next_key("node_groups", 1))
            self._database.run_many(
                f"INSERT INTO node_groups (name, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(to_text(group), *row)],
            )
            self._rows[group] = row
            self._names[row.key] = group
        return row.key

    def _change(self, group: str, **fields: Any) -> None:
        """Change fields in the row of a group.

        The row is written when the transaction is committed.
        """
        self.key(group)
        self._rows[group] = self._rows[group]._replace(**fields)
        self._changed.add(group)
        self._transactions.has_changed = True

    def _write_changed(self) -> None:
        rows = [self._rows[group] for group in self._changed]
        self._database.run_many(
            "UPDATE node_groups SET size = ?, revision = ?, journaled = ?, rules = ?, "
            "built_for = ? WHERE key = ?",
            [
                (row.size, row.revision, row.journaled, row.rules, row.built_for, row.key)
                for row in rows
            ],
        )
        self._changed.clear()

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Record the rules hash and the ``ROOT`` revision of a complete build of a group."""
        with self._transactions.transaction(durable=False, derived=True):
            if self.built(group) != (rules, revision):
                self._change(group, rules=rules, built_for=revision)

    def record(self, group: str, removed: Sequence[str] = (), added: int = 0) -> int:
        """Record a change of the nodes or links in a group, and return the new revision.

        Args:
            group: The name of the group.
            removed: The ids of nodes that were deleted or changed.
            added: The number of new and changed nodes.
        """
        key = self.key(group)
        row = self.row(group)
        revision = row.revision + random_step()
        journaled = row.journaled + 1 + len(removed)
        # From this size on, it is cheaper to read the whole group.
        if journaled > 2 * _KEPT_ENTRIES + row.size:
            self._database.run_many(
                "DELETE FROM journal WHERE grp = ? AND revision <= (SELECT revision FROM journal "
                "WHERE grp = ? ORDER BY revision DESC LIMIT 1 OFFSET ?)",
                [(key, key, _KEPT_ENTRIES)],
            )
            journaled = _KEPT_ENTRIES
        ids = json.dumps([to_id(i).hex() for i in removed]).encode()
        self._database.run_many("INSERT INTO journal VALUES (?, ?, ?)", [(key, revision, ids)])
        size = row.size - len(removed) + added
        if size < 0:
            raise StoreError(
                f"{group} cannot have {row.size} nodes if {len(removed)} change; {DAMAGED}"
            )
        self._change(group, size=size, revision=revision, journaled=journaled)
        return revision

    def changed_ids(self, group: str, since: int) -> ChangedIds | None:
        """Return the ids of nodes removed and added since a revision, or None if unknown."""
        with self._transactions:
            row = self.row(group)
            if since == row.revision:
                return [], []
            key = (row.key, since, row.revision)
            changed = self._changed_ids.get(key)
            if changed is None:
                changed = self._read_changed_ids(row.key, since)
                if changed is not None and len(changed[0]) + len(changed[1]) <= _FEW_IDS:
                    self._remember(key, changed)
            return changed

    def _read_changed_ids(self, key: int, since: int) -> ChangedIds | None:
        entries = self._database.rows(
            "SELECT revision, removed FROM journal WHERE grp = ? AND revision >= ? "
            "ORDER BY revision",
            [key, since],
        )
        if not entries or entries[0][0] != since:
            return None
        added = self._database.rows(
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "WHERE d.grp = ? AND d.revision > ? AND n.revision > ?",
            [key, since, since],
        )
        removed: list[str] = []
        with reading_rows(self._database.place):
            for _, ids in entries[1:]:
                removed += [from_id(bytes.fromhex(i)) for i in json.loads(ids)]
            return list(dict.fromkeys(removed)), [from_id(i) for (i,) in added]

    def _remember(self, key: tuple[int, int, int], changed: ChangedIds) -> None:
        """Keep the latest changes, since each index of a group asks for them after a change."""
        if len(self._changed_ids) >= _REMEMBERED:
            self._changed_ids.clear()
        self._changed_ids[key] = changed
