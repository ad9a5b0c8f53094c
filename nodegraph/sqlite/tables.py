"""How a graph is written in the tables of its file: ids, texts, links, values, versions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..codec import decode, encode
from ..errors import StoreError
from ..journal import TOKENS, GroupState, Journal, entry_size
from ..node import NO_METADATA, Link, Node
from ..search_text import SearchText
from .connection import DAMAGE_REMEDY, Connection, Row
from .file import GraphFile

_HEXADECIMAL = re.compile("[0-9a-f]{24}")

_SURROGATES = b"surrogatepass"  # longer than an id of ours

_VARIABLES = 900  # that one statement may have, in every build of SQLite


def to_key(name: str) -> bytes | str:
    """Write an id or a hash; one of ours in half the bytes."""
    return bytes.fromhex(name) if _HEXADECIMAL.fullmatch(name) else to_column(name)


def from_key(value: bytes | str) -> str:
    """Read an id."""
    if isinstance(value, bytes) and len(value) == 12:
        return value.hex()
    return from_column(value)


def to_column(text: str) -> str | bytes:
    """Write a text, also one with half a character in it, which UTF-8 has no form for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES + text.encode("utf-8", "surrogatepass")
    return text


def from_column(value: str | bytes) -> str:
    """Read a text.

    Raises:
        StoreError: If it is none, since the file is damaged.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value[len(_SURROGATES) :].decode("utf-8", "surrogatepass")
    raise StoreError(f"the graph's file is damaged, since a text is {value!r:.40}; {DAMAGE_REMEDY}")


def to_json(metadata: Mapping[str, Any]) -> str | bytes | None:
    """Write metadata; None where there is none."""
    return to_column(encode(dict(metadata))) if metadata else None


def from_json(value: str | bytes) -> Any:
    """Read metadata, or any value."""
    return decode(from_column(value))


NO_SEARCH_TEXT = 0
"""The key where a node's parent has none, and the document has one."""


def put_search_text(db: Connection, search_text: SearchText | None) -> int | None:
    """Store a search text, each once; return its key, None where there is none."""
    if search_text is None:
        return None
    value = to_column(encode(search_text.to_row()))
    row = db.row("SELECT key FROM search_texts WHERE value = ?", [value])
    if row:
        return int(row[0])
    return db.run("INSERT INTO search_texts (value) VALUES (?)", [value])


def portions(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut values into lists that one statement can have as variables."""
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, _VARIABLES)):
        yield batch


def placeholders(values: Sequence[Any]) -> str:
    """Return a question mark for each value."""
    return ",".join("?" * len(values))


NODE = """
    SELECT n.id, n.text, n.content, n.begin, n.size, n.shift, n.metadata, n.inherited, n.parent,
        n.place, d.version, d.document, docs.id, groups.name, n.search_text,
        n.inherited_search_text
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document JOIN groups ON groups.key = d.grp
"""
"""The columns of a node."""

LINK = "s.id, links.target, links.type, links.weight, links.metadata, links.derived"
"""The columns of a link."""


def put_links(db: Connection, links: Iterable[Link]) -> None:
    """Put those links whose source exists."""
    db.run_many(
        "INSERT INTO links (source, target, type, weight, metadata, derived) "
        "SELECT key, ?, ?, ?, ?, ? FROM nodes WHERE id = ? "
        "ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight, "
        "metadata = excluded.metadata, derived = excluded.derived",
        map(_row, links),
    )


def _row(link: Link) -> Row:
    values = link.type, float(link.weight), to_json(link.metadata), int(link.derived)
    return to_key(link.target), *values, to_key(link.source)


def derived_links(db: Connection, derivation: int) -> list[Link]:
    """Return the links that a transform derived, also those to nodes that don't exist."""
    rows = db.rows(
        f"SELECT {LINK} FROM links JOIN nodes s ON s.key = links.source "
        "WHERE s.derivation = ? AND links.derived = 1 ORDER BY links.key",
        [derivation],
    )
    return [_link(row) for row in rows]


def delete_links(db: Connection, links: Iterable[Link]) -> None:
    """Delete links."""
    db.run_many(
        "DELETE FROM links WHERE source = (SELECT key FROM nodes WHERE id = ?) "
        "AND target = ? AND type = ?",
        ((to_key(link.source), to_key(link.target), link.type) for link in links),
    )


def read_links(
    db: Connection, ids: Sequence[str], *, incoming: bool, existing: bool
) -> list[list[Link]]:
    """Return the links from (or to) each id, of all or of those whose target exists."""
    links: dict[str, list[Link]] = {i: [] for i in ids}
    side = "links.target" if incoming else "s.id"
    target = "JOIN nodes t ON t.id = links.target" if existing else ""
    for keys in portions(to_key(i) for i in links):
        rows = db.rows(
            f"SELECT {LINK} FROM links JOIN nodes s ON s.key = links.source {target} "
            f"WHERE {side} IN ({placeholders(keys)}) ORDER BY links.key",
            keys,
        )
        for link in map(_link, rows):
            links[link.target if incoming else link.source].append(link)
    return [links[i] for i in ids]


def _link(row: Row) -> Link:
    source, target, kind, weight, metadata, derived = row
    more = NO_METADATA if metadata is None else from_json(metadata)
    return Link(from_key(source), from_key(target), kind, weight, more, bool(derived))


_VALUES = """
    SELECT memory.key, value FROM memory
    WHERE kind = (SELECT key FROM kinds WHERE name = ?)
"""


def get_values(db: Connection, kind: str, keys: Collection[str] | None) -> dict[str, bytes]:
    """Return those of the values that exist, or all of a kind, by key."""
    if keys is None:
        rows = db.rows(_VALUES, [kind])
    else:
        rows = []
        for batch in portions(to_key(i) for i in keys):
            query = f"{_VALUES} AND memory.key IN ({placeholders(batch)})"
            rows += db.rows(query, [kind, *batch])
    return {from_key(key): value for key, value in rows}


def put_values(db: Connection, kind: str, values: Mapping[str, bytes]) -> None:
    """Store values, over existing ones."""
    row = db.row("SELECT key FROM kinds WHERE name = ?", [kind])
    kind_key = row[0] if row else db.run("INSERT INTO kinds (name) VALUES (?)", [kind])
    db.run_many(
        "INSERT INTO memory VALUES (?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
        ((kind_key, to_key(key), value) for key, value in values.items()),
    )


def delete_values(db: Connection, kind: str, keys: Collection[str] | None) -> None:
    """Delete values, or all of a kind."""
    if keys is None:
        db.run("DELETE FROM kinds WHERE name = ?", [kind])
        return
    db.run_many(
        "DELETE FROM memory WHERE key = ? AND kind = (SELECT key FROM kinds WHERE name = ?)",
        ((to_key(key), kind) for key in keys),
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
        self.document = lru_cache(_CACHED_METADATA)(self._read_document)
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
            "INSERT INTO versions (metadata, search_text) VALUES (?, ?)", [metadata, search_text]
        )
        starts = range(0, max(len(document.text), 1), _PAGE)
        db.run_many(
            "INSERT INTO pages (key, text) VALUES (?, ?)",
            (
                (key, to_column(document.text[at : at + _PAGE]))
                for key, at in enumerate(starts, _page_key(version, 0))
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
        self.document.cache_clear()
        self.search_text_by_key.cache_clear()

    def _read_page(self, key: int) -> str:
        (text,) = self._row("SELECT text FROM pages WHERE key = ?", key)
        return from_column(text)

    def _read_document(self, version: int) -> tuple[Mapping[str, Any], SearchText | None]:
        query = "SELECT metadata, search_text FROM versions WHERE key = ?"
        metadata, key = self._row(query, version)
        return (
            NO_METADATA if metadata is None else from_json(metadata),
            None if key is None else self.search_text_by_key(key),
        )

    def _read_search_text_by_key(self, key: int) -> SearchText | None:
        if key == NO_SEARCH_TEXT:
            return None
        (value,) = self._row("SELECT value FROM search_texts WHERE key = ?", key)
        return SearchText.from_row(from_json(value))

    def _row(self, query: str, key: int) -> Row:
        row = self._file.db.row(query, [key])
        if row is None:
            raise self._file.db.damaged("a part of a document is missing")
        return row


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
        cache = self._file.group_cache()
        if cache is not None and group in cache:
            cached: tuple[int, GroupState] = cache[group]
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
            cache[group] = row
        return row

    def put_state(self, group: str, state: GroupState) -> None:
        """Store the state of a group."""
        key, before = self.key(group), self.state(group)
        state = state._replace(oldest=before.oldest, places=before.places)  # are not kept
        if state == before:
            return
        self._forget(group)  # until it is written
        self._file.db.run(
            "UPDATE groups SET size = ?, sequence = ?, token = ?, journaled = ?, rules = ?, "
            "built_for = ? WHERE key = ?",
            [*state[:4], state.rules, state.built_for, key],
        )
        if (cache := self._file.group_cache()) is not None:
            cache[group] = key, state

    def _forget(self, group: str) -> None:
        """Read a group again, which is being changed in this transaction."""
        if (cache := self._file.group_cache()) is not None:
            cache.pop(group, None)

    def key(self, group: str) -> int:
        """Return a group's key; a new group gets one."""
        key, _ = self.row(group)
        if key < 0:
            self._forget(group)
            key = self._file.db.run("INSERT INTO groups (name) VALUES (?)", [group])
        return key

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
