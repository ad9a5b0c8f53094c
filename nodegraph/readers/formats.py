"""Which format a file has: by its content, and where that is plain text, by its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..document import Document
from ..errors import ReadError
from .book import read_epub
from .html import read_html
from .mail import read_mailbox, read_message
from .notebook import read_notebook
from .office import read_docx, read_pptx
from .open_document import read_open_document, read_rtf
from .pdf import read_pdf
from .sheets import read_csv, read_spreadsheet
from .source_file import SourceFile
from .text import is_text, read_json, read_json_lines, read_text


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Describe a format.

    Attributes:
        name: What it is called in messages.
        suffixes: How names of such files end.
        read: Reads one.
        isolated: Whether it is read in a process of its own: whose parser may crash or hang.
        binary: Whether such a file is no text, and known by its first bytes.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile], Document | Iterable[Document]]
    isolated: bool = True
    binary: bool = True


_CODE = (
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .go .rs .c .h .cc .cpp .cxx .hpp .hh .rb .cs .php "
    ".sh .bash .kt .kts .swift .scala .lua .r .pl .pm .sql .css .scss .vue .dart .ex .exs .hs .jl "
    ".m .mm .zig .proto .graphql .tf"
)

_TEXT = (
    ".txt .text .md .markdown .mdx .rst .adoc .asciidoc .tex .ltx .log .yaml .yml .toml .xml .ini "
    ".cfg .conf .properties .org .srt .vtt .po"
)

_NAMES = frozenset(
    """
    authors bsdmakefile building bugs changelog changes citation codeowners contributing
    contributors copying credits dockerfile gemfile gnumakefile history install jenkinsfile
    justfile license licence maintainers makefile manifest news notice procfile rakefile readme
    security thanks todo vagrantfile version
    """.split()
)
"""Names without a suffix that texts of projects have, in lower case."""

FORMATS = (
    FileFormat("text", tuple(_TEXT.split()), read_text, isolated=False, binary=False),
    FileFormat("program", tuple(_CODE.split()), read_text, isolated=False, binary=False),
    FileFormat("JSON", (".json", ".geojson"), read_json, isolated=False, binary=False),
    FileFormat("JSON lines", (".jsonl", ".ndjson"), read_json_lines, False, binary=False),
    FileFormat("table", (".csv", ".tsv"), read_csv, isolated=False, binary=False),
    FileFormat("notebook", (".ipynb",), read_notebook, isolated=False, binary=False),
    FileFormat("web page", (".html", ".htm", ".xhtml"), read_html, binary=False),
    FileFormat("e-mail", (".eml",), read_message, binary=False),
    FileFormat("mailbox", (".mbox",), read_mailbox, binary=False),
    FileFormat("rich text", (".rtf",), read_rtf),
    FileFormat("PDF", (".pdf",), read_pdf),
    FileFormat("Word document", (".docx", ".docm", ".dotx"), read_docx),
    FileFormat("slides", (".pptx", ".pptm", ".ppsx"), read_pptx),
    FileFormat("spreadsheet", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), read_spreadsheet),
    FileFormat("EPUB", (".epub",), read_epub),
    FileFormat("OpenDocument file", (".odt", ".ott", ".odp"), read_open_document),
)


def has_lines(file_name: str) -> bool:
    """Tell whether a file's text is as it is in the file, so that its lines can be named.

    Example:
        >>> has_lines("tea.md"), has_lines("tea.pdf")
        (True, False)
    """
    file_format = format_by_name(file_name)
    return file_format is None or file_format.name in ("text", "program", "JSON lines")


BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}

SUFFIXES = tuple(sorted(BY_SUFFIX))
"""The suffixes of the formats that can be read."""

_BY_NAME = {format.name: format for format in FORMATS}


def format_by_name(name: str | Path) -> FileFormat | None:
    """Return the format that a file has by its name: its suffix, or ``README``, ``Makefile``.

    Example:
        >>> [format.name for format in map(format_by_name, ("a.PDF", "docs/Makefile")) if format]
        ['PDF', 'text']
        >>> format_by_name("a.out"), format_by_name("core")
        (None, None)
    """
    last = os.path.basename(name).lower()
    stem, dot, end = last.rpartition(".")
    suffix = dot + end if stem.strip(".") else ""  # ".git" has none
    if not suffix and last in _NAMES:
        return _BY_NAME["text"]
    return BY_SUFFIX.get(suffix)


_NOT_DOCUMENTS = (
    (b"\x1f\x8b", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\x00", "archive"),
    (b"7z\xbc\xaf'\x1c", "archive"),
    (b"Rar!", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),
    (b"\x89PNG", "picture"),
    (b"\xff\xd8\xff", "picture"),
    (b"GIF8", "picture"),
    (b"\x7fELF", "program file"),
    (b"MZ", "program file"),
    (b"SQLite format 3\x00", "database"),
)

_HTML = re.compile(rb"\s*(?:<!--.{0,400}?-->\s*)?(?:<!doctype\s+html|<html[\s>])", re.I | re.S)


def format_of(path: Path) -> FileFormat | None:
    """Return the format that a file has, None where nothing is known of it.

    What a file says by its first bytes counts more than its name; a text has the format of its
    name.

    Raises:
        ReadError: If it is no document (an archive, a picture), or not of the format that its
            name says.
        OSError: If it can't be opened.
    """
    by_name = format_by_name(path)
    with path.open("rb") as file:
        head = file.read(2048)
    by_content = _by_content(path, head)
    if by_content is not None:
        return _BY_NAME[by_content]
    if by_name is None:
        return None
    kind = next((kind for mark, kind in _NOT_DOCUMENTS if head.startswith(mark)), None)
    if kind is not None and (by_name.binary or b"\0" in head):
        raise _no_document(path, kind)
    if not by_name.binary:
        return by_name
    if head.strip() and is_text(path):
        return _BY_NAME["text"]
    raise ReadError(
        f"{path} is no {by_name.name}, as its name says: it begins with {head[:8]!r}"
        if head
        else f"{path} is empty",
        "damaged" if head else "empty",
        skippable=not head,
    )


def _no_document(path: Path, kind: str) -> ReadError:
    return ReadError(
        f"{path} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}, which is not opened",
        kind,
        skippable=True,
    )


def _by_content(path: Path, head: bytes) -> str | None:
    if b"%PDF-" in head[:1024]:
        return "PDF"
    if head.startswith(b"{\\rtf"):
        return "rich text"
    if head.startswith(b"PK\x03\x04"):
        return _in_zip(path)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _in_compound_file(path)
    if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) and path.suffix.lower() not in (
        ".md",
        ".xml",
    ):
        return "web page"
    return None


def _in_zip(path: Path) -> str:
    """Return what a packed file is.

    Raises:
        ReadError: If it is a mere archive, or damaged.
    """
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            kind = archive.read("mimetype")[:80] if "mimetype" in names else b""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        known = BY_SUFFIX.get(path.suffix.lower())
        if known is None or not known.binary:
            raise _no_document(path, "archive") from error
        raise ReadError(f"can't read {path}: it is no whole {known.name}: {error}") from error
    if kind.startswith(b"application/epub"):
        return "EPUB"
    if kind.startswith(b"application/vnd.oasis.opendocument."):
        return "spreadsheet" if b"spreadsheet" in kind else "OpenDocument file"
    for folder, name in (("word/", "Word document"), ("ppt/", "slides"), ("xl/", "spreadsheet")):
        if any(part.startswith(folder) for part in names):
            return name
    raise _no_document(path, "archive")


def _in_compound_file(path: Path) -> str:
    """Return what a file of old Office formats is.

    Raises:
        ReadError: If it is encrypted, or not a spreadsheet: nothing reads others.
    """
    with path.open("rb") as file:
        data = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        data += file.read()
    if "EncryptedPackage".encode("utf-16-le") in data:
        known = BY_SUFFIX.get(path.suffix.lower())
        raise ReadError(
            f"{path} is encrypted: save it without a password, or leave it out",
            f"encrypted {known.name if known else 'Office file'}",
            skippable=True,
        )
    if any(name.encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return "spreadsheet"
    raise ReadError(
        f"{path} has a format of old Office programs, for which there is no reader: save it as "
        f".docx or .pptx, or register one: register_reader({'*' + path.suffix!r}, SomeLoader)",
        f"old {path.suffix.lower() or 'Office'} file",
        skippable=True,
    )
