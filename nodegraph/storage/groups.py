"""Groups in the store: their sizes, revisions, and the journal of removed nodes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..node import ROOT
from .database import Database
from .rows import Table, from_id, from_text, to_id, to_text

_KEPT_ENTRIES = 500  # entries that remain in a truncated journal


def random_step() -> int:
    """Return the difference to the next revision or state.

    The steps are random, so that a restored backup or a recreated file gets other numbers than the
    replaced store.
    """
    return 1 + random.getrandbits(20)


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


_UNKNOWN = GroupRow()


class Groups(Table):
    """The groups of a store, cached until the state changes."""

    def __init__(self, database: Database, next_key: Callable[[str, int], int]) -> None:
        super().__init__(database, next_key)
        self.forget()

    def forget(self) -> None:
        """Clear the cache."""
        self._rows: dict[str, GroupRow] = {}
        self._names: dict[int, str] = {}
        self._changed: set[str] = set()

    def _all(self) -> dict[str, GroupRow]:
        if not self._rows:
            query = (
                "SELECT name, key, size, revision, journaled, rules, built_for FROM node_groups "
                "ORDER BY key"
            )
            self._rows = {from_text(name): GroupRow(*row) for name, *row in self._db.rows(query)}
            self._names = {row.key: name for name, row in self._rows.items()}
        return self._rows

    def others(self) -> list[str]:
        """Return the names of all groups except ``ROOT``."""
        return [name for name in self._all() if name != ROOT]

    def name(self, key: int) -> str:
        """Return the name of a group by its key."""
        if key not in self._names:
            self._all()
        return self._names[key]

    def row(self, group: str) -> GroupRow:
        """Return a group."""
        return self._all().get(group, _UNKNOWN)

    def key(self, group: str) -> int:
        """Return the key of a group. Requires a transaction, since it stores new groups."""
        row = self.row(group)
        if row.key < 0:
            row = row._replace(key=self._next_key("node_groups", 1))
            self._db.run_many(
                "INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for) "
                "VALUES (?, ?, 0, 0, 0, NULL, 0)",
                [[row.key, to_text(group)]],
            )
            self._rows[group], self._names[row.key] = row, group
        return row.key

    def put(self, group: str, row: GroupRow) -> None:
        """Change a group; inside a transaction."""
        self._rows[group] = row._replace(key=self.key(group))
        self._changed.add(group)

    def flush(self) -> None:
        """Write the changed groups; before the commit."""
        changed = [self._rows[group] for group in self._changed]
        self._changed = set()
        self._db.run_many(
            "UPDATE node_groups SET size = ?, revision = ?, journaled = ?, rules = ?, "
            "built_for = ? WHERE key = ?",
            [[*row[1:], row.key] for row in changed],
        )

    def next_revision(self, group: str) -> int:
        """Return the revision that the next change will have."""
        return self.row(group).revision + random_step()

    def record(self, group: str, revision: int, removed: Sequence[str], added: int) -> None:
        """Store a change of a group's nodes; inside a transaction.

        Args:
            group: The group.
            revision: The new revision.
            removed: Ids of nodes that were deleted or changed.
            added: The number of nodes that are new or changed.
        """
        key, row = self.key(group), self.row(group)
        journaled = row.journaled + 1 + len(removed)
        if journaled > 2 * _KEPT_ENTRIES + row.size:  # reading the whole group is cheaper
            self._db.run_many(
                "DELETE FROM journal WHERE grp = ? AND revision <= (SELECT revision FROM journal "
                "WHERE grp = ? ORDER BY revision DESC LIMIT 1 OFFSET ?)",
                [[key, key, _KEPT_ENTRIES]],
            )
            journaled = _KEPT_ENTRIES
        ids = json.dumps([to_id(i).hex() for i in removed]).encode()
        self._db.run_many("INSERT INTO journal VALUES (?, ?, ?)", [[key, revision, ids]])
        size = row.size - len(removed) + added
        self.put(group, row._replace(size=size, revision=revision, journaled=journaled))

    def changed_ids(self, group: str, since: int) -> tuple[list[str], list[str]] | None:
        """Return the ids removed and the ids added after a revision.

        None if the journal does not have the revision.
        """
        key = self.row(group).key
        entries = self._db.rows(
            "SELECT revision, removed FROM journal WHERE grp = ? AND revision >= ? "
            "ORDER BY revision",
            [key, since],
        )
        if not entries or entries[0][0] != since:
            return None
        removed = {i: None for _, ids in entries[1:] for i in json.loads(ids)}
        added = self._db.rows(
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "WHERE d.grp = ? AND d.revision > ? AND n.revision > ?",
            [key, since, since],
        )
        return [from_id(bytes.fromhex(i)) for i in removed], [from_id(i) for (i,) in added]
