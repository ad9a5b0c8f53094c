"""The documents of a graph that are read from files and folders."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .concurrency import track
from .derivation import Stamp, derive_root
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

_LISTED = 20  # reasons in a warning

_NO_DOCUMENTS = ("empty", WITHOUT_READER)
"""Kinds of files that are skipped in folders unless reading is strict."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The documents that ``NodeGraph.refresh`` added, updated and removed.

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
    records: dict[str, FileRecord] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, ReadError] = field(default_factory=dict)
    skipped: dict[str, bytes] = field(default_factory=dict)

    def add(self, file_id: str, file: FileRecord, documents: Iterable[Document]) -> None:
        """Add the documents of a changed file."""
        new = {document.id: document for document in documents}
        stamps = {i: derive_root(document, 0).stamp for i, document in new.items()}
        self.records[file_id] = file._replace(documents=stamps)
        self.documents |= new

    def sort(self) -> None:
        """Sort the records and documents in the order of the files."""
        self.records = {i: self.records[i] for i in self.files if i in self.records}
        self.documents = {i: self.documents[i] for i in self.stamps() if i in self.documents}

    def stamps(self, part: Iterable[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of the documents of readable files, including unchanged files.

        Args:
            part: The file ids. If None, all files.
        """
        stamps: dict[str, Stamp] = {}
        for file_id in self.records if part is None else part:
            if file_id in self.records:
                stamps |= self.records[file_id].documents
        return stamps


class Corpus:
    """The documents of a graph that were read from files.

    A file with unchanged bytes is not parsed again. As in Git, a file is hashed only if its size or
    times changed. The file records are in the store, so a reopened graph can be refreshed.

    Args:
        store: The store of the graph.
        change_lock: A lock that is held while documents change.
        options: Options for reading.
        progress: Whether to print a progress bar. If None, it is printed only in a terminal.

    Attributes:
        report: The report of the last ``add`` or ``refresh``.
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
        """The files that were skipped when they were last read."""
        return [failure for _, (_, failure) in sorted(self._records.skipped().items())]

    def sources(self) -> list[Path]:
        """Return the folders and files that a refresh reads."""
        return self._records.sources()

    def open(self, paths: Iterable[Path], *, on_error: OnError | None) -> None:
        """Refresh the paths that are already sources, and add the other paths.

        Raises:
            ReadError: If a file or folder cannot be read and is not skipped.
            ValueError: If different files have one id, or if a node already has the id.
        """
        places = dict.fromkeys(path.expanduser().absolute() for path in paths)
        sources = set(self.sources())
        known: list[Path] = []
        new: list[Path] = []
        folders: set[Path] = set()
        inside: list[Path] = []  # their ids depend on the folder, which is added first
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
        """Add documents, and the documents in files and folders.

        Returns:
            The document ids of each path.

        Raises:
            ReadError: If a file cannot be read and is not skipped.
            ValueError: If different documents or files have one id, or if a node already has the
                id.
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
        """Remove the documents of a file or folder, and stop reading the path.

        Raises:
            LookupError: If nothing was read from this path.
        """
        self._store.change_documents([], remove=self._records.exclude(path))

    def refresh(self, *, on_error: OnError | None, only: Collection[Path] | None = None) -> Refresh:
        """Read all or some sources again, and add, update and remove documents.

        Raises:
            ReadError: If a source folder is missing and errors are not skipped, or if a file cannot
                be read and is not skipped. Nothing is changed.
            ValueError: If two files have one id. Nothing is changed.
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
        """Write the documents that were read, and remove the other documents of replaced files."""
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
        """Return the missing folders that had documents."""
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
            parts: Pairs of a source and a path, which is the source or a path below it.
            known: Files by document id. New files are added to it.
            excluded: Files and folders to leave out.

        Raises:
            ReadError: If files have no reader and reading is strict.
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
        """Record the files of a source that are not read.

        Raises:
            ReadError: If files have no reader and reading is strict.
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
        """Read the changed files, and keep the old records of the unchanged files.

        Raises:
            ReadError: If a file cannot be read and is not skipped.
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
        """Return the new records of changed files. Other files keep their records.

        A file counts as changed if its bytes changed, or if one of its documents differs from the
        stored stamp.
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
        """Record the errors of skipped files, and warn about new errors.

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
        """Return whether a file with an error is skipped."""
        if self._options.strict:
            return False
        if on_error == "skip":
            return True
        return in_folder and (on_error is None or error.kind in _NO_DOCUMENTS)

    def _write(
        self, documents: Mapping[str, Document], reading: _Reading, old: Mapping[str, FileRecord]
    ) -> list[str]:
        """Write documents, their layouts and the file records. Return the changed documents.

        Documents count as unchanged if only the dates of their files differ.

        Raises:
            ValueError: If a derived node already has the id of a document.
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
        # The records of unchanged documents are needed only to save hashing.
        self._records.put_files(files, derived=not changed)
        return changed

    def _in_other_forms(
        self, ids: Iterable[str], kept: Set[str], files: Iterable[FileRecord]
    ) -> list[str]:
        """Return the ids of stored documents that equal new ids in a different Unicode form.

        Two files of one folder are two documents even if their names differ only in the Unicode
        form.
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
    """Return the folder that a path is read from: the outermost known folder, or the path.

    The ids of files in a known folder are relative to this folder.
    """
    return next((folder for folder in reversed(path.parents) if folder in folders), path)


def _unique(documents: Iterable[Document], read: Mapping[str, Document]) -> dict[str, Document]:
    """Return the documents, including those read from files, by id.

    Raises:
        ValueError: If two different documents have one id.
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
    """Check that no other existing file has the id of a file.

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
    """Log the number, kinds and remedies of skipped files, and the causes of unexpected errors."""
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
