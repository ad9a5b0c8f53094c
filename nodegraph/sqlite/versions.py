"""What documents held: texts and metadata, never changed, kept while something is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..document import Document
from ..errors import StoreError
from ..node import NO_METADATA
from .connection import Connection
from .file import GraphFile
from .values import from_column, from_json, to_column, to_json

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
