"""Classes for reading files: options, source files and reports."""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError, check_bool, check_integer
from ..locations import Layout, pack_layout
from ..search_text import SearchText

Ocr = Callable[[Any], str]
"""A function that takes the image of a page (``PIL.Image.Image``) and returns its text."""

INDEX_FOLDER = ".nodekin"  # The command line stores its index in this folder, which is never read.

INSTALLED = ("node_modules", "bower_components", "site-packages", "__pycache__")
"""Names of folders that contain installed packages or compiled files."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading files and folders.

    Args:
        strict: Whether to raise an error for every file in a folder that cannot be read, including
            empty files and files of unsupported types.
        encoding: The encoding of text files that are not UTF-8, such as ``"gb18030"``. If None, the
            encoding is detected automatically.
        ocr: A function that takes an image (``PIL.Image.Image``) and returns its text, such as
            ``pytesseract.image_to_string``. It is called for PDF pages without usable text, from
            several threads of this process.
        ignore_files: The names of files that contain patterns for paths to ignore, in the format of
            ``.gitignore``.
        skip_folders: The names of folders to skip at any depth. Defaults to folders that contain
            installed packages.
        hidden: Whether to read files and folders whose names start with a dot.
        max_bytes: The maximum size of a file in bytes.
        max_unpacked_bytes: The maximum uncompressed size of a compressed file (DOCX, EPUB, ...) in
            bytes.
        seconds: The maximum CPU time for parsing a file in seconds (not enforced on Windows). The
            elapsed time is limited to twelve times this value.
        memory_bytes: The maximum memory of a parser in bytes (not enforced on Windows).
        num_workers: The number of files that are parsed concurrently, each in a separate process.
            Defaults to the number of CPU cores.

    Raises:
        ValueError: If a number is out of range, or the encoding is unknown.
        TypeError: If an option has the wrong type.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.nodegraph import NodeGraph
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "tea.txt").write_bytes("绿茶".encode("gb18030"))
        ...     graph = NodeGraph(folder, reading=ReadOptions(encoding="gb18030"), progress=False)
        >>> [node.text for node in graph.nodes("ROOT")]
        ['绿茶']
    """

    strict: bool = False
    encoding: str | None = None
    ocr: Ocr | None = None
    ignore_files: tuple[str, ...] = (".gitignore", ".nodekinignore")
    skip_folders: tuple[str, ...] = INSTALLED
    hidden: bool = False
    max_bytes: int = 200_000_000
    max_unpacked_bytes: int = 500_000_000
    seconds: float = 10
    memory_bytes: int = 512 * 2**20
    num_workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_unpacked_bytes", "memory_bytes", "num_workers"):
            if (number := getattr(self, name)) is not None:
                check_integer(number, name, 1)
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float):
            raise TypeError(f"seconds must be a number, got {self.seconds!r:.80}")
        if not self.seconds > 0:
            raise ValueError(f"seconds must be more than 0, got {self.seconds!r}")
        check_bool(self.strict, "strict")
        check_bool(self.hidden, "hidden")
        if self.ocr is not None and not callable(self.ocr):
            raise TypeError(
                f"ocr must be a function from an image to its text, got {self.ocr!r:.80}"
            )
        for name in ("ignore_files", "skip_folders"):
            names = getattr(self, name)
            is_list = isinstance(names, Sequence | Set) and not isinstance(names, str | bytes)
            if not is_list or not all(isinstance(item, str) for item in names):
                raise TypeError(f"{name} must be a list of names, got {names!r:.80}")
        if self.encoding is not None:
            if not isinstance(self.encoding, str):
                raise TypeError(f"encoding must be a name, got {self.encoding!r:.80}")
            try:
                "".encode(self.encoding)
            except LookupError as error:
                raise ValueError(
                    f"unknown encoding {self.encoding!r}; encodings are, for example, gb18030, "
                    "big5, latin-1, cp1252, shift_jis and utf-16"
                ) from error

    def check_size(self, path: Path, size: int) -> None:
        """Check that a file is not too large.

        Raises:
            ReadError: If the size in bytes exceeds ``max_bytes``.
        """
        if size > self.max_bytes:
            raise ReadError(
                f"{path} has {size:,} bytes, more than the {self.max_bytes:,} of "
                "ReadOptions(max_bytes=...)",
                "too large",
                skippable=True,
            )


MESSAGES_WITHOUT_TEXT = "messages without text"
"""The kind of note for email messages that consist only of headers."""

_SMALL = 500  # number of bytes; a smaller file may contain no text

WITHOUT_READER = "without a reader"
"""The kind of skipped files whose type is not supported."""

_NOUNS = ("link", "PDF", "document", "file", "EPUB", "spreadsheet")


def counted(kind: str, number: int) -> str:
    """Describe a number of files of one kind, in the singular or plural.

    Example:
        >>> counted("encrypted PDF", 2), counted("damaged", 2)
        ('2 encrypted PDFs', '2 damaged')
    """
    plural = "s" if number > 1 and kind.endswith(_NOUNS) else ""
    return f"{number:,} {kind}{plural}"


def first_of(items: Sequence[str], count: int) -> str:
    """Join the first few items into a text, followed by dots if there are more items."""
    if len(items) <= count:
        return ", ".join(items)
    return ", ".join([*items[:count], "..."])


@dataclass(slots=True)
class ReadReport:
    """A report on the files that were read by the last ``add`` or ``refresh``.

    Attributes:
        read: The number of files that were read.
        unchanged: The number of unchanged files, which were not read again.
        skipped: The errors of files that could not be read, keyed by path.
        notes: Content that was left out or changed, such as pictures, invalid bytes and pages
            without text. For each path, the kinds of content are listed with their number and the
            first position.
        note_kinds: The number of files for each kind of note, such as ``"pictures left out"``.
        encodings: The number of texts for each encoding except UTF-8.
        passed_over: The number of skipped files and folders for each reason: ``"hidden"``,
            ``"ignored"``, ``"installed packages"``, ``"links"``, ``"not regular files"`` or
            ``"unreadable"``.
        unsupported: The paths of files whose type is not supported.

    Example:
        >>> report = ReadReport(read=1204)
        >>> report.skipped["a.pdf"] = ReadError("a.pdf is encrypted", "encrypted PDF")
        >>> report.passed_over["hidden"] += 2
        >>> print(report)
        1,204 read, 1 skipped: 1 encrypted PDF; 2 hidden
    """

    read: int = 0
    unchanged: int = 0
    skipped: dict[str, ReadError] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    note_kinds: Counter[str] = field(default_factory=Counter)
    encodings: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    unsupported: list[str] = field(default_factory=list)

    def include(self, other: ReadReport) -> None:
        """Add the numbers and entries of another report to this report."""
        self.read += other.read
        self.unchanged += other.unchanged
        self.unsupported += other.unsupported
        for name in ("skipped", "notes", "note_kinds", "encodings", "passed_over"):
            getattr(self, name).update(getattr(other, name))

    def note(self, path: Path, documents: Sequence[Document]) -> None:
        """Record the encoding and the notes of a file that was read."""
        names = {str(document.metadata.get("encoding", "")) for document in documents}
        self.encodings.update(names - {""})
        for document in documents:
            if changes := document.metadata.get("read_notes"):
                self.notes[str(path)] = f"{path} was read with changes: {'; '.join(changes)}"
                self.note_kinds.update({str(change).partition(": ")[0] for change in changes})

    def __str__(self) -> str:
        counts = [f"{self.read:,} read"]
        if self.unchanged:
            counts.append(f"{self.unchanged:,} unchanged")
        kinds = Counter(error.kind for error in self.skipped.values())
        if self.unsupported:
            kinds[WITHOUT_READER] += len(self.unsupported)
        if kinds:
            reasons = ", ".join(counted(kind, number) for kind, number in kinds.most_common())
            counts.append(f"{sum(kinds.values()):,} skipped: {reasons}")
        parts = [", ".join(counts)]
        if self.encodings:
            parts.append(f"not in UTF-8: {_listed(self.encodings)}")
        if self.notes:
            parts.append(f"{len(self.notes):,} read with notes")
        if self.passed_over:
            parts.append(_listed(self.passed_over))
        return "; ".join(parts)


def _listed(counts: Counter[str]) -> str:
    """Return counts with their names as a text, largest first."""
    return ", ".join([f"{count:,} {name}" for name, count in counts.most_common()])


Records = list[list[Any]]
"""The documents in a file, as lists of text, metadata, id in the file, search text and layout."""


def records_of(read: str | Document | Iterable[Document]) -> Records:
    """Convert the return value of a reader to records."""
    if isinstance(read, str):
        return [[_without_surrogates(read), {}, "", None, None]]
    if isinstance(read, Document):
        return [_record(read, "")]
    return [_record(document, document.id) for document in read]


def _record(document: Document, record_id: str) -> list[Any]:
    search_text = document.search_text
    row = None if search_text is None else search_text.to_row()
    text = _without_surrogates(document.text)
    return [text, dict(document.metadata), record_id, row, document.layout]


def _without_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which cannot be stored as JSON."""
    return text.encode("utf-8", "replace").decode()


def documents_of(path: Path, file_id: str, records: Records) -> list[Document]:
    """Create the documents of a file, and add the attributes of the file to their metadata.

    The fields are ``file_name``, ``file_path``, ``file_type`` (a MIME type), ``file_size`` (in
    bytes), ``creation_date``, ``last_modified_date`` and ``last_accessed_date`` (``YYYY-MM-DD`` in
    UTC).

    Raises:
        ReadError: If the file does not exist.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error

    def day(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d")

    attributes = {
        "file_name": path.name,
        "file_path": str(path),
        "file_type": mimetypes.guess_type(path.name)[0] or path.suffix.lstrip(".") or "unknown",
        "file_size": stat.st_size,
        "creation_date": day(getattr(stat, "st_birthtime", stat.st_ctime)),
        "last_modified_date": day(stat.st_mtime),
        "last_accessed_date": day(stat.st_atime),
    }
    documents: list[Document] = []
    for text, metadata, record_id, row, layout in records:
        document = Document(
            text,
            {**attributes, **metadata},
            id=f"{file_id}#{record_id}" if record_id else file_id,
            search_text=None if row is None else SearchText.from_row(row),
            layout=layout,
        )
        documents.append(document)
    return documents


def file_id_of(document_id: str, file_path: str) -> str:
    """Return the id of the file from which a document was read.

    Args:
        document_id: The id of the document. If a file contains several documents, their ids consist
            of the file's id, a number sign and a further id.
        file_path: The value of ``file_path`` in the document's metadata, or an empty string if it
            was not read from a file.

    Example:
        >>> file_id_of("docs/teas.jsonl#7", "/home/docs/teas.jsonl")
        'docs/teas.jsonl'
        >>> file_id_of("docs/issue #7.md", "/home/docs/issue #7.md")
        'docs/issue #7.md'
    """
    path = f"/{Path(file_path).as_posix()}"
    end = len(document_id)
    while end > 0:
        if path.endswith(f"/{document_id[:end]}"):
            return document_id[:end]
        end = document_id.rfind("#", 0, end)
    return document_id


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is being read, with the options for reading it.

    Attributes:
        path: The path of the file.
        options: The options for reading files.
        ocr: A function that takes the PNG image of a page and returns its text. If None, OCR is not
            available.
        usual_encoding: The most common encoding of other files in the folder. It is preferred if
            the detection is uncertain.
        encodings: The encodings of the texts in the file except UTF-8, which are set by the
            decoder.
        guesses: The encodings that were detected from only a few bytes, which are set by the
            decoder.
        notes: Content that the reader left out or changed. For each kind of content, the number of
            parts and the position of the first part are recorded.
    """

    path: Path
    options: ReadOptions
    ocr: Callable[[bytes], str] | None = None
    usual_encoding: str = ""
    encodings: list[str] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, place: str = "", count: int = 1) -> None:
        """Record content of the file that the reader leaves out or changes.

        Args:
            kind: The kind of content in the plural, such as "pictures left out".
            place: The position of the first part.
            count: The number of parts.
        """
        before, first = self.notes.get(kind, (0, place))
        self.notes[kind] = (before + count, first)

    def records(self, read: str | Document | Iterable[Document]) -> Records:
        """Convert a reader's return value to records that contain the encoding and the notes."""
        records = records_of(read)
        if self.encodings:
            for record in records:
                record[1].setdefault("encoding", ", ".join(self.encodings))
        if self.notes and records:
            records[0][1]["read_notes"] = notes = []
            for kind, (count, place) in self.notes.items():
                note = f"{kind}: {count:,}"
                notes.append(f"{note} (first: {place})" if place else note)
        return records

    def check_text(self, records: Records) -> None:
        """Check that a file contains text, unless it is very small.

        Raises:
            ReadError: If the file has more than 500 bytes but contains no text.
        """
        has_text = any(record[0].strip() for record in records)
        if has_text or MESSAGES_WITHOUT_TEXT in self.notes:
            return
        size = self.path.stat().st_size
        if size > _SMALL:
            what = f"{self.path} has {size:,} bytes and no text"
            if self.notes:
                noted = [f"{kind}: {count}" for kind, (count, _) in self.notes.items()]
                what = f"{what} ({'; '.join(noted)})"
            raise ReadError(
                f"{what}: it may be damaged, or contain only pictures", "no text", skippable=True
            )

    def document(
        self,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        layout: Layout | None = None,
    ) -> Document:
        """Create a document with the content of the file.

        The id is set by the caller of the reader.
        """
        # If an id is given, the text does not have to be hashed.
        packed = None if layout is None else pack_layout(layout)
        return Document(text, metadata, id=self.path.name, layout=packed)

    def damaged(self, what: object) -> ReadError:
        """Create the error for a damaged file."""
        return ReadError(f"can't read {self.path}: {what}")

    def encrypted(self, what: str) -> ReadError:
        """Create the error for a file that is protected with a password."""
        return ReadError(
            f"{self.path} is encrypted: save it without a password, or leave it out",
            f"encrypted {what}",
            skippable=True,
        )
