"""Versions of documents, and the revisions of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..codec import encode
from ..journal import TOKENS, GroupState, Journal, entry_size
from ..node import NO_METADATA, Node
from ..search_text import SearchText
from .connection import Connection
from .file import GraphFile
from .rows import (
    checksum,
    from_column,
    from_json,
    from_key,
    put_search_text,
    to_column,
    to_json,
)

_PAGE = 32_768  # characters

_CACHED_PAGES = 512

_CACHED_METADATA = 4096


class Versions:
    """Read and write versions of documents: texts and metadata, with a cache of the latest read.

    A version is never changed; it is stored while something derived from it is.
    A text lies in pages, so that cutting a node out of a long one reads little of it.
    """

    def __init__(self, file: GraphFile) -> None:
        self._file = file
        self._page = lru_cache(_CACHED_PAGES)(self._read_page)
        self.metadata = lru_cache(_CACHED_METADATA)(self._read_metadata)
        self.search_text = lru_cache(_CACHED_METADATA)(self._read_search_text)
        self.search_text_by_key = lru_cache(_CACHED_METADATA)(self._read_search_text_by_key)

    def put(self, db: Connection, document: Node) -> int:
        """Store what a document holds; return the version's key.

        Raises:
            TypeError: If its metadata has a value that no file can hold.
        """
        try:
            metadata = to_json(document.own_metadata)
        except TypeError as error:
            raise TypeError(f"metadata of document {document.id!r}: {error}") from error
        search_text = put_search_text(db, document.search_text)
        version = db.run(
            "INSERT INTO versions (metadata, checksum, search_text) VALUES (?, ?, ?)",
            [metadata, checksum(metadata), search_text],
        )
        starts = range(0, max(len(document.text), 1), _PAGE)
        db.run_many(
            "INSERT INTO pages (key, text, checksum) VALUES (?, ?, ?)",
            (
                (_page_key(version, number), page, checksum(page))
                for number, at in enumerate(starts)
                for page in [to_column(document.text[at : at + _PAGE])]
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

    def text(self, version: int, start: int, size: int) -> str:
        """Cut ``size`` characters out of a version's text."""
        first, last = start // _PAGE, max(start + size - 1, start) // _PAGE
        if first == last:
            start -= first * _PAGE
            return self._page(_page_key(version, first))[start : start + size]
        pages = [self._page(_page_key(version, number)) for number in range(first, last + 1)]
        return "".join(pages)[start - first * _PAGE : start - first * _PAGE + size]

    def clear_cache(self) -> None:
        """Clear what was read."""
        self._page.cache_clear()
        self.metadata.cache_clear()
        self.search_text.cache_clear()
        self.search_text_by_key.cache_clear()

    def _read_page(self, key: int) -> str:
        row = self._file.db.row("SELECT text, checksum FROM pages WHERE key = ?", [key])
        if row is None:
            raise self._file.db.damaged("a part of a text is missing")
        if row[1] not in (None, checksum(row[0])):
            raise self._file.db.damaged("a part of a text is not what was written")
        return from_column(row[0])

    def _read_metadata(self, version: int) -> Mapping[str, Any]:
        query = "SELECT metadata, checksum FROM versions WHERE key = ?"
        row = self._file.db.row(query, [version])
        if row is not None and row[1] not in (None, checksum(row[0])):
            raise self._file.db.damaged("a document's metadata are not what was written")
        return NO_METADATA if row is None or row[0] is None else from_json(row[0])

    def _read_search_text(self, version: int) -> SearchText | None:
        row = self._file.db.row("SELECT search_text FROM versions WHERE key = ?", [version])
        return None if row is None or row[0] is None else self.search_text_by_key(row[0])

    def _read_search_text_by_key(self, key: int) -> SearchText | None:
        row = self._file.db.row("SELECT value FROM search_texts WHERE key = ?", [key])
        return None if row is None else SearchText.from_row(from_json(row[0]))


def _page_key(version: int, number: int) -> int:
    return version << 20 | number


class SQLiteJournal(Journal):
    """Store revisions and changes in tables of their own.

    An entry has only the ids that were removed: nodes have the number of their last change.
    """

    def __init__(self, file: GraphFile) -> None:
        self._file = file

    def state(self, group: str) -> GroupState:
        """Return the state of a group."""
        return self.row(group)[1]

    def row(self, group: str) -> tuple[int, GroupState]:
        """Return a group's key, -1 where it has none, and its state."""
        cache = self._file.snapshot_cache()
        if cache is not None and group in cache.groups:
            cached: tuple[int, GroupState] = cache.groups[group]
            return cached
        values = self._file.db.row(
            "SELECT key, size, sequence, token, journaled, rules, built_for FROM groups "
            "WHERE name = ?",
            [group],
        )
        row = (-1, GroupState())
        if values is not None:
            key, size, sequence, token, journal_size, rules, built_for = values
            state = GroupState(
                size, sequence, token, journal_size, rules=rules, built_for=built_for
            )
            row = (key, state)
        if cache is not None:
            cache.groups[group] = row
        return row

    def put_state(self, group: str, state: GroupState) -> None:
        """Store the state of a group."""
        self._file.db.run(
            "UPDATE groups SET size = ?, sequence = ?, token = ?, journaled = ?, rules = ?, "
            "built_for = ? WHERE key = ?",
            [*state[:4], state.rules, state.built_for, self.key(group)],
        )

    def key(self, group: str) -> int:
        """Return a group's key; a new group gets one."""
        db = self._file.db
        row = db.row("SELECT key FROM groups WHERE name = ?", [group])
        return int(row[0]) if row else db.run("INSERT INTO groups (name) VALUES (?)", [group])

    def groups(self) -> list[str]:
        """Return the names of all groups."""
        return [name for (name,) in self._file.db.rows("SELECT name FROM groups ORDER BY key")]

    def append(
        self, group: str, sequence: int, token: int, removed: Sequence[str], added: Sequence[str]
    ) -> None:
        """Store an entry."""
        self._file.db.run(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
            [
                *(self.key(group), sequence, token, entry_size(removed, added)),
                to_column(encode(list(removed))),
            ],
        )

    def entry_sizes(self, group: str, state: GroupState) -> list[tuple[int, int]]:
        """Return the number and size of each entry before the last one, oldest first."""
        query = "SELECT sequence, size FROM journal WHERE grp = ? ORDER BY sequence"
        return [(number, size) for number, size in self._file.db.rows(query, [self.key(group)])][
            :-1
        ]

    def empty(self, group: str, number: int) -> None:
        """Drop the ids of an entry; its number and token stay."""
        self._file.db.run(
            "UPDATE journal SET size = 0, removed = ? WHERE grp = ? AND sequence = ?",
            [to_column(encode([])), self.key(group), number],
        )

    def delete(self, group: str, first: int, stop: int) -> None:
        """Delete the entries before a number."""
        self._file.db.run(
            "DELETE FROM journal WHERE grp = ? AND sequence < ?", [self.key(group), stop]
        )

    def changes(self, group: str, revision: int) -> tuple[Sequence[str], Sequence[str]] | None:
        """Return ids removed and ids added after a revision; None if it is not in the journal."""
        db, (key, _) = self._file.db, self.row(group)
        sequence, token = divmod(revision, TOKENS)
        query = "SELECT 1 FROM journal WHERE grp = ? AND sequence = ? AND token = ?"
        if db.row(query, [key, sequence, token]) is None:
            return None
        query = "SELECT removed FROM journal WHERE grp = ? AND sequence > ?"
        entries = db.rows(query, [key, sequence])
        removed = list(dict.fromkeys(i for (ids,) in entries for i in from_json(ids)))
        added = db.rows(
            "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
            "WHERE d.grp = ? AND d.sequence > ? AND n.sequence > ?",
            [key, sequence, sequence],
        )
        return removed, [from_key(i) for (i,) in added]
