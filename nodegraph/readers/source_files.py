"""A file to be read: by which options, what it holds, and the report of what was read."""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError, check_integer
from ..locations import Layout
from ..search_text import SearchText

_EDITION = 3  # of the readers; another one reads again what an interrupted run has read

Ocr = Callable[[Any], str]
"""Takes the image of a page (``PIL.Image.Image``), returns its text."""

INDEX_FOLDER = ".nodekin"  # where the command line keeps an index; never read

INSTALLED = ("node_modules", "bower_components", "site-packages", "__pycache__")
"""Folders of packages that were installed, and of what is compiled."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files and folders are read.

    Args:
        strict: Whether a file that is passed over otherwise (encrypted, too large, without a
            reader, of which parts can't be read) is an error.
        encoding: What text files are that are not UTF-8, such as ``"gb18030"``. None to detect it.
        ocr: Reads the pages of a PDF that have no text, or one that is no text: a function from
            an image (``PIL.Image.Image``) to its text, such as ``pytesseract.image_to_string``.
            It is called in this process, from several threads.
        ignore_files: Names of files with patterns of what is passed over, in the manner of git.
        skip_folders: Names of folders that are passed over, wherever they are below the folder
            that is read: packages that were installed there.
        hidden: Whether files and folders are read whose names begin with a dot.
        links: Whether symbolic links are followed, to folders and out of the folder, too.
        max_bytes: Larger files are passed over.
        max_unpacked_bytes: How large the parts of a file may be that is packed (DOCX, EPUB, ...).
        seconds: How much processor time a parser may take for one file. In any case it ends after
            twelve times as long, as on Windows.
        memory_bytes: How much memory a parser may take (not on Windows). None for 512 MB, and less
            where all parsers together would take more than half of the machine's.
        workers: How many files are parsed at once, each in its own process. None for as many as
            there are cores.

    Raises:
        ValueError: If a number is below 1, or there is no such encoding.
        TypeError: If a number has another type.
    """

    strict: bool = False
    encoding: str | None = None
    ocr: Ocr | None = None
    ignore_files: tuple[str, ...] = (".gitignore", ".nodekinignore")
    skip_folders: tuple[str, ...] = INSTALLED
    hidden: bool = False
    links: bool = False
    max_bytes: int = 200_000_000
    max_unpacked_bytes: int = 500_000_000
    seconds: float = 10
    memory_bytes: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_unpacked_bytes", "memory_bytes", "workers"):
            if (number := getattr(self, name)) is not None:
                check_integer(number, name, 1)
        if not self.seconds > 0:
            raise ValueError(f"seconds must be more than 0, not {self.seconds!r}")
        if self.encoding is not None:
            check_encoding(self.encoding)

    @property
    def signature(self) -> str:
        """What the content of a file depends on besides the file."""
        return f"{_EDITION} {self.encoding} {self.ocr is not None}"


def check_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises:
        ValueError: If there is none of that name.
    """
    try:
        "".encode(name)
    except LookupError as error:
        raise ValueError(
            f"no encoding {name!r}; for Chinese there is gb18030 and big5, for others such as "
            "latin-1, cp1252, shift_jis, utf-16"
        ) from error
    return name


@dataclass(slots=True)
class ReadReport:
    """What the last reading of files did.

    Attributes:
        read: How many files were read.
        unchanged: How many were as they were, and not read again.
        skipped: Why files could not be read, by their paths.
        notes: Notes on files that were read, by path, such as pages without a text.
        encodings: How many texts are in which encoding, those in UTF-8 left out.
        passed_over: How many files and folders were passed over, by rule:
            ``"hidden"``, ``"ignored"``, ``"installed packages"``, ``"links"``.
        unsupported: Paths of files without a reader.

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
    encodings: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    unsupported: list[str] = field(default_factory=list)

    @property
    def is_remarkable(self) -> bool:
        """Whether there is more to report than how many files were read."""
        seen = (self.skipped, self.notes, self.encodings, self.passed_over, self.unsupported)
        return any(map(bool, seen))

    def include(self, other: ReadReport) -> None:
        """Add what another reading did."""
        self.read += other.read
        self.unchanged += other.unchanged
        self.skipped.update(other.skipped)
        self.notes.update(other.notes)
        self.encodings += other.encodings
        self.passed_over += other.passed_over
        self.unsupported += other.unsupported

    def note(self, path: Path, documents: Sequence[Document]) -> None:
        """Note which pages of a file that was read have no text, and which encoding it is in."""
        names = {str(document.metadata.get("encoding", "")) for document in documents}
        self.encodings.update(names - {""})
        for document in documents:
            if pages := document.metadata.get("unread_pages"):
                self.notes[str(path)] = (
                    f"{path} was read without {_pages(pages)} of {document.metadata['page_count']},"
                    " where no text can be read: give ReadOptions(ocr=...)"
                )

    def __str__(self) -> str:
        counts = [f"{self.read:,} read"]
        if self.unchanged:
            counts.append(f"{self.unchanged:,} unchanged")
        kinds = Counter(error.kind for error in self.skipped.values())
        if self.unsupported:
            kinds["without a reader"] += len(self.unsupported)
        if kinds:
            reasons = ", ".join(f"{n:,} {_plural(kind, n)}" for kind, n in kinds.most_common())
            counts.append(f"{sum(kinds.values()):,} skipped: {reasons}")
        text = ", ".join(counts)
        if self.encodings:
            names = ", ".join(f"{n:,} {name}" for name, n in self.encodings.most_common())
            text += f"; not in UTF-8: {names}"
        if self.notes:
            text += f"; {len(self.notes):,} read in part"
        passed = ", ".join(f"{count:,} {rule}" for rule, count in self.passed_over.most_common())
        return f"{text}; {passed}" if passed else text


def _pages(pages: Sequence[int]) -> str:
    """Name pages.

    Example:
        >>> _pages([3]), _pages([1, 2, 3, 7])
        ('page 3', 'pages 1-3, 7')
    """
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    names = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"page{'s' if len(pages) > 1 else ''} {', '.join(names)}"


_NOUNS = ("PDF", "document", "file", "archive", "picture", "EPUB", "spreadsheet", "database")


def _plural(kind: str, count: int) -> str:
    return f"{kind}s" if count != 1 and kind.endswith(_NOUNS) else kind


Records = list[list[Any]]
"""What a file holds, of each document: text, metadata, id in the file, and where it has them the
row of its search text and its layout. ``codec`` writes it."""


def records_of(read: str | Document | Iterable[Document]) -> Records:
    """Return what a reader returned as records."""
    if isinstance(read, str):
        return [[_encodable(read), {}, "", None, None]]
    if isinstance(read, Document):
        return [_record(read, "")]
    return [_record(document, document.id) for document in read]


def _record(document: Document, record_id: str) -> list[Any]:
    search_text = document.search_text
    row = None if search_text is None else search_text.to_row()
    text, metadata = _encodable(document.text), dict(document.metadata)
    return [text, metadata, record_id, row, document.layout]


def _encodable(text: str) -> str:
    """Return a text without half characters, for which JSON has no place."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def documents_of(path: Path, file_id: str, records: Records) -> list[Document]:
    """Return what a file holds as documents, with the file's attributes in their metadata.

    ``file_name``, ``file_path``, ``file_type`` (a MIME type), ``file_size`` (bytes),
    ``creation_date``, ``last_modified_date``, ``last_accessed_date`` (``YYYY-MM-DD``, UTC).

    Raises:
        ReadError: If the file is gone.
    """
    try:
        attributes = _file_attributes(path)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
    return [
        Document(
            text,
            {**attributes, **metadata},
            id=f"{file_id}#{record_id}" if record_id else file_id,
            search_text=None if row is None else SearchText.from_row(row),
            layout=layout,
        )
        for text, metadata, record_id, row, layout in records
    ]


def _file_attributes(path: Path) -> dict[str, Any]:
    stat = path.stat()

    def day(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d")

    return {
        "file_name": path.name,
        "file_path": str(path),
        "file_type": mimetypes.guess_type(path.name)[0] or path.suffix.lstrip(".") or "unknown",
        "file_size": stat.st_size,
        "creation_date": day(getattr(stat, "st_birthtime", stat.st_ctime)),
        "last_modified_date": day(stat.st_mtime),
        "last_accessed_date": day(stat.st_atime),
    }


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Name a file to be read, and how.

    Attributes:
        path: The file.
        options: How files are read.
        ocr: Reads the image of a page, which it takes as the bytes of a PNG. None without one.
    """

    path: Path
    options: ReadOptions
    ocr: Callable[[bytes], str] | None = None

    def document(
        self,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        layout: Layout | None = None,
    ) -> Document:
        """Return what the file holds as one document, whose id the caller of the reader makes."""
        # With an id, as the digest of a text takes a while.
        packed = None if layout is None else layout.to_bytes()
        return Document(text, metadata, id=self.path.name, layout=packed)

    def damaged(self, what: object) -> ReadError:
        """Return the error of a file that is not what it seems to be."""
        return ReadError(f"can't read {self.path}: {what}")

    def encrypted(self, what: str) -> ReadError:
        """Return the error of a file that takes a password."""
        return ReadError(
            f"{self.path} is encrypted: save it without a password, or leave it out",
            f"encrypted {what}",
            skippable=True,
        )
