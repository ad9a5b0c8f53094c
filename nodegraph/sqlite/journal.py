"""The groups' revisions, and what changed between them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from ..codec import encode
from .connection import Connection
from .file import GraphFile
from .values import from_json, to_column

_TOKENS = 1 << 32


class GroupRow(NamedTuple):
    """What the file says of one group; see the schema."""

    key: int = -1
    size: int = 0
    sequence: int = 0
    token: int = 0
    rules: str | None = None
    built_for: int = 0

    @property
    def revision(self) -> int:
        """The group's counter, with a token that no other history of the file has."""
        return self.sequence * _TOKENS + self.token


class Journal:
    """Number the changes of each group, and remember the latest."""

    def __init__(self, file: GraphFile) -> None:
        self._file = file

    def group(self, name: str) -> GroupRow:
        """Return what is known of a group; zeros for one that never was."""
        seen = self._file.seen()
        if seen is not None and name in seen:
            known: GroupRow = seen[name]
            return known
        row = self._file.db.row(
            "SELECT key, size, sequence, token, rules, built_for FROM groups WHERE name = ?",
            [name],
        )
        group = GroupRow(*row) if row else GroupRow()
        if seen is not None:
            seen[name] = group
        return group

    def key(self, db: Connection, name: str) -> int:
        """Return a group's key; a new group gets one."""
        row = db.row("SELECT key FROM groups WHERE name = ?", [name])
        return int(row[0]) if row else db.run("INSERT INTO groups (name) VALUES (?)", [name])

    def advance(
        self, db: Connection, group: int, removed: Sequence[str], added: int, grown: int
    ) -> int:
        """Give a group its next revision; return its number in sequence.

        Args:
            db: The connection that writes.
            group: The group's key.
            removed: Ids of the nodes that are gone or changed.
            added: How many are new or changed.
            grown: How many more nodes there are than before.
        """
        self._file.touch()
        size, sequence, journaled = db.row(
            "SELECT size, sequence, journaled FROM groups WHERE key = ?", [group]
        ) or (0, 0, 0)
        token = random.randrange(_TOKENS)
        db.run(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
            [
                *(group, sequence + 1, token, len(removed) + added),
                to_column(encode(list(removed))),
            ],
        )
        journaled += len(removed) + added
        most = (size + grown) // 2 + 1000
        if journaled > most:
            journaled = self._shorten(db, group, journaled, most // 2)
        db.run(
            "UPDATE groups SET size = ?, sequence = ?, token = ?, journaled = ? WHERE key = ?",
            [size + grown, sequence + 1, token, journaled, group],
        )
        return int(sequence) + 1

    def _shorten(self, db: Connection, group: int, journaled: int, most: int) -> int:
        """Forget the oldest entries, never the last one; return the size of those left."""
        entries = db.rows(
            "SELECT sequence, size FROM journal WHERE grp = ? ORDER BY sequence", [group]
        )
        forgotten = -1
        for sequence, size in entries[:-1]:
            if journaled <= most:
                break
            forgotten, journaled = sequence, journaled - size
        db.run("DELETE FROM journal WHERE grp = ? AND sequence <= ?", [group, forgotten])
        return journaled

    def removed_since(self, db: Connection, group: GroupRow, revision: int) -> list[str] | None:
        """Return the ids that went after a revision; None if the group does not remember it."""
        known = db.row(
            "SELECT 1 FROM journal WHERE grp = ? AND sequence = ? AND token = ?",
            [group.key, revision // _TOKENS, revision % _TOKENS],
        )
        if known is None:
            return None
        entries = db.rows(
            "SELECT removed FROM journal WHERE grp = ? AND sequence > ?",
            [group.key, sequence_of(revision)],
        )
        return list(dict.fromkeys(i for (ids,) in entries for i in from_json(ids)))


def sequence_of(revision: int) -> int:
    """Return a revision's number in sequence."""
    return revision // _TOKENS
