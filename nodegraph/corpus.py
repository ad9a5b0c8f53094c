"""The documents of a graph and the files that they are read from."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .concurrency import track
from .derivation import Stamp, derive_root
from .document import Document
from .errors import Failure, OnError, ReadError, UnsupportedFilesError
from .locations import LAYOUTS
from .node import ROOT
from .readers.skipped_files import describe_skipped
from .readers.source_files import WITHOUT_READER, ReadOptions, ReadReport, documents_of
from .storage.columns import decode, encode, from_text, reading_rows, to_text
from .storage.graph_store import GraphStore
from .text_forms import composed, other_forms, stored_path

if TYPE_CHECKING:
    from .readers.folder_scan import FolderScan

_SOURCES = "source"  # path -> b"folder", b"file", or _EXCLUDED for an excluded part of a folder

_EXCLUDED = b"left out"

_FILES = "file"  # file id -> record

_LEFT_OUT = "file left out"  # file id or source path -> error

_LISTED = 20  # reasons in a warning

_NO_DOCUMENTS = ("empty", WITHOUT_READER)
"""Kinds of files that are skipped in folders unless reading is strict."""

PathT = TypeVar("PathT", Path, "_File")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The changes of documents by ``NodeGraph.refresh``.

    Attributes:
        added: Ids of new documents.
        updated: Ids of changed documents.
        removed: Ids of documents whose file is missing or no longer contains them.
        unchanged: Number of unchanged documents.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.nodegraph import NodeGraph
        >>> with TemporaryDirectory() as folder:
        ...     graph = NodeGraph(folder, progress=False)
        ...     _ = Path(folder, "tea.txt").write_text("Green tea.")
        ...     changes = graph.refresh()
        >>> len(changes.added), changes.removed, changes.unchanged
        (1, [], 0)
    """

    added: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: int


class _File(NamedTuple):
    """The record of a file.

    Attributes:
        path: The absolute path.
        content: A hash of the bytes.
        documents: The stamps of the file's documents, by id.
        version: The file's size, inode and times. Empty if it changed in the last two seconds.
    """

    path: str
    content: str
    documents: Mapping[str, Stamp]
    version: list[int]


@dataclass(slots=True)
class _Reading:
    """One reading of files.

    Attributes:
        parts: The files of each path or source, by id.
        files: All files by id.
        in_folders: The ids of files that were found in folders.
        records: The records of readable files.
        documents: The documents of changed files.
        errors: The errors of unreadable files, by id.
        skipped: The encoded errors of skipped files and sources.
    """

    parts: list[dict[str, Path]] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)
    in_folders: set[str] = field(default_factory=set)
    records: dict[str, _File] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, ReadError] = field(default_factory=dict)
    skipped: dict[str, bytes] = field(default_factory=dict)


@dataclass(eq=False)
class Corpus:
    """The documents of a graph that were read from files.

    A file with unchanged bytes is not parsed again. As in Git, a file is hashed only if its size or
    times changed. The records of the files are in the store, so a reopened graph can be refreshed.

    Args:
        store: The store of the graph.
        change_lock: A lock that is held by changes of documents.
        options: Options for reading.
        progress: Whether to print a progress bar. None: only to a terminal.

    Attributes:
        report: The report of the last ``add`` or ``refresh``.
    """

    store: GraphStore
    change_lock: threading.RLock
    options: ReadOptions
    progress: bool | None
    report: ReadReport = field(default_factory=ReadReport, init=False)

    @property
    def failures(self) -> list[Failure]:
        """The files that were skipped when they were last read."""
        return [failure for _, (_, failure) in sorted(self._skipped().items())]

    def open(self, paths: Iterable[Path], *, on_error: OnError | None) -> None:
        """Refresh the paths that are sources already, and add the other paths.

        Raises:
            ReadError: If a file or folder cannot be read and is not skipped.
            ValueError: If different files have one id, or if a node already has the id.
        """
        places = dict.fromkeys(path.expanduser().absolute() for path in paths)
        sources = set(self.sources()) if places else set()
        known: list[Path] = []
        new: list[Path] = []
        folders: set[Path] = set()
        inside: list[Path] = []  # their ids depend on the folder, which is added before
        for path in places:
            if path in sources:
                known.append(path)
            elif not folders.isdisjoint(path.parents):
                inside.append(path)
            else:
                new.append(path)
                folders.add(path)
        report = ReadReport()
        if known:
            self.refresh(on_error=on_error, only=known)
            report.include(self.report)
        for added in (new, inside):
            if not added:
                continue
            self.add([], added, on_error=on_error)
            report.include(self.report)
        self.report = report

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
        old = self._records() if paths else {}
        kinds = self.store.get_values(_SOURCES) if paths else {}
        folders = {Path(p) for p, kind in kinds.items() if kind == b"folder"}
        # The ids of files in a known folder are relative to this folder.
        above = [next((f for f in reversed(path.parents) if f in folders), path) for path in paths]
        known = {i: Path(file.path) for i, file in old.items()}
        reading = self._scan(zip(above, paths, strict=True), known)
        if paths:
            self._read(reading, old, on_error)
        put: dict[str, Document] = {}
        forms: dict[str, Document] = {}
        for document in (*documents, *reading.documents.values()):
            same = put.setdefault(document.id, document)
            if same == document and document.id not in reading.documents:
                same = forms.setdefault(composed(document.id), document)
            if same != document:
                raise ValueError(
                    f"document ids must be unique, got two different documents with id "
                    f"{document.id!r}; set Document(text, id=...)"
                )
        new = [path for path, source in zip(paths, above, strict=True) if path == source]
        excluded = {p: Path(p) for p, kind in kinds.items() if kind == _EXCLUDED}
        included = list(_below(excluded, paths))
        with self.store.changing(self.change_lock):
            self._write(put, reading, old)
            self.store.delete_values(_SOURCES, included)
            of_new = {str(path): b"folder" if path.is_dir() else b"file" for path in new}
            self.store.put_values(_SOURCES, of_new)
            if paths:
                self._put_skipped(reading.skipped, paths)
        read = reading.records
        return [[d for i in part if i in read for d in read[i].documents] for part in reading.parts]

    def remove_source(self, path: Path) -> None:
        """Remove the documents of a file or folder, and stop reading the path.

        Raises:
            LookupError: If nothing was read from this path.
        """
        path = path.expanduser().absolute()
        sources = [Path(p) for p in self.store.get_values(_SOURCES)]
        files = self._records()
        places = (Path(file.path) for file in files.values())
        path = stored_path(path, [*sources, *places]) or path
        records = _below(files, [path])
        if not records and path not in sources:
            raise LookupError(
                f"{path} is not a source of the graph; the sources: {', '.join(map(str, sources))}"
            )
        self.store.change_documents([], remove=self._documents_of(records.values()))
        self.store.delete_values(_FILES, records)
        self.store.delete_values(_SOURCES, [str(p) for p in sources if p.is_relative_to(path)])
        self._put_skipped({}, [path])
        if any(p != path and path.is_relative_to(p) for p in sources):
            self.store.put_values(_SOURCES, {str(path): _EXCLUDED})

    def sources(self) -> list[Path]:
        """Return the folders and files that a refresh reads."""
        kinds = self.store.get_values(_SOURCES)
        return [Path(path) for path, kind in kinds.items() if kind != _EXCLUDED]

    def refresh(self, *, on_error: OnError | None, only: Collection[Path] | None = None) -> Refresh:
        """Read all sources again (or some), and add, update and remove documents.

        Raises:
            ReadError: If a source folder is missing and errors are not skipped, or if a file cannot
                be read and is not skipped. Nothing is changed.
            ValueError: If two files have one id. Nothing is changed.
        """
        self.report = ReadReport()
        store = self.store
        records = self._records()
        old = records if only is None else _below(records, only)
        kinds = store.get_values(_SOURCES)
        excluded = [Path(p) for p, kind in kinds.items() if kind == _EXCLUDED]
        all_sources = self.sources() if only is None else _related(self.sources(), only)
        sources = [source for source in all_sources if source.exists()]
        missing = set(all_sources).difference(sources)
        lost = [
            source
            for source in all_sources
            if source in missing
            and kinds[str(source)] == b"folder"
            and self._documents_of(_below(old, [source]).values())
        ]
        if lost and on_error != "skip":
            raise ReadError(
                f"the folder {lost[0]} is missing; restore it, or remove its documents: "
                "graph.remove(ids)"
            )
        others = {i: Path(file.path) for i, file in records.items() if i not in old}
        reading = self._scan(zip(sources, sources, strict=True), others, excluded)
        if only is not None:
            reading.files = _below(reading.files, only)
        for path in lost:
            error = ReadError(f"{path} is missing", "missing")
            reading.skipped[str(path)] = _failure_row(str(path), path, error)
        self._read(reading, old, on_error)
        kept = {*_below(old, lost), *(i for i in reading.errors if i in old)}
        with store.changing(self.change_lock):
            before = store.stamps(ROOT, reading.documents.keys())
            put = self._write(reading.documents, reading, old)
            now = {i for file in reading.records.values() for i in file.documents}
            old_files = [file for i, file in old.items() if i not in kept]
            removed = [i for i in self._documents_of(old_files) if i not in now]
            store.change_documents([], remove=removed)
            store.delete_values(_FILES, old.keys() - reading.records.keys() - kept)
            self._put_skipped(reading.skipped, only)
        added = [i for i in put if i not in before]
        return Refresh(added, [i for i in put if i in before], removed, len(now) - len(put))

    def _scan(
        self,
        parts: Iterable[tuple[Path, Path]],
        known: dict[str, Path],
        excluded: Sequence[Path] = (),
    ) -> _Reading:
        """Find the files to read.

        Args:
            parts: Pairs of a source, and the source or a path below it.
            known: Files by document id; new files are added.
            excluded: Files and folders to leave out.

        Raises:
            ReadError: If files have no reader and reading is strict.
            ValueError: If two files have the same id.
        """
        from .readers.folder_scan import scan_files

        reading = _Reading()
        scans: dict[Path, FolderScan] = {}
        for source, part in parts:
            is_new = source not in scans
            if is_new:
                scans[source] = scan_files(source, self.options)
            scan = scans[source]
            files = scan.files if part == source else scan.below(part)
            left_out = _below(files, excluded)
            files = {i: path for i, path in files.items() if i not in left_out}
            reading.parts.append(files)
            reading.files |= files
            if scan.root.is_dir():
                reading.in_folders.update(files)
            for file_id, path in files.items():
                other = known.get(file_id, path)
                if other != path and other.resolve() != path.resolve() and other.exists():
                    raise ValueError(
                        f"{path} and {other} have the same document id {file_id!r}; rename a "
                        "folder, or add Document(text, id=...)"
                    )
            known |= files
            if not is_new:
                continue
            if unsupported := scan.unsupported_error():
                if self.options.strict:
                    raise unsupported
                place = source.absolute()
                reading.skipped[str(place)] = _failure_row(scan.root.name, place, unsupported)
            self.report.passed_over += scan.passed_over
            self.report.unsupported += scan.unsupported
        return reading

    def _read(self, reading: _Reading, old: Mapping[str, _File], on_error: OnError | None) -> None:
        """Read the changed files, and use the old records of the unchanged files.

        A file is changed if its bytes changed, or if one of its documents differs from the stored
        stamp.

        Raises:
            ReadError: If a file cannot be read and is not skipped.
        """
        from .readers.reading import read_files

        files = reading.files
        documents = {d for i in files if i in old for d in old[i].documents}
        stored = self.store.stamps(ROOT, documents)
        changed: dict[str, _File] = {}
        for file_id, path in files.items():
            before = old.get(file_id)
            try:
                file = _stat(path, before, self.options)
            except ReadError as error:
                reading.errors[file_id] = error
                continue
            is_same = before is not None and before.content == file.content
            is_same = is_same and file.documents.items() <= stored.items()
            (reading.records if is_same else changed)[file_id] = file
        self.report.unchanged += len(reading.records)
        read = read_files({i: files[i] for i in changed}, self.options)
        for file_id, rows in track(read, len(changed), "reading", " files", self.progress):
            try:
                if isinstance(rows, ReadError):
                    raise rows
                new = documents_of(files[file_id], file_id, rows)
            except ReadError as error:
                reading.errors[file_id] = error
                continue
            self.report.note(files[file_id], new)
            stamps = {document.id: derive_root(document, 0).stamp for document in new}
            reading.records[file_id] = changed[file_id]._replace(documents=stamps)
            reading.documents.update((document.id, document) for document in new)
        self.report.read += len(changed.keys() & reading.records.keys())
        reading.records = {i: reading.records[i] for i in files if i in reading.records}
        in_order = (i for file in reading.records.values() for i in file.documents)
        reading.documents = {i: reading.documents[i] for i in in_order if i in reading.documents}
        self._skip(reading, on_error)

    def _skip(self, reading: _Reading, on_error: OnError | None) -> None:
        """Record the errors of skipped files, and warn about new errors.

        Raises:
            ReadError: If a file must not be skipped: the first error.
        """
        raised: list[ReadError] = []
        for file_id in (i for i in reading.files if i in reading.errors):
            path, error = reading.files[file_id], reading.errors[file_id]
            self.report.skipped[str(path)] = error
            if self._is_skipped(error, on_error, in_folder=file_id in reading.in_folders):
                reading.skipped[file_id] = _failure_row(file_id, path.absolute(), error)
            else:
                raised.append(error)
        if raised:
            raise raised[0]
        known = self.store.get_values(_LEFT_OUT, reading.skipped)
        new = [row for i, row in reading.skipped.items() if known.get(i) != row]
        _warn_of_skipped([_to_failure(row)[1] for row in new])

    def _is_skipped(self, error: ReadError, on_error: OnError | None, *, in_folder: bool) -> bool:
        """Return whether a file with an error is skipped."""
        if self.options.strict:
            return False
        if on_error == "skip":
            return True
        return in_folder and (on_error is None or error.kind in _NO_DOCUMENTS)

    def _skipped(self) -> dict[str, tuple[Path, Failure]]:
        """Return the paths and failures of the skipped files.

        For files without a reader, the path is their source.
        """
        rows = self.store.get_values(_LEFT_OUT)
        with reading_rows(self.store.place):
            return {i: _to_failure(row) for i, row in rows.items()}

    def _put_skipped(self, new: Mapping[str, bytes], read: Iterable[Path] | None) -> None:
        """Replace the records of skipped files below some paths. None: all paths."""
        old = {i: path for i, (path, _) in self._skipped().items()}
        if read is not None:
            old = _below(old, read)
        stored = self.store.get_values(_LEFT_OUT, new)
        changed = {i: value for i, value in new.items() if stored.get(i) != value}
        self.store.delete_values(_LEFT_OUT, old.keys() - new.keys())
        self.store.put_values(_LEFT_OUT, changed)

    def _write(
        self, documents: Mapping[str, Document], reading: _Reading, old: Mapping[str, _File]
    ) -> list[str]:
        """Write documents, their layouts and the records of files. Return the changed documents.

        Documents of files that differ in the dates of their files only are unchanged.

        Raises:
            ValueError: If a derived node already has the id of a document.
        """
        store = self.store
        stored = store.stamps(ROOT, reading.documents)
        read = dict(chain.from_iterable(f.documents.items() for f in reading.records.values()))
        same = {i for i in reading.documents if i in stored and stored[i][:2] == read[i][:2]}
        changed = [i for i in documents if i not in same]
        replaced = self._in_other_forms(changed, {*documents, *read}, old.values())
        store.change_documents([documents[i] for i in changed], remove=replaced)
        layouts = {i: d.layout for i, d in documents.items() if d.layout is not None}
        stamps = store.stamps(ROOT, {*layouts, *read})
        layouts = {i: stamps[i].key.encode() + b"\0" + layout for i, layout in layouts.items()}
        store.put_values(LAYOUTS, layouts)
        rows = {}
        for i, file in reading.records.items():
            if file != old.get(i):
                own = {d: [*stamps[d]] for d in file.documents if d in stamps}
                rows[i] = to_text(encode([file.path, file.content, own, file.version]))
        # Records of unchanged documents only save hashing.
        store.put_values(_FILES, rows, derived=not changed)
        return changed

    def _in_other_forms(
        self, ids: Iterable[str], kept: Set[str], files: Iterable[_File]
    ) -> list[str]:
        """Return the ids of stored documents that equal new ids in another Unicode form.

        Two files of one folder whose names differ in their form only are two documents.
        """
        others = {form for name in ids for form in other_forms(name)}
        stored = self.store.stamps(ROOT, others - kept)
        if not stored:
            return []
        of_files = {i for file in files if Path(file.path).exists() for i in file.documents}
        return [name for name in stored if name not in of_files]

    def _documents_of(self, files: Iterable[_File]) -> list[str]:
        """Return the ids of the files' documents that are in the store."""
        ids = dict.fromkeys(i for file in files for i in file.documents)
        return list(self.store.stamps(ROOT, ids))

    def _records(self) -> dict[str, _File]:
        values = self.store.get_values(_FILES)
        with reading_rows(self.store.place):
            return {i: _to_file(value) for i, value in values.items()}


def unchanged_file(store: GraphStore, document_id: str) -> tuple[Path, str]:
    """Return the file of a document, and a hash of its bytes.

    Raises:
        LookupError: If the document was not read from a file with the same id.
        ReadError: If the file is missing or changed after it was read.
    """
    value = store.get_values(_FILES, [document_id]).get(document_id)
    if value is None:
        raise LookupError(f"document {document_id!r} was not read from a file")
    with reading_rows(store.place):
        record = _to_file(value)
    path = Path(record.path)
    if _stat(path, record, None).content != record.content:
        raise ReadError(f"{path} has changed since it was read; read it again: nodekin index")
    return path, record.content


def _to_file(value: bytes) -> _File:
    path, content, documents, version = decode(from_text(value))
    return _File(path, content, {i: Stamp(*stamp) for i, stamp in documents.items()}, version)


def _failure_row(name: str, path: Path, error: ReadError) -> bytes:
    counts = error.counts if isinstance(error, UnsupportedFilesError) else None
    row = [name, str(path), str(error), error.kind, error.skippable, counts]
    return to_text(encode(row))


def _to_failure(row: bytes) -> tuple[Path, Failure]:
    """Return the path and the failure of a skipped file, from ``_failure_row``."""
    name, path, message, kind, skippable, counts = decode(from_text(row))
    if isinstance(counts, dict):
        error: ReadError = UnsupportedFilesError(message, kind, counts)
    else:
        error = ReadError(message, kind, skippable=skippable)
    return Path(path), Failure(name, ROOT, error)


def _warn_of_skipped(failures: Sequence[Failure]) -> None:
    """Log the number, kinds and remedies of skipped files, and the reasons of unexpected errors."""
    if not failures:
        return
    reasons = [str(f.error) for f in failures if not getattr(f.error, "skippable", False)]
    more = [f"and {len(reasons) - _LISTED:,} more"] if len(reasons) > _LISTED else []
    logger.warning(
        '%s; graph.failures has the reasons, and NodeGraph(..., on_error="raise") makes this an '
        "error%s",
        describe_skipped(failures),
        "".join(f"\n- {line}" for line in [*reasons[:_LISTED], *more]),
    )


def _stat(path: Path, old: _File | None, options: ReadOptions | None) -> _File:
    """Return a new record of a file. The file is hashed only if its size or times changed.

    A file above the maximum size of the options is rejected without hashing. Without options, the
    size is unlimited.

    The version is empty if the file changed within the last two seconds: some file systems have no
    finer times, so a second change would be invisible.

    Raises:
        ReadError: If the file cannot be read.
    """
    try:
        stat = os.stat(path)
        if options is not None:
            options.check_size(path, stat.st_size)
        version = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        if time.time_ns() - max(version[2:]) < 2_000_000_000:
            version = []
        is_unchanged = old is not None and version and version == old.version
        content = old.content if old is not None and is_unchanged else _hash(path)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}") from error
    return _File(str(path), content, {} if old is None else old.documents, version)


def _hash(path: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            state.update(block)
    return state.hexdigest()


def _below(items: Mapping[str, PathT], folders: Iterable[Path]) -> dict[str, PathT]:
    """Return the items whose paths are inside some folders. An item is a path or a ``_File``."""
    outer = set(folders)
    if not outer:
        return {}
    paths = {i: Path(x.path) if isinstance(x, _File) else x.absolute() for i, x in items.items()}
    return {i: item for i, item in items.items() if _is_below(paths[i], outer)}


def _is_below(path: Path, folders: Set[Path]) -> bool:
    """Return whether a path is one of some folders, or inside one of them."""
    return path in folders or not folders.isdisjoint(path.parents)


def _related(sources: Iterable[Path], paths: Collection[Path]) -> list[Path]:
    """Return the sources that can contain files of some paths."""
    given = set(paths)
    above = {folder for path in paths for folder in path.parents}
    return [source for source in sources if source in above or _is_below(source, given)]
