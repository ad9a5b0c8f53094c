"""Remember which documents came from which files, to read them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """What a source, or all (None), gave: files by id, documents, and the file of each."""

    source: Path | None
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
        source = source.expanduser().absolute()  # to mean the same when it is read again
        files = _scan(source, self._files)
        return Reading(source, files, *self._read(files, failures))

    def keep(self, reading: Reading) -> None:
        """Remember what was read, to read it again."""
        if reading.source is not None and reading.source not in self._sources:
            self._sources.append(reading.source)
        self._files.update(reading.files)
        self._documents.update(reading.files_of)

    def read_again(self, failures: list[Failure] | None) -> tuple[dict[str, str], Reading]:
        """Read all sources again; return which documents they gave before, and the reading."""
        before = dict(self._documents)
        files: dict[str, Path] = {}
        for source in list(self._sources):
            files.update(_scan(source, files) if source.exists() else {})
        if failures is not None:  # of a file that is gone there is nothing to say
            failures[:] = [f for f in failures if f.document in files]
        return before, Reading(None, files, *self._read(files, failures))

    def compare(
        self,
        before: Mapping[str, str],
        reading: Reading,
        store: NodeStore,
        failures: Iterable[Failure],
    ) -> tuple[list[Document], Refresh]:
        """Remember what was read again; return the new and changed documents, and a report.

        Documents of files that can't be read any more stay.
        """
        changed, added, updated = [], [], []
        for document in reading.documents:
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
        unread = {failure.document for failure in failures if failure.group == ROOT}
        removed = [
            i
            for i, file_id in before.items()
            if i in self._documents and i not in reading.files_of and file_id not in unread
        ]
        for file_id in set(before.values()) - reading.files.keys():
            self._files.pop(file_id, None)
        self.keep(reading)
        unchanged = len(reading.documents) - len(changed)
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


def _scan(source: Path, known: Mapping[str, Path]) -> dict[str, Path]:
    """Find the files of a source, of which none may have the id of another that is known."""
    files = scan(source)
    for file_id, path in files.items():
        other = known.get(file_id)
        if other is not None and other.resolve() != path.resolve():
            raise ValueError(
                f"{path} would get the document id {file_id!r}, which {other} has; add it as "
                "Document(text, id=...), or rename its folder"
            )
    return files
