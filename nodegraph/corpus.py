"""Keep documents in step with the files they come from."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import readers  # its scanner, and so all formats, is imported when a folder is read
from .build_writer import Failure
from .codec import decode, encode
from .derivation import Derivation, Stamp, derive, derive_root, outputs_by_parent
from .document import Document
from .errors import ReadError
from .locking import Access
from .node import ROOT, Link, Node
from .parsed_files import ParsedFiles
from .readers.read_options import ReadOptions
from .readers.read_report import ReadReport
from .store import NodeStore
from .transforms import Draft

_SOURCES = "source"  # path -> b"folder", b"file", or _LEFT_OUT for a part of a folder

_LEFT_OUT = b"left out"

_FILES = "file"  # file id -> its record


@dataclass(frozen=True, slots=True)
class Refresh:
    """Tell what a refresh found.

    Attributes:
        added: Ids of new documents.
        updated: Ids of those that changed.
        removed: Ids of those whose file is gone.
        unchanged: How many stayed as they were.
        renamed: Old and new ids of those that only have another name or folder: what was made
            of them has moved with them.
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
        path: Where it is.
        content: A hash of its bytes.
        documents: Its documents' stamps.
        version: What the file system says of it, see ``_version``; empty where that says nothing.
    """

    path: str
    content: str
    documents: Mapping[str, Stamp]
    version: Sequence[int] = ()

    def to_bytes(self) -> bytes:
        documents = {i: list(stamp) for i, stamp in self.documents.items()}
        row = [self.path, self.content, documents, list(self.version)]
        return encode(row).encode("utf-8", "surrogatepass")

    @classmethod
    def all_from_bytes(cls, values: Mapping[str, bytes]) -> dict[str, _File]:
        """Read many at once, by file id."""
        rows = decode((b"[" + b",".join(values.values()) + b"]").decode("utf-8", "surrogatepass"))
        return {
            i: cls(path, content, {d: Stamp(*stamp) for d, stamp in documents.items()}, version)
            for i, (path, content, documents, version) in zip(values, rows, strict=True)
        }


@dataclass(slots=True)
class _Reading:
    """What files hold: their records, and the documents of those that were read."""

    files: dict[str, _File] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)


class Corpus:
    """Read files into a store, and read them again.

    A file whose bytes are the same as before is not parsed again. As Git does it, bytes are not
    looked at where a file's size and the times of its last changes are the same. What is known of
    the files lies in the store, so that a graph that is opened again can be refreshed.
    """

    def __init__(
        self,
        store: NodeStore,
        access: Access,
        options: ReadOptions,
        progress: bool | None = None,
    ) -> None:
        self._store = store
        self._access = access
        self._options = options
        self._parsed = ParsedFiles(store, options, progress)
        self._passed_over: dict[str, dict[str, Failure]] = {}  # by source
        self.report = ReadReport()

    @property
    def passed_over(self) -> list[Failure]:
        """What of the sources was left out for what it is, not for an error."""
        return [failure for some in self._passed_over.values() for failure in some.values()]

    def add(
        self, documents: list[Document], paths: list[Path], failures: list[Failure] | None
    ) -> list[list[str]]:
        """Put documents, and those of files and folders; return the ids that each path gave.

        Raises:
            ReadError: If a file can't be read, and failures are not collected.
            ValueError: If different documents, or different files, have the same id.
        """
        paths = [path.expanduser().absolute() for path in paths]
        self.report = ReadReport()
        records = self._records() if paths else {}
        existing: dict[str, Path] = {i: Path(file.path) for i, file in records.items()}
        known = self._store.get_values(_SOURCES) if paths else {}
        folders = [Path(p) for p, kind in known.items() if kind == b"folder"]
        parts = {p for p in paths if any(f != p and _below(p, f) for f in folders)}
        readings = []
        for path in paths:
            if path in parts:  # by the names that its files have in the folder
                folder = next(f for f in folders if f != path and _below(path, f))
                found = self._scan(folder, existing)
                inside = {i: p for i, p in found.files.items() if _below(p.absolute(), path)}
                found = replace(found, files=inside)
            else:
                found = self._scan(path, existing)
            existing.update(found.files)
            readings.append(self._read(found.files, records, failures, [found]))
        put: dict[str, Document] = {}
        for document in documents:
            _add_document(put, document)
        for reading in readings:
            for document in reading.documents.values():
                _add_document(put, document)
        kinds = {
            str(path): b"folder" if path.is_dir() else b"file"
            for path in paths
            if path not in parts
        }

        def take_in() -> None:
            self._check_free(put)
            from_files = [d for reading in readings for d in reading.documents.values()]
            same = self._same(from_files)
            self._store.change_documents([d for i, d in put.items() if i not in same])
            for reading in readings:
                self._keep(reading.files, records)
            left_out = [p for p, kind in known.items() if kind == _LEFT_OUT]
            back = [p for p in left_out if any(_below(Path(p), path) for path in paths)]
            self._store.delete_values(_SOURCES, back)
            self._store.put_values(_SOURCES, kinds)
            self._parsed.forget()

        self._access.change(take_in)
        return [[i for f in reading.files.values() for i in f.documents] for reading in readings]

    def remove(self, ids: list[str]) -> None:
        """Remove documents; their files give them again with the next refresh."""
        self._store.change_documents([], remove=ids)

    def forget(self, path: Path) -> list[str]:
        """Remove the documents of a file or folder, and read it no more; return their ids.

        Raises:
            LookupError: If none of the files that were read is there.
        """
        path = path.expanduser().absolute()
        sources = {Path(p): kind for p, kind in self._store.get_values(_SOURCES).items()}
        records = {i: f for i, f in self._records().items() if _below(Path(f.path), path)}
        if not records and path not in sources:
            raise LookupError(
                f"no file in {path} was read; the graph reads {', '.join(map(str, sources))}"
            )
        ids = list(self._store.stamps(ROOT, {i for f in records.values() for i in f.documents}))
        self._store.change_documents([], remove=ids)
        self._store.delete_values(_FILES, records)
        self._store.delete_values(_SOURCES, [str(p) for p in sources if _below(p, path)])
        if any(p != path and _below(path, p) for p in sources):
            self._store.put_values(_SOURCES, {str(path): _LEFT_OUT})
        return ids

    def follow(self, source: Path, failures: list[Failure] | None) -> Refresh | None:
        """Bring the documents of one source up to date; None if it was never read before."""
        path = source.expanduser().absolute()
        kind = self._store.get_values(_SOURCES, [str(path)]).get(str(path))
        if kind is None or kind == _LEFT_OUT:
            return None
        return self.refresh(failures, only=path)

    def sources(self) -> list[Path]:
        """Return the folders and files that are read again."""
        kinds = self._store.get_values(_SOURCES)
        return [Path(path) for path, kind in kinds.items() if kind != _LEFT_OUT]

    def refresh(self, failures: list[Failure] | None, only: Path | None = None) -> Refresh:
        """Read all sources again (or one); add, update and remove documents.

        Raises:
            ReadError: If a source folder is gone, or a file can't be read, and failures are not
                collected; nothing has changed then.
            ValueError: If two files have come to have the same id; nothing has changed then.
        """
        self.report = ReadReport()
        records = self._records()
        files: dict[str, Path] = {}
        scans: list[readers.FolderScan] = []
        lost: list[Path] = []
        sources = {Path(p): k for p, k in self._store.get_values(_SOURCES).items()}
        left_out = [source for source, kind in sources.items() if kind == _LEFT_OUT]
        for source, kind in sources.items():
            if kind == _LEFT_OUT:
                continue
            if source.exists():
                scans.append(self._scan(source, files))
                inside = scans[-1].files.items()
                for part in left_out:
                    inside = {i: p for i, p in inside if not _below(p.absolute(), part)}.items()
                files.update(inside)
            elif kind == b"folder" and self._has_documents_below(source, records):
                lost.append(source)
                if failures is None:
                    raise ReadError(
                        f"the folder {source} is gone; bring it back, or remove its documents: "
                        "graph.remove(ids)"
                    )
        if only is not None:
            records = {i: f for i, f in records.items() if _below(Path(f.path), only)}
            files = {i: p for i, p in files.items() if _below(p.absolute(), only)}
        if failures is not None:  # of a file that is gone there is nothing to say
            failures[:] = [f for f in failures if f.document in files]
            for source in lost:
                failures.append(Failure(str(source), ROOT, ReadError(f"{source} is gone")))
        reading = self._read(files, records, failures, scans)
        retained = {
            i for i, f in records.items() if any(_below(Path(f.path), folder) for folder in lost)
        }
        return self._access.change(
            lambda: self._take_in(reading, records, retained | reading.unreadable)
        )

    def _take_in(
        self, reading: _Reading, records: Mapping[str, _File], retained: set[str]
    ) -> Refresh:
        self._check_free(reading.documents)
        now = {i for file in reading.files.values() for i in file.documents}
        same = self._same(reading.documents.values())
        put = [d for i, d in reading.documents.items() if i not in same]
        stored = self._store.stamps(ROOT, {d.id for d in put})
        missing = [
            i
            for file_id, file in records.items()
            if file_id not in retained
            for i in file.documents
            if i not in now
        ]
        removed = list(self._store.stamps(ROOT, missing))
        added = [d.id for d in put if d.id not in stored]
        renamed = self._renamed(removed, added, put)
        self._store.change_documents(put)
        for old, new in renamed:
            rename(self._store, old, new)
        self._store.change_documents([], remove=removed)
        missing_files = set(records) - set(reading.files) - retained
        self._store.delete_values(_FILES, missing_files)
        self._parsed.forget()
        self._keep(reading.files, records)
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
        """Pair documents that went with those that came with the same text."""
        texts: dict[str, list[str]] = {}
        for i, stamp in self._store.stamps(ROOT, list(removed)).items():
            texts.setdefault(stamp.key, []).append(i)
        new, pairs = set(added), []
        for document in put:
            same = texts.get(derive_root(document, 0).key)
            if document.id in new and same:
                pairs.append((same.pop(0), document.id))
        return pairs

    def _scan(self, source: Path, existing: Mapping[str, Path]) -> readers.FolderScan:
        """Find the files of a source, of which none may have the id of another that is known."""
        found = readers.scan(source, self._options)
        for file_id, path in found.files.items():
            other = existing.get(file_id)
            if other is not None and other.resolve() != path.resolve() and other.exists():
                raise ValueError(
                    f"{path} would get the document id {file_id!r}, which {other} has; add it as "
                    "Document(text, id=...), or rename its folder"
                )
        passed_over = self._passed_over[str(found.root)] = {}
        if unsupported := found.unsupported_error():
            if self._options.strict:
                raise unsupported
            passed_over[""] = Failure(found.root.name, ROOT, unsupported)
        self.report.passed_over += found.passed_over
        self.report.unsupported += found.unsupported
        return found

    def _read(
        self,
        files: Mapping[str, Path],
        records: Mapping[str, _File],
        failures: list[Failure] | None,
        scans: Sequence[readers.FolderScan],
    ) -> _Reading:
        """Read those files that are not as they were; of the others take the record.

        Raises:
            ReadError: If files can't be read, and failures are not collected: all of them are
                named, the first in full.
        """
        reading = _Reading()
        if failures is not None:
            failures[:] = [f for f in failures if f.document not in files]
        contents: dict[str, str] = {}
        versions: dict[str, Sequence[int]] = {}
        errors: dict[str, ReadError] = {}
        known = {i: records[i] for i in files if i in records}
        ids = {i for file in known.values() for i in file.documents}
        stored = self._store.stamps(ROOT, None if len(known) == len(records) else ids)
        for file_id, path in files.items():
            old, where = known.get(file_id), str(path)
            try:
                versions[file_id] = version = _version(where)
                is_same = old is not None and version and version == old.version
                contents[file_id] = content = old.content if old and is_same else _hash(path)
            except ReadError as error:
                errors[file_id] = error
                continue
            if old is None or old.content != content:
                continue
            if old.documents.items() <= stored.items():
                reading.files[file_id] = (
                    old
                    if is_same and old.path == where
                    else _File(where, content, old.documents, version)
                )
        changed = {i: path for i, path in files.items() if i in contents and i not in reading.files}
        for file_id, documents in self._parsed.documents(changed, contents):
            if isinstance(documents, ReadError):
                errors[file_id] = documents
                continue
            stamps = {document.id: derive_root(document, 0).stamp for document in documents}
            path = files[file_id]
            self.report.note(path, documents)
            reading.files[file_id] = _File(str(path), contents[file_id], stamps, versions[file_id])
            reading.documents.update((document.id, document) for document in documents)
        reading.files = {i: reading.files[i] for i in files if i in reading.files}
        in_order = (i for file in reading.files.values() for i in file.documents)
        reading.documents = {i: reading.documents[i] for i in in_order if i in reading.documents}
        self.report.unchanged += len(files) - len(changed) - len(errors.keys() - changed.keys())
        self.report.read += len(changed) - len(errors.keys() & changed.keys())
        self._tell(errors, files, failures, scans)
        reading.unreadable |= errors.keys()
        return reading

    def _tell(
        self,
        errors: Mapping[str, ReadError],
        files: Mapping[str, Path],
        failures: list[Failure] | None,
        scans: Sequence[readers.FolderScan],
    ) -> None:
        """List what could not be read, or raise it."""
        raised: list[ReadError] = []
        folders = {i: str(found.root) for found in scans if found.is_folder for i in found.files}
        for file_id, error in ((i, errors[i]) for i in files if i in errors):
            self.report.skipped[str(files[file_id])] = error
            failure = Failure(file_id, ROOT, error)
            if error.skippable and file_id in folders and not self._options.strict:
                self._passed_over[folders[file_id]][file_id] = failure
            elif failures is None or self._options.strict:
                raised.append(error)
            else:
                failures.append(failure)
        if len(raised) > 1:
            raise ReadError(
                f"{raised[0]}; nor can {len(raised) - 1:,} other files be read ({self.report}); "
                'on_error="skip" goes on without them, and lists them in graph.failures',
                raised[0].kind,
            ) from raised[0]
        if raised:
            raise raised[0]

    def _has_documents_below(self, source: Path, records: Mapping[str, _File]) -> bool:
        files = [f for f in records.values() if _below(Path(f.path), source)]
        return bool(self._store.stamps(ROOT, {i for f in files for i in f.documents}))

    def _same(self, documents: Iterable[Document]) -> set[str]:
        """Return which documents are stored already, but for dates of the file system."""
        roots = {document.id: derive_root(document, 0).stamp for document in documents}
        stored = self._store.stamps(ROOT, roots.keys())
        return {i for i, old in stored.items() if old[:2] == roots[i][:2]}

    def _keep(self, files: Mapping[str, _File], known: Mapping[str, _File]) -> None:
        """Store the records of files that are new, with the stamps that documents have now."""
        new = {i: file for i, file in files.items() if file is not known.get(i)}
        stored = self._store.stamps(ROOT, {i for f in new.values() for i in f.documents})
        values = {}
        for i, file in new.items():
            documents = {d: stored[d] for d in file.documents if d in stored}
            values[i] = replace(file, documents=documents).to_bytes()
        self._store.put_values(_FILES, values)

    def _records(self) -> dict[str, _File]:
        return _File.all_from_bytes(self._store.get_values(_FILES))

    def _check_free(self, ids: Iterable[str]) -> None:
        for node in self._store.get(ids):
            if node is not None and node.group != ROOT:
                raise ValueError(
                    f"the id {node.id!r} is taken by a node of group {node.group!r}; give the "
                    "document another one"
                )


def rename(store: NodeStore, old: str, new: str) -> None:
    """Copy the derivations of a document to another one with the same text.

    Both are in the store; links of the old one's nodes are put for the new one's too. Nodes of
    rules that look at metadata are made anew when they are needed, should that have changed.
    """
    before, root = store.get([old, new])
    if before is None or root is None:
        return
    stamp = next(iter(store.stamps(root.group, [new]).values()))
    names = {old: root}  # the new nodes by the ids of the old ones
    derived: dict[str, Derivation] = {}
    for group, derivation in _from_the_top(store, old, set(names)):
        families: list[tuple[Node | None, Sequence[Draft]]] = [
            (names[parent], outputs) for parent, outputs in outputs_by_parent(derivation).items()
        ]
        moved = derived[group] = derive(
            group, Stamp(derivation.key, derivation.rule, stamp.metadata), root, families
        )
        pairs = zip(derivation.nodes, moved.nodes, strict=True)
        names.update((node.id, other) for node, other in pairs)
    ids = {i: node.id for i, node in names.items()}
    for group, moved in derived.items():
        links = [replace(link, target=ids.get(link.target, link.target)) for link in moved.links]
        store.put_derivations(group, {new: replace(moved, links=links)})
    _copy_links(store, ids)


def _from_the_top(
    store: NodeStore, document_id: str, placed: set[str]
) -> Iterator[tuple[str, Derivation]]:
    """Yield a document's derivations, parents first."""
    waiting = [(g, d) for g in store.groups() if (d := store.derivation(g, document_id))]
    while waiting:
        ready = [(g, d) for g, d in waiting if {n.parent_id for n in d.nodes} <= placed]
        if not ready:
            return  # the rest has parents that were removed, and is derived again
        for group, derivation in ready:
            yield group, derivation
            placed.update(node.id for node in derivation.nodes)
        waiting = [pair for pair in waiting if pair not in ready]


def _copy_links(store: NodeStore, names: dict[str, str]) -> None:
    ids = list(names)
    rows = [*store.links(ids), *store.links(ids, incoming=True)]
    copied = {
        Link(
            names.get(link.source, link.source),
            names.get(link.target, link.target),
            link.type,
            link.weight,
            link.metadata,
            link.derived,
        ): None
        for links in rows
        for link in links
    }
    if copied:
        store.link(list(copied))


def _add_document(put: dict[str, Document], document: Document) -> None:
    if put.setdefault(document.id, document) != document:
        raise ValueError(
            f"two different documents in one call have the id {document.id!r}; give each its own: "
            "Document(text, id=...)"
        )


def _version(path: str) -> Sequence[int]:
    """Return a file's size, number and times of its last changes, in nanoseconds.

    Empty where it was changed within the last two seconds: some file systems have no finer times,
    and a second change would not show.
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
