"""The contents of documents: texts in pages, metadata, and declared search texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..node import NO_METADATA, Node
from ..search_text import SearchText
from .database import Database, Row
from .rows import ValueColumns, from_text, marks, portions, to_text

_PAGE = 32_768  # characters

_CACHED_PAGES = 1024

_CACHED_METADATA = 4096

NO_SEARCH_TEXT = 0
"""The key for a parent without a search text whose document has one."""


class Versions:
    """The versions of documents, with a cache of recently read versions.

    Args:
        database: The database.
        columns: Converts metadata.
        next_key: Assigns keys of a table.
    """

    def __init__(
        self, database: Database, columns: ValueColumns, next_key: Callable[[str, int], int]
    ) -> None:
        self._db = database
        self._columns = columns
        self._next_key = next_key
        self._pages: dict[tuple[int, int], str] = {}
        self._documents: dict[int, tuple[Mapping[str, Any], SearchText | None]] = {}
        self.search_text = lru_cache(_CACHED_METADATA)(self._read_search_text)

    def forget(self) -> None:
        """Clear the caches."""
        self._pages, self._documents = {}, {}
        self.search_text.cache_clear()

    def load(self, versions: Collection[int | None]) -> None:
        """Read the metadata and the first pages of some versions together."""
        missing = [key for key in versions if key is not None and key not in self._documents]
        if len(self._documents) + len(missing) > _CACHED_METADATA:
            self._documents = {}
        if len(self._pages) + len(missing) > _CACHED_PAGES:
            self._pages = {}
        for batch in portions(missing):
            query = (
                "SELECT v.key, v.metadata, v.search_text, p.text FROM versions v JOIN pages p "
                f"ON p.version = v.key AND p.number = 0 WHERE v.key IN ({marks(batch)})"
            )
            for key, metadata, search_text, page in self._db.rows(query, batch):
                self._documents[key] = (
                    NO_METADATA if metadata is None else self._columns.from_value(metadata),
                    None if search_text is None else self.search_text(search_text),
                )
                self._pages[key, 0] = from_text(page)

    def document(self, version: int) -> tuple[Mapping[str, Any], SearchText | None]:
        """Return the metadata and the search text of a document."""
        if version not in self._documents:
            self.load([version])
        return self._documents[version]

    def put(self, documents: Iterable[Node]) -> dict[str, int]:
        """Store the contents of documents; return the keys of the versions by document id.

        Raises:
            TypeError: If metadata has a value that a file cannot store.
        """
        versions: list[Row] = []
        pages: list[Row] = []
        keys: dict[str, int] = {}
        nodes = list(documents)
        last = self._next_key("versions", len(nodes))
        for key, node in enumerate(nodes, last - len(nodes) + 1):
            metadata = self._columns.to_metadata(node.own_metadata, f"document {node.id!r}")
            versions.append((key, metadata, self.put_search_text(node.search_text)))
            starts = range(0, max(len(node.text), 1), _PAGE)
            pages += [
                (key, number, to_text(node.text[at : at + _PAGE]))
                for number, at in enumerate(starts)
            ]
            keys[node.id] = key
        self._db.run_many("INSERT INTO versions VALUES (?, ?, ?)", versions)
        self._db.run_many("INSERT INTO pages VALUES (?, ?, ?)", pages)
        return keys

    def put_search_text(self, search_text: SearchText | None) -> int | None:
        """Store a search text once; return its key."""
        if search_text is None:
            return None
        value = self._columns.to_value(search_text.to_row())
        if rows := self._db.rows("SELECT key FROM search_texts WHERE value = ?", [value]):
            return int(rows[0][0])
        key = self._next_key("search_texts", 1)
        self._db.run_many("INSERT INTO search_texts VALUES (?, ?)", [(key, value)])
        return key

    def delete_unused(self, versions: Iterable[int | None]) -> None:
        """Delete versions without derivations."""
        for batch in portions({version for version in versions if version is not None}):
            used = self._db.rows(
                f"SELECT DISTINCT version FROM derivations WHERE version IN ({marks(batch)})", batch
            )
            unused = [(version,) for version in set(batch) - {version for (version,) in used}]
            self._db.run_many("DELETE FROM versions WHERE key = ?", unused)
            self._db.run_many("DELETE FROM pages WHERE version = ?", unused)

    def text(self, version: int, start: int, size: int) -> str:
        """Return a part of a version's text."""
        first, last = start // _PAGE, max(start + size - 1, start) // _PAGE
        start -= first * _PAGE
        if first == last:
            return self._page(version, first)[start : start + size]
        pages = [self._page(version, number) for number in range(first, last + 1)]
        return "".join(pages)[start : start + size]

    def _page(self, version: int, number: int) -> str:
        page = self._pages.get((version, number))
        if page is None:
            query = "SELECT text FROM pages WHERE version = ? AND number = ?"
            rows = self._db.rows(query, [version, number])
            if len(self._pages) >= _CACHED_PAGES:
                self._pages = {}
            page = self._pages[version, number] = from_text(rows[0][0]) if rows else ""
        return page

    def _read_search_text(self, key: int) -> SearchText | None:
        if key == NO_SEARCH_TEXT:
            return None
        ((value,),) = self._db.rows("SELECT value FROM search_texts WHERE key = ?", [key])
        return SearchText.from_row(self._columns.from_value(value))
