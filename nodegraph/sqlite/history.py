"""What documents held: texts and metadata, never changed, kept while something is made of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..codec import encode
from ..document import Document
from ..errors import StoreError
from ..node import NO_METADATA
from .connection import Connection
from .file import GraphFile
from .rows import from_column, from_json, to_column, to_json

_PAGE = 32_768  # characters

_KEPT_PAGES = 512

_KEPT_METADATA = 4096


class Versions:
    """Read and write versions of documents; remember those read last.

    A text lies in pages, so that cutting a node out of a long one reads little of it.
    """

    def __init__(self, file: GraphFile) -> None:
        self._file = file
        self._page = lru_cache(_KEPT_PAGES)(self._read_page)
        self.metadata = lru_cache(_KEPT_METADATA)(self._read_metadata)

    def put(self, db: Connection, document: Document) -> int:
        """Keep what a document holds; return the version's key.

        Raises:
            TypeError: If its metadata has a value that no file can hold.
        """
        try:
            metadata = to_json(document.metadata)
        except TypeError as error:
            raise TypeError(f"metadata of document {document.id!r}: {error}") from error
        version = db.run("INSERT INTO versions (metadata) VALUES (?)", [metadata])
        begins = range(0, max(len(document.text), 1), _PAGE)
        db.run_many(
            "INSERT INTO pages VALUES (?, ?)",
            (
                (_page_key(version, number), to_column(document.text[at : at + _PAGE]))
                for number, at in enumerate(begins)
            ),
        )
        return version

    def drop_unused(self, db: Connection, versions: Iterable[int | None]) -> None:
        """Drop those versions that nothing was made from any more."""
        for version in versions:
            used = "SELECT 1 FROM derivations WHERE version = ?"
            if version is not None and db.row(used, [version]) is None:
                db.run("DELETE FROM versions WHERE key = ?", [version])
                ends = (_page_key(version, 0), _page_key(version + 1, 0))
                db.run("DELETE FROM pages WHERE key >= ? AND key < ?", ends)

    def text(self, version: int, begin: int, size: int) -> str:
        """Cut ``size`` characters out of a version's text."""
        first, last = begin // _PAGE, max(begin + size - 1, begin) // _PAGE
        pages = [self._page(_page_key(version, number)) for number in range(first, last + 1)]
        text = pages[0] if len(pages) == 1 else "".join(pages)
        return text[begin - first * _PAGE : begin - first * _PAGE + size]

    def forget(self) -> None:
        """Forget what was read."""
        self._page.cache_clear()
        self.metadata.cache_clear()

    def _read_page(self, key: int) -> str:
        row = self._file.db.row("SELECT text FROM pages WHERE key = ?", [key])
        if row is None:
            raise StoreError(
                f"{self._file.path} is damaged, since a part of a text is missing; restore a "
                "backup, or delete it and build the graph anew from its sources"
            )
        return from_column(row[0])

    def _read_metadata(self, version: int) -> Mapping[str, Any]:
        row = self._file.db.row("SELECT metadata FROM versions WHERE key = ?", [version])
        return NO_METADATA if row is None or row[0] is None else from_json(row[0])


def _page_key(version: int, number: int) -> int:
    return version << 20 | number


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
