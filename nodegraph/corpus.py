"""Remember which documents came from which files, to read them again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .builder import Failure
from .document import Document, metadata_digest
from .errors import ReadError
from .node import ROOT
from .readers import read_file
from .sources import scan
from .store import NodeStore


@dataclass(frozen=True, slots=True)
class Refresh:
    """Tell what a refresh found: document ids, added, updated, removed; and how many stayed."""

    added: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source gave: its files by id, its documents, and the file each came from."""

    source: Path
    files: dict[str, Path]
    documents: list[Document]
    files_of: dict[str, str]


class Corpus:
    """Keep the sources of a graph and the documents each of their files gave."""

    def __init__(self) -> None:
        self._sources: list[Path] = []
        self._files: dict[str, Path] = {}  # file id -> path
        self._documents: dict[str, str] = {}  # document id -> file id

    def read(self, source: Path, failures: list[Failure] | None) -> Reading:
        """Read a folder or a file; ``keep`` remembers it.

        Args:
            source: The folder or file.
            failures: Takes the files that can't be read; None raises for the first one.

        Raises:
            ReadError: If a file can't be read.
            ValueError: If another file has given documents the same ids.
        """
        files = scan(source)
        for file_id, path in files.items():
            known = self._files.get(file_id)
            if known is not None and known.resolve() != path.resolve():
                raise ValueError(
                    f"{path} would get the document id {file_id!r}, which {known} has; add it as "
                    "Document(text, id=...), or rename its folder"
                )
        return Reading(source, files, *self._read(files, failures))

    def keep(self, reading: Reading) -> None:
        """Remember what was read, to read it again."""
        if reading.source not in self._sources:
            self._sources.append(reading.source)
        self._files.update(reading.files)
        self._documents.update(reading.files_of)

    def refresh(
        self, store: NodeStore, failures: list[Failure] | None
    ) -> tuple[list[Document], Refresh]:
        """Read all sources again; return the documents that are new or changed, and a report."""
        files: dict[str, Path] = {}
        for source in self._sources:
            files.update(scan(source) if source.exists() else {})
        if failures is not None:  # of a file that is gone there is nothing to say
            failures[:] = [f for f in failures if f.document in files]
        documents, documents_of = self._read(files, failures)
        changed, added, updated = [], [], []
        for document in documents:
            (old,) = store.get([document.id])
            if old is None or old.group != ROOT:
                added.append(document.id)
            elif old.text != document.text or metadata_digest(old.own_metadata) != metadata_digest(
                document.metadata
            ):
                updated.append(document.id)
            else:
                continue
            changed.append(document)
        kept = {f.document for f in failures or ()}
        removed = [
            i
            for i, file_id in self._documents.items()
            if i not in documents_of and file_id not in kept
        ]
        self._files = files
        self._documents.update(documents_of)
        unchanged = len(documents) - len(changed)
        return changed, Refresh(added, updated, removed, unchanged)

    def forget(self, ids: list[str]) -> None:
        """Forget documents that were removed."""
        for i in ids:
            self._documents.pop(i, None)

    def _read(
        self, files: dict[str, Path], failures: list[Failure] | None
    ) -> tuple[list[Document], dict[str, str]]:
        documents: list[Document] = []
        documents_of: dict[str, str] = {}
        if failures is not None:
            failures[:] = [f for f in failures if f.document not in files]
        for file_id, path in files.items():
            try:
                read = read_file(path, file_id)
            except ReadError as error:
                if failures is None:
                    raise
                failures.append(Failure(file_id, ROOT, error))
                continue
            documents += read
            documents_of.update((document.id, file_id) for document in read)
        return documents, documents_of
