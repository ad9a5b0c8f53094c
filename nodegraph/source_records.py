"""Store records of the source folders, the files that were read and the files that were skipped."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Mapping, Set
from pathlib import Path
from typing import NamedTuple, TypeVar

from .derivation import Stamp
from .errors import Failure, ReadError, UnsupportedFilesError
from .node import ROOT
from .readers.source_files import ReadOptions
from .storage.columns import decode, encode, from_text, reading_rows, to_text
from .storage.graph_store import GraphStore
from .text_forms import stored_path

# Keys are paths. Values are _FOLDER, _FILE, or _EXCLUDED for an excluded part of a folder.
_SOURCES = "source"

_FOLDER = b"folder"

_FILE = b"file"

_EXCLUDED = b"left out"

_FILES = "file"  # Keys are file ids, values are file records.

_LEFT_OUT = "file left out"  # Keys are file ids or source paths, values are errors.

_RECENT = 2_000_000_000  # in nanoseconds; some file systems have no finer timestamps


class FileRecord(NamedTuple):
    """A record of a file that was read.

    Attributes:
        path: The absolute path of the file.
        content: A hash of the bytes of the file.
        documents: The content hashes of the documents in the file, keyed by document id.
        version: The size, inode and timestamps of the file. It is empty if the file was changed
            less than two seconds before it was read.
    """

    path: str
    content: str
    documents: Mapping[str, Stamp]
    version: list[int]


PathT = TypeVar("PathT", Path, FileRecord)


class SourceRecords:
    """Stores the sources of a graph and the records of their files.

    Args:
        store: The store of the graph.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    # Sources

    def sources(self) -> list[Path]:
        """Return the folders and files that are read by a refresh."""
        kinds = self._store.values.get(_SOURCES)
        return [Path(path) for path, kind in kinds.items() if kind != _EXCLUDED]

    def folders(self) -> list[Path]:
        """Return the folders that are read by a refresh."""
        return self._sources_of(_FOLDER)

    def excluded(self) -> list[Path]:
        """Return the files and subfolders that are excluded from reading."""
        return self._sources_of(_EXCLUDED)

    def _sources_of(self, kind: bytes) -> list[Path]:
        kinds = self._store.values.get(_SOURCES)
        return [Path(path) for path, own in kinds.items() if own == kind]

    def include(self, paths: Iterable[Path], new: Iterable[Path]) -> None:
        """Include excluded paths again, and add new sources."""
        included = [path for path in self.excluded() if is_below(path, set(paths))]
        self._store.values.delete(_SOURCES, [str(path) for path in included])
        kinds = {str(path): _FOLDER if path.is_dir() else _FILE for path in new}
        self._store.values.put(_SOURCES, kinds)

    def exclude(self, path: Path) -> list[str]:
        """Remove the records of a file or folder, and return the ids of the documents read from it.

        Raises:
            LookupError: If no documents were read from this path.
        """
        kinds = self._store.values.get(_SOURCES)
        sources = [Path(source) for source in kinds]
        files = self.files()
        path = path.expanduser().absolute()
        path = stored_path(path, [*sources, *(Path(file.path) for file in files.values())]) or path
        removed = below(files, [path])
        if not removed and path not in sources:
            raise LookupError(
                f"{path} is not a source of the graph; the sources: {', '.join(kinds)}"
            )
        inside = [source for source in sources if source.is_relative_to(path)]
        self._store.values.delete(_FILES, removed)
        self._store.values.delete(_SOURCES, [str(source) for source in inside])
        self.put_skipped({}, [path])
        if any(source != path and path.is_relative_to(source) for source in sources):
            self._store.values.put(_SOURCES, {str(path): _EXCLUDED})
        return self.documents_of(removed.values())

    # Files

    def files(self) -> dict[str, FileRecord]:
        """Return the records of all files, keyed by file id."""
        rows = self._store.values.get(_FILES)
        with reading_rows(self._store.place):
            return {i: _to_record(row) for i, row in rows.items()}

    def put_files(self, files: Mapping[str, FileRecord], *, derived: bool) -> None:
        """Write the records of files to the store.

        Args:
            files: The records, keyed by file id.
            derived: Whether the change is only a cache, which a read-only store keeps in memory.
        """
        rows: dict[str, bytes] = {}
        for i, file in files.items():
            stamps = {document: list(stamp) for document, stamp in file.documents.items()}
            rows[i] = to_text(encode([file.path, file.content, stamps, file.version]))
        self._store.values.put(_FILES, rows, derived=derived)

    def delete_files(self, ids: Collection[str]) -> None:
        """Delete the records of files."""
        self._store.values.delete(_FILES, ids)

    def documents_of(self, files: Iterable[FileRecord]) -> list[str]:
        """Return the ids of all documents from some files that are still in the store."""
        ids: dict[str, None] = {}
        for file in files:
            ids |= dict.fromkeys(file.documents)
        return list(self._store.stamps(ROOT, ids))

    # Skipped files

    def skipped(self) -> dict[str, tuple[Path, Failure]]:
        """Return the paths of skipped files and the reasons, keyed by file id.

        Files of unsupported types have one entry per source, with the path of the source.
        """
        rows = self._store.values.get(_LEFT_OUT)
        with reading_rows(self._store.place):
            return {i: to_failure(row) for i, row in rows.items()}

    def new_skipped(self, rows: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the rows of skipped files that are new or differ from the stored rows."""
        stored = self._store.values.get(_LEFT_OUT, rows)
        return {i: row for i, row in rows.items() if stored.get(i) != row}

    def put_skipped(self, rows: Mapping[str, bytes], read: Iterable[Path] | None) -> None:
        """Replace the records of skipped files.

        Args:
            rows: The new records, keyed by file id.
            read: The paths whose old records are replaced. If None, all old records are replaced.
        """
        old = {i: path for i, (path, _) in self.skipped().items()}
        if read is not None:
            old = below(old, read)
        changed = self.new_skipped(rows)
        self._store.values.delete(_LEFT_OUT, old.keys() - rows.keys())
        self._store.values.put(_LEFT_OUT, changed)


def unchanged_file(store: GraphStore, document_id: str) -> tuple[Path, str]:
    """Check that a document's file is unchanged, and return its path and a hash of its bytes.

    Raises:
        LookupError: If the document was not read from a file with the same id.
        ReadError: If the file is missing or has changed since it was read.
    """
    value = store.values.get(_FILES, [document_id]).get(document_id)
    if value is None:
        raise LookupError(f"document {document_id!r} was not read from a file")
    with reading_rows(store.place):
        record = _to_record(value)
    path = Path(record.path)
    if current_record(path, record, None).content != record.content:
        raise ReadError(f"{path} has changed since it was read; read it again: nodekin index")
    return path, record.content


def _to_record(row: bytes) -> FileRecord:
    path, content, documents, version = decode(from_text(row))
    return FileRecord(path, content, {i: Stamp(*stamp) for i, stamp in documents.items()}, version)


def failure_row(name: str, path: Path, error: ReadError) -> bytes:
    """Encode a skipped file and the reason as a database row."""
    counts = getattr(error, "counts", None)  # set only by UnsupportedFilesError
    row = [name, str(path), str(error), error.kind, error.skippable, counts]
    return to_text(encode(row))


def to_failure(row: bytes) -> tuple[Path, Failure]:
    """Decode a row that ``failure_row`` returned, and return the path and the failure."""
    name, path, message, kind, skippable, counts = decode(from_text(row))
    if isinstance(counts, dict):
        error: ReadError = UnsupportedFilesError(message, kind, counts)
    else:
        error = ReadError(message, kind, skippable=skippable)
    return Path(path), Failure(name, ROOT, error)


def current_record(path: Path, old: FileRecord | None, options: ReadOptions | None) -> FileRecord:
    """Create a record of the current state of a file.

    The file is hashed only if its size or timestamps have changed. If options are given, a file
    that exceeds their maximum size is rejected without hashing.

    If the file was changed less than two seconds ago, the version in the record is left empty,
    because some file systems have no finer timestamps and would hide a second change.

    Raises:
        ReadError: If the file cannot be read.
    """
    try:
        stat = os.stat(path)
        if options is not None:
            options.check_size(path, stat.st_size)
        version = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        if time.time_ns() - max(version[2:]) < _RECENT:
            version = []
        if old is not None and version and version == old.version:
            content = old.content
        else:
            content = _hash(path)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}") from error
    return FileRecord(str(path), content, {} if old is None else old.documents, version)


def _hash(path: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            state.update(block)
    return state.hexdigest()


def below(items: Mapping[str, PathT], folders: Iterable[Path]) -> dict[str, PathT]:
    """Return the items whose paths are inside the given folders.

    Items are paths or file records.
    """
    outer = set(folders)
    if not outer:
        return {}
    found: dict[str, PathT] = {}
    for i, item in items.items():
        path = Path(item.path) if isinstance(item, FileRecord) else item.absolute()
        if is_below(path, outer):
            found[i] = item
    return found


def is_below(path: Path, folders: Set[Path]) -> bool:
    """Return whether a path is one of the given folders or is inside one of them."""
    return path in folders or not folders.isdisjoint(path.parents)


def related(sources: Iterable[Path], paths: Collection[Path]) -> list[Path]:
    """Return the sources that can contain files in the given paths."""
    given = set(paths)
    above: set[Path] = set()
    for path in paths:
        above.update(path.parents)
    return [source for source in sources if source in above or is_below(source, given)]
