"""Keep the documents of a graph in sync with files and folders."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .concurrency import track
from .derivation import Stamp, document_stamp
from .document import Document
from .errors import Failure, OnError, ReadError
from .locations import LAYOUTS
from .node import ROOT
from .readers.skipped_files import describe_skipped
from .readers.source_files import WITHOUT_READER, ReadOptions, ReadReport, documents_of
from .source_records import (
    FileRecord,
    SourceRecords,
    below,
    current_record,
    failure_row,
    related,
    to_failure,
)
from .storage.graph_store import GraphStore
from .text_forms import composed, other_forms

if TYPE_CHECKING:
    from .readers.folder_scan import FolderScan

_LISTED = 20  # maximum number of reasons listed in a warning

_NO_DOCUMENTS = ("empty", WITHOUT_READER)
"""Kinds of files that are skipped silently in folders, unless reading is strict."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The result of ``NodeGraph.refresh``: which documents were added, updated and removed.

    Attributes:
        added: The ids of new documents.
        updated: The ids of changed documents.
        removed: The ids of documents whose file was deleted or no longer contains them.
        unchanged: The number of unchanged documents.

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


@dataclass(slots=True)
class _Reading:
    """The state of one pass over the source files.

    Attributes:
        parts: The files found in each path or source, keyed by id.
        files: All files, keyed by id.
        in_folders: The ids of files that were found by scanning a folder.
        records: The records of files that can be read.
        documents: The documents of changed files.
        errors: The errors of files that cannot be read, keyed by file id.
        skipped: The encoded errors of skipped files and sources.
    """

    parts: list[dict[str, Path]] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)
    in_folders: set[str] = field(default_factory=set)
    records: dict[str, FileRecord] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, ReadError] = field(default_factory=dict)
    skipped: dict[str, bytes] = field(default_factory=dict)

    def add(self, file_id: str, file: FileRecord, documents: Iterable[Document]) -> None:
        """Store a changed file and the documents that were read from it."""
        new = {document.id: document for document in documents}
        stamps = {i: document_stamp(document) for i, document in new.items()}
        self.records[file_id] = file._replace(documents=stamps)
        self.documents |= new

    def sort(self) -> None:
        """Sort the records and documents in the order in which the files were found."""
        self.records = {i: self.records[i] for i in self.files if i in self.records}
        self.documents = {i: self.documents[i] for i in self.stamps() if i in self.documents}

    def stamps(self, part: Iterable[str] | None = None) -> dict[str, Stamp]:
        """Return the content hashes of all documents in readable files, including unchanged files.

        Args:
            part: The ids of the files to include. If None, all files are included.
        """
        stamps: dict[str, Stamp] = {}
        for file_id in self.records if part is None else part:
            if file_id in self.records:
                stamps |= self.records[file_id].documents
        return stamps


class Corpus:
    """Manages the documents of a graph that were read from files.

    A file is parsed again only if its bytes have changed. As in Git, a file is hashed only if its
    size or its timestamps have changed. The records of the files are kept in the store, so a graph
    can still be refreshed after it is reopened.

    Args:
        store: The store of the graph.
        change_lock: A lock that is held while documents change.
        options: Options for reading files.
        progress: Whether to display a progress bar. If None, it is displayed only in a terminal.

    Attributes:
        report: The report on the last call of ``add`` or ``refresh``.
    """

    def __init__(
        self,
        store: GraphStore,
        change_lock: threading.RLock,
        options: ReadOptions,
        progress: bool | None,
    ) -> None:
        self._store = store
        self._change_lock = change_lock
        self._options = options
        self._progress = progress
        self._records = SourceRecords(store)
        self.report = ReadReport()

    @property
    def failures(self) -> list[Failure]:
        """The files that were skipped when they were last read, with the reasons."""
        return [failure for _, (_, failure) in sorted(self._records.skipped().items())]

    def sources(self) -> list[Path]:
        """Return the folders and files that are read by a refresh."""
        return self._records.sources()

    def open(self, paths: Iterable[Path], *, on_error: OnError | None) -> None:
        """Refresh the given paths that were added before, and add the new paths.

        Raises:
            ReadError: If a file or folder cannot be read and must not be skipped.
            ValueError: If two files have the same id, or if a node already uses the id of a file.
        """
        places = dict.fromkeys(path.expanduser().absolute() for path in paths)
        sources = set(self.sources())
        known: list[Path] = []
        new: list[Path] = []
        folders: set[Path] = set()
        # The ids of the new files depend on the folder, so the folder is added first.
        inside: list[Path] = []
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
        """Add documents, and read further documents from files and folders.

        Returns:
            For each path, the ids of its documents.

        Raises:
            ReadError: If a file cannot be read and must not be skipped.
            ValueError: If two different documents or files have the same id, or if a node already
                uses the id.
        """
        self.report = ReadReport()
        reading = _Reading()
        old: dict[str, FileRecord] = {}
        new: list[Path] = []
        if paths:
            paths = [path.expanduser().absolute() for path in paths]
            folders = set(self._records.folders())
            sources = [_source_of(path, folders) for path in paths]
            new = [path for path, source in zip(paths, sources, strict=True) if path == source]
            old = self._records.files()
            known = {i: Path(file.path) for i, file in old.items()}
            reading = self._scan(zip(sources, paths, strict=True), known)
            self._read(reading, old, on_error)
        put = _unique(documents, reading.documents)
        with self._store.transactions.changing(self._change_lock):
            self._write(put, reading, old)
            if paths:
                self._records.include(paths, new)
                self._records.put_skipped(reading.skipped, paths)
        return [list(reading.stamps(part)) for part in reading.parts]

    def remove_source(self, path: Path) -> None:
        """Remove the documents of a file or folder. Later refreshes ignore this path.

        Raises:
            LookupError: If no documents were read from this path.
        """
        self._store.change_documents([], remove=self._records.exclude(path))

    def refresh(self, *, on_error: OnError | None, only: Collection[Path] | None = None) -> Refresh:
        """Read all or some sources again, and update the documents accordingly.

        Raises:
            ReadError: If a source folder is missing and errors are not skipped, or if a file cannot
                be read and must not be skipped. Nothing is changed in this case.
            ValueError: If two files have the same id. Nothing is changed in this case.
        """
        self.report = ReadReport()
        records = self._records.files()
        old = records if only is None else below(records, only)
        sources = self.sources() if only is None else related(self.sources(), only)
        existing = [source for source in sources if source.exists()]
        lost = self._lost(set(sources).difference(existing), old)
        if lost and on_error != "skip":
            raise ReadError(
                f"the folder {lost[0]} is missing; restore it, or remove its documents: "
                "graph.remove(ids)"
            )
        others = {i: Path(file.path) for i, file in records.items() if i not in old}
        reading = self._scan(zip(existing, existing, strict=True), others, self._records.excluded())
        if only is not None:
            reading.files = below(reading.files, only)
        for path in lost:
            error = ReadError(f"{path} is missing", "missing")
            reading.skipped[str(path)] = failure_row(str(path), path, error)
        self._read(reading, old, on_error)
        kept = below(old, lost).keys() | reading.errors.keys()
        replaced = {i: file for i, file in old.items() if i not in kept}
        with self._store.transactions.changing(self._change_lock):
            changes = self._replace(reading, old, replaced)
            self._records.put_skipped(reading.skipped, only)
        return changes

    def _replace(
        self,
        reading: _Reading,
        old: Mapping[str, FileRecord],
        replaced: Mapping[str, FileRecord],
    ) -> Refresh:
        """Write the documents that were read, and delete those that the files no longer contain."""
        before = self._store.stamps(ROOT, reading.documents)
        changed = self._write(reading.documents, reading, old)
        now = reading.stamps()
        removed = [i for i in self._records.documents_of(replaced.values()) if i not in now]
        self._store.change_documents([], remove=removed)
        self._records.delete_files(replaced.keys() - reading.records.keys())
        return Refresh(
            added=[i for i in changed if i not in before],
            updated=[i for i in changed if i in before],
            removed=removed,
            unchanged=len(now) - len(changed),
        )

    def _lost(self, missing: Set[Path], old: Mapping[str, FileRecord]) -> list[Path]:
        """Return the missing folders from which documents were read earlier."""
        folders = [folder for folder in self._records.folders() if folder in missing]
        return [
            folder
            for folder in folders
            if self._records.documents_of(below(old, [folder]).values())
        ]

    def _scan(
        self,
        parts: Iterable[tuple[Path, Path]],
        known: dict[str, Path],
        excluded: Sequence[Path] = (),
    ) -> _Reading:
        """Find the files to read.

        Args:
            parts: Pairs of a source and the path to scan, which is the source or a path inside it.
            known: The paths of files, keyed by document id. New files are added to this dictionary.
            excluded: The files and folders to leave out.

        Raises:
            ReadError: If some files have an unsupported type and reading is strict.
            ValueError: If two files have the same id.
        """
        from .readers.folder_scan import scan_files

        reading = _Reading()
        scans: dict[Path, FolderScan] = {}
        for source, part in parts:
            scan = scans.get(source)
            if scan is None:
                scan = scans[source] = scan_files(source, self._options)
                self._report_scan(scan, source, reading)
            files = scan.files if part == source else scan.below(part)
            left_out = below(files, excluded)
            files = {i: path for i, path in files.items() if i not in left_out}
            _check_file_ids(files, known)
            known |= files
            reading.parts.append(files)
            reading.files |= files
            reading.errors |= {i: error for i, error in scan.errors.items() if i in files}
            if scan.root.is_dir():
                reading.in_folders.update(files)
        return reading

    def _report_scan(self, scan: FolderScan, source: Path, reading: _Reading) -> None:
        """Record the files in a source that will not be read.

        Raises:
            ReadError: If some files have an unsupported type and reading is strict.
        """
        unsupported = scan.unsupported_error()
        if unsupported is not None:
            if self._options.strict:
                raise unsupported
            place = source.absolute()
            reading.skipped[str(place)] = failure_row(scan.root.name, place, unsupported)
        self.report.passed_over += scan.passed_over
        self.report.unsupported += scan.unsupported

    def _read(
        self, reading: _Reading, old: Mapping[str, FileRecord], on_error: OnError | None
    ) -> None:
        """Read the changed files. The records of unchanged files are kept.

        Raises:
            ReadError: If a file cannot be read and must not be skipped.
        """
        from .readers.reading import read_files

        changed = self._changed_files(reading, old)
        self.report.unchanged += len(reading.records)
        read = read_files({i: reading.files[i] for i in changed}, self._options)
        for file_id, rows in track(read, len(changed), "reading", " files", self._progress):
            path = reading.files[file_id]
            try:
                if isinstance(rows, ReadError):
                    raise rows
                documents = documents_of(path, file_id, rows)
            except ReadError as error:
                reading.errors[file_id] = error
                continue
            self.report.note(path, documents)
            self.report.read += 1
            reading.add(file_id, changed[file_id], documents)
        reading.sort()
        self._skip(reading, on_error)

    def _changed_files(
        self, reading: _Reading, old: Mapping[str, FileRecord]
    ) -> dict[str, FileRecord]:
        """Return new records for the files that have changed. Other files keep their records.

        A file has changed if its bytes differ, or if one of its documents differs from the stored
        content hash.
        """
        documents: set[str] = set()
        for file_id in reading.files:
            if file_id in old:
                documents.update(old[file_id].documents)
        stored = self._store.stamps(ROOT, documents)
        changed: dict[str, FileRecord] = {}
        for file_id, path in reading.files.items():
            if file_id in reading.errors:
                continue
            before = old.get(file_id)
            try:
                file = current_record(path, before, self._options)
            except ReadError as error:
                reading.errors[file_id] = error
                continue
            has_same_bytes = before is not None and before.content == file.content
            if has_same_bytes and file.documents.items() <= stored.items():
                reading.records[file_id] = file
            else:
                changed[file_id] = file
        return changed

    def _skip(self, reading: _Reading, on_error: OnError | None) -> None:
        """Record the errors of skipped files, and log a warning about new errors.

        Raises:
            ReadError: If a file must not be skipped. The first such error is raised.
        """
        raised: list[ReadError] = []
        for file_id, path in reading.files.items():
            error = reading.errors.get(file_id)
            if error is None:
                continue
            self.report.skipped[str(path)] = error
            if self._is_skipped(error, on_error, in_folder=file_id in reading.in_folders):
                reading.skipped[file_id] = failure_row(file_id, path.absolute(), error)
            else:
                raised.append(error)
        if raised:
            raise raised[0]
        new = self._records.new_skipped(reading.skipped)
        _warn_of_skipped([to_failure(row)[1] for row in new.values()])

    def _is_skipped(self, error: ReadError, on_error: OnError | None, *, in_folder: bool) -> bool:
        """Return whether a file that cannot be read is skipped instead of raising the error."""
        if self._options.strict:
            return False
        if on_error == "skip":
            return True
        return in_folder and (on_error is None or error.kind in _NO_DOCUMENTS)

    def _write(
        self, documents: Mapping[str, Document], reading: _Reading, old: Mapping[str, FileRecord]
    ) -> list[str]:
        """Write documents, layouts and file records, and return the ids of changed documents.

        A document counts as unchanged if only the dates of its file differ.

        Raises:
            ValueError: If a derived node already uses the id of a document.
        """
        store = self._store
        stored = store.stamps(ROOT, reading.documents)
        read = reading.stamps()
        same = {i for i in reading.documents if i in stored and stored[i][:2] == read[i][:2]}
        changed = [i for i in documents if i not in same]
        replaced = self._in_other_forms(changed, {*documents, *read}, old.values())
        store.change_documents([documents[i] for i in changed], remove=replaced)
        layouts = {i: d.layout for i, d in documents.items() if d.layout is not None}
        stamps = store.stamps(ROOT, {*layouts, *read})
        layouts = {i: stamps[i].key.encode() + b"\0" + layout for i, layout in layouts.items()}
        store.values.put(LAYOUTS, layouts)
        files: dict[str, FileRecord] = {}
        for i, file in reading.records.items():
            if file != old.get(i):
                own = {d: stamps[d] for d in file.documents if d in stamps}
                files[i] = file._replace(documents=own)
        # For unchanged documents, the records only save hashing, so losing them does no harm.
        self._records.put_files(files, derived=not changed)
        return changed

    def _in_other_forms(
        self, ids: Iterable[str], kept: Set[str], files: Iterable[FileRecord]
    ) -> list[str]:
        """Return the stored document ids that equal a new id except for their Unicode form.

        Two files in the same folder are two documents, even if their names differ only in the
        Unicode form.
        """
        others = set().union(*[other_forms(name) for name in ids])
        stored = self._store.stamps(ROOT, others - kept)
        if not stored:
            return []
        of_files: set[str] = set()
        for file in files:
            if Path(file.path).exists():
                of_files.update(file.documents)
        return [name for name in stored if name not in of_files]


def _source_of(path: Path, folders: Set[Path]) -> Path:
    """Return the outermost registered folder that contains a path, or else the path itself.

    The ids of files are paths relative to this folder.
    """
    return next((folder for folder in reversed(path.parents) if folder in folders), path)


def _unique(documents: Iterable[Document], read: Mapping[str, Document]) -> dict[str, Document]:
    """Combine the given documents with those read from files, and return them keyed by id.

    Raises:
        ValueError: If two different documents have the same id.
    """
    unique: dict[str, Document] = {}
    forms: dict[str, Document] = {}
    for document in (*documents, *read.values()):
        same = unique.setdefault(document.id, document)
        if same == document and document.id not in read:
            same = forms.setdefault(composed(document.id), document)
        if same != document:
            raise ValueError(
                f"document ids must be unique, got two different documents with id "
                f"{document.id!r}; set Document(text, id=...)"
            )
    return unique


def _check_file_ids(files: Mapping[str, Path], known: Mapping[str, Path]) -> None:
    """Check that no other existing file has the same id as one of the files.

    Raises:
        ValueError: If two files have the same id.
    """
    for file_id, path in files.items():
        other = known.get(file_id, path)
        if other != path and other.resolve() != path.resolve() and other.exists():
            raise ValueError(
                f"{path} and {other} have the same document id {file_id!r}; rename a "
                "folder, or add Document(text, id=...)"
            )


def _warn_of_skipped(failures: Sequence[Failure]) -> None:
    """Log the number and kinds of skipped files, how to read them, and any unexpected errors."""
    if not failures:
        return
    reasons = [str(f.error) for f in failures if not getattr(f.error, "skippable", False)]
    if len(reasons) > _LISTED:
        reasons[_LISTED:] = [f"and {len(reasons) - _LISTED:,} more"]
    option = 'on_error="raise"'
    if all(getattr(f.error, "kind", "") in _NO_DOCUMENTS for f in failures):
        option = "reading=ReadOptions(strict=True)"
    logger.warning(
        "%s; graph.failures has the reasons, and NodeGraph(..., %s) makes this an error%s",
        describe_skipped(failures),
        option,
        "".join([f"\n- {line}" for line in reasons]),
    )
