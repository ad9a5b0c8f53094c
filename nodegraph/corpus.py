"""The documents of a graph and the files that they are read from."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .builder import Failure, OnError
from .codec import decode, encode
from .concurrency import track
from .derivation import Stamp, derive_root
from .document import Document
from .document_files import rename
from .errors import ReadError, UnsupportedFilesError
from .locations import LAYOUTS
from .locking import Lock
from .node import ROOT
from .readers.source_files import ReadOptions, ReadReport
from .storage.graph_store import GraphStore

if TYPE_CHECKING:
    from .readers.folder_scan import FolderScan  # imported on first use at runtime


_SOURCES = "source"  # path -> b"folder", b"file", or _EXCLUDED for an excluded part of a folder

_EXCLUDED = b"left out"

_FILES = "file"  # file id -> record

_LEFT_OUT = "file left out"  # file id or source path -> error

_PARSED = "parsed file"  # content hash and options -> parsed records, until they are in the graph

_BATCH_SIZE = 8  # parsed files per write

_LISTED = 20  # skipped files in a warning

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The changes of a refresh.

    Attributes:
        added: Ids of new documents.
        updated: Ids of changed documents.
        removed: Ids of documents whose file is missing or no longer contains them.
        unchanged: Number of unchanged documents.
        renamed: Old and new ids of documents with another name or folder and an equal text. Their
            derived nodes were moved.
    """

    added: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: int
    renamed: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _File:
    """The record of a file.

    Attributes:
        path: The absolute path.
        content: A hash of the bytes.
        documents: The stamps of the file's documents, by id.
        version: The file's size, inode and times, see ``_version``. Empty if it changed in the last
            two seconds.
    """

    path: str
    content: str
    documents: Mapping[str, Stamp]
    version: Sequence[int] = ()

    @classmethod
    def of(cls, path: Path, old: _File | None) -> _File:
        """Stat a file. Hash it only if its size or times changed.

        Raises:
            ReadError: If the file cannot be read.
        """
        version = _version(str(path))
        if old is None:
            return cls(str(path), _hash(path), {}, version)
        content = old.content if version and version == old.version else _hash(path)
        return cls(str(path), content, old.documents, version)

    def to_bytes(self) -> bytes:
        documents = {i: list(stamp) for i, stamp in self.documents.items()}
        row = [self.path, self.content, documents, list(self.version)]
        return encode(row).encode("utf-8", "surrogatepass")

    @classmethod
    def all_from_bytes(cls, values: Mapping[str, bytes]) -> dict[str, _File]:
        """Decode the records of many files, by file id."""
        rows = decode((b"[" + b",".join(values.values()) + b"]").decode("utf-8", "surrogatepass"))
        return {
            i: cls(path, content, {d: Stamp(*stamp) for d, stamp in documents.items()}, version)
            for i, (path, content, documents, version) in zip(values, rows, strict=True)
        }


@dataclass(slots=True)
class _Reading:
    """The result of reading files: records, documents of the changed files, and errors."""

    files: dict[str, _File] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, ReadError] = field(default_factory=dict)


def _left_out_to_bytes(name: str, path: Path, error: ReadError) -> bytes:
    is_kind = isinstance(error, UnsupportedFilesError)
    row = [name, str(path), str(error), error.kind, error.skippable, is_kind]
    return encode(row).encode("utf-8", "surrogatepass")


def _left_out_from_bytes(value: bytes) -> tuple[Path, Failure]:
    """Return the path and the failure of a skipped file.

    For files without a reader, the path is their source.
    """
    row = decode(value.decode("utf-8", "surrogatepass"))
    name, path, message, kind, skippable, is_kind = row
    error = (UnsupportedFilesError if is_kind else ReadError)(message, kind, skippable=skippable)
    return Path(path), Failure(name, ROOT, error)


def _warn(errors: Sequence[ReadError]) -> None:
    """Log a warning that lists skipped files."""
    if errors:
        files = "1 file was" if len(errors) == 1 else f"{len(errors):,} files were"
        more = [f"and {len(errors) - _LISTED:,} more"] if len(errors) > _LISTED else []
        logger.warning(
            '%s skipped; graph.failures has the reasons, and NodeGraph(..., on_error="raise") '
            "makes this an error:\n- %s",
            files,
            "\n- ".join([*map(str, errors[:_LISTED]), *more]),
        )


class Corpus:
    """The documents of a graph that were read from files.

    A file with unchanged bytes is not parsed again. As in Git, a file is hashed only if its size or
    times changed. The records of the files are in the store, so a reopened graph can be refreshed.
    """

    def __init__(
        self,
        store: GraphStore,
        change_lock: Lock,
        options: ReadOptions,
        progress: bool | None = None,
    ) -> None:
        self._store = store
        self._change_lock = change_lock
        self._options = options
        self._progress = progress
        self.report = ReadReport()

    @property
    def failures(self) -> list[Failure]:
        """The files that were skipped when they were last read."""
        values = self._store.get_values(_LEFT_OUT)
        return [_left_out_from_bytes(values[name])[1] for name in sorted(values)]

    def add(
        self, documents: list[Document], paths: list[Path], *, on_error: OnError | None
    ) -> list[list[str]]:
        """Add documents and the documents of files and folders.

        Returns:
            The document ids of each path.

        Raises:
            ReadError: If a file cannot be read and is not skipped.
            ValueError: If different documents or files have one id, or if a node already has the
                id.
        """
        paths = [path.expanduser().absolute() for path in paths]
        self.report = ReadReport()
        records = self._records() if paths else {}
        sources = self._store.get_values(_SOURCES) if paths else {}
        folders = [Path(p) for p, kind in sources.items() if kind == b"folder"]
        existing = {i: Path(file.path) for i, file in records.items()}
        kinds: dict[str, bytes] = {}
        readings = []
        left_out: dict[str, bytes] = {}
        for path in paths:
            folder = next((f for f in folders if f != path and _below(path, f)), None)
            if folder is None:
                kinds[str(path)] = b"folder" if path.is_dir() else b"file"
                scan = self._scan(path, existing, left_out)
            else:  # file ids are relative to the folder
                scan = self._scan(folder, existing, left_out)
                scan = replace(scan, files=_files_below(scan.files, path))
            existing.update(scan.files)
            reading = self._read(scan.files, records)
            readings.append(reading)
            left_out |= self._left_out(reading.errors, scan.files, [scan], on_error)
        put: dict[str, Document] = {}
        from_files = [d for reading in readings for d in reading.documents.values()]
        for document in (*documents, *from_files):
            if put.setdefault(document.id, document) != document:
                raise ValueError(
                    f"two different documents in one call have the id {document.id!r}; give each "
                    "its own: Document(text, id=...)"
                )
        excluded = (p for p, kind in sources.items() if kind == _EXCLUDED)
        included = [p for p in excluded if any(_below(Path(p), path) for path in paths)]

        def apply() -> None:
            self._check_free(put)
            same = self._same(from_files)
            self._store.change_documents([d for i, d in put.items() if i not in same])
            self._put_layouts(put)
            for reading in readings:
                self._put_records(reading.files, records)
            self._store.delete_values(_SOURCES, included)
            self._store.put_values(_SOURCES, kinds)
            self._put_left_out(left_out, paths)
            self._delete_parsed()

        with self._change_lock.held(), self._store.transaction():
            apply()
        return [[i for f in reading.files.values() for i in f.documents] for reading in readings]

    def remove(self, ids: list[str]) -> None:
        """Remove documents. The next refresh adds them again if their files exist."""
        self._store.change_documents([], remove=ids)

    def remove_source(self, path: Path) -> None:
        """Remove the documents of a file or folder, and stop reading the path.

        Raises:
            LookupError: If nothing was read from this path.
        """
        path = path.expanduser().absolute()
        sources = [Path(p) for p in self._store.get_values(_SOURCES)]
        records = {i: f for i, f in self._records().items() if _below(Path(f.path), path)}
        if not records and path not in sources:
            raise LookupError(
                f"no file in {path} was read; the graph reads {', '.join(map(str, sources))}"
            )
        self._store.change_documents([], remove=self._documents_of(records.values()))
        self._store.delete_values(_FILES, records)
        self._store.delete_values(_SOURCES, [str(p) for p in sources if _below(p, path)])
        self._put_left_out({}, [path])
        if any(p != path and _below(path, p) for p in sources):
            self._store.put_values(_SOURCES, {str(path): _EXCLUDED})

    def follow(self, source: Path, *, on_error: OnError | None) -> Refresh | None:
        """Refresh the documents of one source. None: the source was never read."""
        path = source.expanduser().absolute()
        if path not in self.sources():
            return None
        return self.refresh(on_error=on_error, only=path)

    def sources(self) -> list[Path]:
        """Return the folders and files that a refresh reads."""
        kinds = self._store.get_values(_SOURCES)
        return [Path(path) for path, kind in kinds.items() if kind != _EXCLUDED]

    def refresh(self, *, on_error: OnError | None, only: Path | None = None) -> Refresh:
        """Read all sources again (or one), and add, update and remove documents.

        Raises:
            ReadError: If a source folder is missing and errors are not skipped, or if a file cannot
                be read and is not skipped. Nothing is changed.
            ValueError: If two files have one id. Nothing is changed.
        """
        self.report = ReadReport()
        records = self._records()
        left_out: dict[str, bytes] = {}
        scans, files, lost = self._scan_sources(records, left_out)
        if lost and on_error != "skip":
            raise ReadError(
                f"the folder {lost[0]} is gone; bring it back, or remove its documents: "
                "graph.remove(ids)"
            )
        if only is not None:
            records = {i: f for i, f in records.items() if _below(Path(f.path), only)}
            files = _files_below(files, only)
        for path in lost:
            left_out[str(path)] = _left_out_to_bytes(str(path), path, ReadError(f"{path} is gone"))
        reading = self._read(files, records)
        left_out |= self._left_out(reading.errors, files, scans, on_error)
        retained = {
            i
            for i, file in records.items()
            if i in reading.errors or any(_below(Path(file.path), folder) for folder in lost)
        }

        def apply() -> Refresh:
            done = self._apply_refresh(reading, records, retained)
            self._put_left_out(left_out, [only] if only else None)
            return done

        with self._change_lock.held(), self._store.transaction():
            return apply()

    def _scan_sources(
        self, records: Mapping[str, _File], left_out: dict[str, bytes]
    ) -> tuple[list[FolderScan], dict[str, Path], list[Path]]:
        """Return the scans of all sources, their files by id, and the missing folders."""
        sources = {Path(p): kind for p, kind in self._store.get_values(_SOURCES).items()}
        excluded = [source for source, kind in sources.items() if kind == _EXCLUDED]
        scans: list[FolderScan] = []
        files: dict[str, Path] = {}
        lost: list[Path] = []
        for source, kind in sources.items():
            if kind == _EXCLUDED:
                continue
            if source.exists():
                scans.append(self._scan(source, files, left_out))
                for file_id, path in scans[-1].files.items():
                    if not any(_below(path.absolute(), part) for part in excluded):
                        files[file_id] = path
            elif kind == b"folder" and self._documents_of(
                file for file in records.values() if _below(Path(file.path), source)
            ):
                lost.append(source)
        return scans, files, lost

    def _apply_refresh(
        self, reading: _Reading, records: Mapping[str, _File], retained: set[str]
    ) -> Refresh:
        """Write the documents. Remove documents of missing files, unless retained."""
        self._check_free(reading.documents)
        now = {i for file in reading.files.values() for i in file.documents}
        same = self._same(reading.documents.values())
        put = [d for i, d in reading.documents.items() if i not in same]
        stored = self._store.stamps(ROOT, {d.id for d in put})
        read_again = [file for i, file in records.items() if i not in retained]
        removed = [i for i in self._documents_of(read_again) if i not in now]
        added = [d.id for d in put if d.id not in stored]
        renamed = self._renamed(removed, added, put)
        self._store.change_documents(put)
        self._put_layouts(reading.documents)
        for old, new in renamed:
            rename(self._store, old, new)
        self._store.change_documents([], remove=removed)
        self._store.delete_values(_FILES, set(records) - set(reading.files) - retained)
        self._delete_parsed()
        self._put_records(reading.files, records)
        names = {i for pair in renamed for i in pair}
        return Refresh(
            [i for i in added if i not in names],
            [d.id for d in put if d.id in stored],
            [i for i in removed if i not in names],
            len(now) - len(put),
            renamed,
        )

    def _renamed(
        self, removed: Iterable[str], added: Iterable[str], put: Iterable[Document]
    ) -> list[tuple[str, str]]:
        """Pair removed documents with new documents that have an equal text."""
        texts: dict[str, list[str]] = {}
        for i, stamp in self._store.stamps(ROOT, list(removed)).items():
            texts.setdefault(stamp.key, []).append(i)
        new, pairs = set(added), []
        for document in put:
            same = texts.get(derive_root(document, 0).key)
            if document.id in new and same:
                pairs.append((same.pop(0), document.id))
        return pairs

    def _scan(
        self, source: Path, existing: Mapping[str, Path], left_out: dict[str, bytes]
    ) -> FolderScan:
        """Find the files of a source. Files without a reader are added to ``left_out``.

        Raises:
            ReadError: If files have no reader and reading is strict.
            ValueError: If a file has the id of another existing file.
        """
        from .readers.folder_scan import scan_files

        scan = scan_files(source, self._options)
        for file_id, path in scan.files.items():
            other = existing.get(file_id)
            if other is not None and other.resolve() != path.resolve() and other.exists():
                raise ValueError(
                    f"{path} would get the document id {file_id!r}, which {other} has; add it as "
                    "Document(text, id=...), or rename its folder"
                )
        if unsupported := scan.unsupported_error():
            if self._options.strict:
                raise unsupported
            path = source.absolute()
            left_out[str(path)] = _left_out_to_bytes(scan.root.name, path, unsupported)
        self.report.passed_over += scan.passed_over
        self.report.unsupported += scan.unsupported
        return scan

    def _read(self, files: Mapping[str, Path], records: Mapping[str, _File]) -> _Reading:
        """Read the changed files, and use the records of the unchanged files."""
        reading = _Reading()
        changed = self._changed(files, records, reading)
        unchanged = len(reading.files)
        for file_id, documents in self._parse(files, changed):
            if isinstance(documents, ReadError):
                reading.errors[file_id] = documents
                continue
            self.report.note(files[file_id], documents)
            stamps = {document.id: derive_root(document, 0).stamp for document in documents}
            reading.files[file_id] = replace(changed[file_id], documents=stamps)
            reading.documents.update((document.id, document) for document in documents)
        self.report.unchanged += unchanged
        self.report.read += len(reading.files) - unchanged
        reading.files = {i: reading.files[i] for i in files if i in reading.files}
        in_order = (i for file in reading.files.values() for i in file.documents)
        reading.documents = {i: reading.documents[i] for i in in_order if i in reading.documents}
        return reading

    def _changed(
        self, files: Mapping[str, Path], records: Mapping[str, _File], reading: _Reading
    ) -> dict[str, _File]:
        """Return new records of the files to read, and add the other records to ``reading``.

        A file is read if its bytes changed, or if one of its documents differs from the stored
        stamp.
        """
        existing = {i: records[i] for i in files if i in records}
        ids = {i for file in existing.values() for i in file.documents}
        stored = self._store.stamps(ROOT, None if len(existing) == len(records) else ids)
        changed: dict[str, _File] = {}
        for file_id, path in files.items():
            old = existing.get(file_id)
            try:
                file = _File.of(path, old)
            except ReadError as error:
                reading.errors[file_id] = error
                continue
            if (
                old is None
                or old.content != file.content
                or not old.documents.items() <= stored.items()
            ):
                changed[file_id] = file
            else:
                reading.files[file_id] = old if file == old else file
        return changed

    def _parse(
        self, files: Mapping[str, Path], changed: Mapping[str, _File]
    ) -> Iterator[tuple[str, list[Document] | ReadError]]:
        """Yield the id of each changed file with its documents or its error.

        Files that other processes parsed are stored, so that an interrupted run continues.
        """
        from .readers.reading import read_files
        from .readers.source_files import documents_of

        keys = {i: f"{file.content} {self._options.signature}" for i, file in changed.items()}
        values = self._store.get_values(_PARSED, list(keys.values())) if self._keeps_parsed else {}
        stored = {i: values[key] for i, key in keys.items() if key in values}
        waiting = {i: files[i] for i in changed if i not in stored}
        new: dict[str, bytes] = {}

        def read() -> Iterator[tuple[str, Any, bool]]:
            yield from ((i, decode(value.decode()), False) for i, value in stored.items())
            yield from read_files(waiting, self._options)

        every = track(
            *(read(), len(changed), "reading", " files", self._progress),
            name=lambda item: files[item[0]].name,
        )
        try:
            for file_id, records, is_parsed in every:
                if isinstance(records, ReadError):
                    yield file_id, records
                    continue
                if is_parsed and self._keeps_parsed:
                    new[keys[file_id]] = encode(records).encode()
                    if len(new) >= _BATCH_SIZE:
                        self._store.put_values(_PARSED, new)
                        new = {}
                try:
                    documents = documents_of(files[file_id], file_id, records)
                except ReadError as error:
                    yield file_id, error
                else:
                    yield file_id, documents
        except BaseException:
            self._store.put_values(_PARSED, new)
            raise

    @property
    def _keeps_parsed(self) -> bool:
        return self._store.index_folder is not None

    def _delete_parsed(self) -> None:
        if self._keeps_parsed and self._store.get_values(_PARSED):
            self._store.delete_values(_PARSED)

    def _left_out(
        self,
        errors: Mapping[str, ReadError],
        files: Mapping[str, Path],
        scans: Sequence[FolderScan],
        on_error: OnError | None,
    ) -> dict[str, bytes]:
        """Return the records of skipped unreadable files, and warn about new errors.

        Raises:
            ReadError: If a file must not be skipped. The message contains the number of files.
        """
        left_out: dict[str, bytes] = {}
        raised: list[ReadError] = []
        skipped: dict[str, ReadError] = {}
        in_folders = {i for scan in scans if scan.is_folder for i in scan.files}
        for file_id, error in ((i, errors[i]) for i in files if i in errors):
            self.report.skipped[str(files[file_id])] = error
            in_folder = file_id in in_folders
            is_skipped = in_folder and (error.skippable or on_error is None)
            if self._options.strict or not (on_error == "skip" or is_skipped):
                raised.append(error)
                continue
            left_out[file_id] = _left_out_to_bytes(file_id, files[file_id].absolute(), error)
            if on_error is None and not error.skippable:
                skipped[file_id] = error
        if len(raised) > 1:
            raise ReadError(
                f"{raised[0]}; nor can {len(raised) - 1:,} other files be read ({self.report}); "
                'on_error="skip" goes on without them, and lists them in graph.failures',
                raised[0].kind,
            ) from raised[0]
        if raised:
            raise raised[0]
        known = self._store.get_values(_LEFT_OUT, list(skipped)) if skipped else {}
        _warn([error for i, error in skipped.items() if known.get(i) != left_out[i]])
        return left_out

    def _put_left_out(self, new: Mapping[str, bytes], read: Iterable[Path] | None) -> None:
        """Replace the records of skipped files below some paths. None: all paths."""
        old = self._store.get_values(_LEFT_OUT)
        if read is not None:
            paths = {name: _left_out_from_bytes(value)[0] for name, value in old.items()}
            old = {i: old[i] for i, p in paths.items() if any(_below(p, each) for each in read)}
        if old != new:
            self._store.delete_values(_LEFT_OUT, old)
            self._store.put_values(_LEFT_OUT, new)

    def _documents_of(self, files: Iterable[_File]) -> list[str]:
        """Return the ids of the files' documents that are in the store."""
        ids = list(dict.fromkeys(i for file in files for i in file.documents))
        return list(self._store.stamps(ROOT, ids))

    def _same(self, documents: Iterable[Document]) -> set[str]:
        """Return the ids of documents that are stored unchanged, ignoring file dates."""
        roots = {document.id: derive_root(document, 0).stamp for document in documents}
        stored = self._store.stamps(ROOT, roots.keys())
        return {i for i, old in stored.items() if old[:2] == roots[i][:2]}

    def _put_records(self, files: Mapping[str, _File], records: Mapping[str, _File]) -> None:
        """Store the records of new and changed files, with the current document stamps."""
        new = {i: file for i, file in files.items() if file is not records.get(i)}
        stored = self._store.stamps(ROOT, {i for f in new.values() for i in f.documents})
        values = {}
        for i, file in new.items():
            documents = {d: stored[d] for d in file.documents if d in stored}
            values[i] = replace(file, documents=documents).to_bytes()
        self._store.put_values(_FILES, values)

    def _put_layouts(self, documents: Mapping[str, Document]) -> None:
        """Store the layouts of documents: the positions of their parts in the files."""
        layouts = {i: d.layout for i, d in documents.items() if d.layout is not None}
        stamps = self._store.stamps(ROOT, layouts.keys())
        values = {i: stamps[i].key.encode() + b"\0" + layout for i, layout in layouts.items()}
        self._store.put_values(LAYOUTS, values)

    def _records(self) -> dict[str, _File]:
        return _File.all_from_bytes(self._store.get_values(_FILES))

    def _check_free(self, ids: Iterable[str]) -> None:
        requested = list(ids)
        # Existing documents are not read: a damaged document can be replaced.
        documents = self._store.stamps(ROOT, requested)
        for node in self._store.get(i for i in requested if i not in documents):
            if node is not None:
                raise ValueError(
                    f"the id {node.id!r} is taken by a node of group {node.group!r}; give the "
                    "document another one"
                )


def unchanged_file(store: GraphStore, document_id: str) -> tuple[Path, str]:
    """Return the file of a document, and a hash of its bytes.

    Raises:
        LookupError: If the document was not read from a file with the same id.
        ReadError: If the file is missing or changed after it was read.
    """
    values = store.get_values(_FILES, [document_id])
    if not values:
        raise LookupError(f"the document {document_id!r} is not a file that the graph has read")
    (record,) = _File.all_from_bytes(values).values()
    path = Path(record.path)
    if _File.of(path, record).content != record.content:
        raise ReadError(f"{path} has changed since it was read; read it again: nodekin index")
    return path, record.content


def _version(path: str) -> Sequence[int]:
    """Return a file's size, inode, and modification and change times in nanoseconds.

    Empty if the file changed within the last two seconds: some file systems have no finer times, so
    a second change would be invisible.
    """
    try:
        stat = os.stat(path)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}") from error
    last = max(stat.st_mtime_ns, stat.st_ctime_ns)
    if time.time_ns() - last < 2_000_000_000:
        return []
    return [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            state: Any = hashlib.blake2b(digest_size=16)
            for block in iter(lambda: file.read(1 << 20), b""):
                state.update(block)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}") from error
    return str(state.hexdigest())


def _below(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _files_below(files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    return {i: path for i, path in files.items() if _below(path.absolute(), folder)}
