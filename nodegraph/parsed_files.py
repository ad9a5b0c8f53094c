"""Read files into documents, and go on after an interruption where it came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import readers  # what parses is imported when a file is read
from .codec import decode, encode
from .concurrency import track
from .document import Document
from .errors import ReadError
from .readers.read_options import ReadOptions
from .store import NodeStore

_KIND = "parsed file"  # hash of a file's content -> what it holds, until it is in the graph

_AT_ONCE = 8  # that are stored together


class ParsedFiles:
    """Read files; keep in the store what was parsed until all of it is in the graph.

    Args:
        store: The store.
        options: How files are read.
        progress: Whether a bar is drawn.
    """

    def __init__(self, store: NodeStore, options: ReadOptions, progress: bool | None) -> None:
        self._store = store
        self._options = options
        self._progress = progress

    def documents(
        self, files: Mapping[str, Path], contents: Mapping[str, str]
    ) -> Iterator[tuple[str, list[Document] | ReadError]]:
        """Yield the id of each file with its documents, or why it can't be read.

        Args:
            files: The files, by id.
            contents: Hashes of what they hold.
        """
        keys = {i: f"{contents[i]} {self._options.signature}" for i in files}
        stored = self._stored(list(keys.values()))
        known = {i: decode(stored[key].decode()) for i, key in keys.items() if key in stored}
        waiting = {i: path for i, path in files.items() if i not in known}
        new: dict[str, bytes] = {}

        def read() -> Iterator[tuple[str, Any, bool]]:
            yield from ((i, records, False) for i, records in known.items())
            yield from readers.read_files(waiting, self._options)

        every = track(
            *(read(), len(files), "reading", " files", self._progress),
            name=lambda item: files[item[0]].name,
        )
        try:
            for file_id, records, is_parsed in every:
                if isinstance(records, ReadError):
                    yield file_id, records
                    continue
                if is_parsed and self._lasts:
                    new[keys[file_id]] = encode(records).encode()
                    if len(new) >= _AT_ONCE:
                        self._store.put_values(_KIND, new)
                        new = {}
                try:
                    documents = readers.documents_of(files[file_id], file_id, records)
                except ReadError as error:
                    yield file_id, error
                else:
                    yield file_id, documents
        except BaseException:
            self._store.put_values(_KIND, new)
            raise

    @property
    def _lasts(self) -> bool:
        return self._store.index_folder is not None

    def _stored(self, keys: list[str]) -> dict[str, bytes]:
        return self._store.get_values(_KIND, keys) if keys and self._lasts else {}

    def forget(self) -> None:
        """Delete what was stored: it is in the graph now."""
        if self._lasts and self._store.get_values(_KIND):
            self._store.delete_values(_KIND)
