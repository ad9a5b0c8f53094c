"""Which format a file has: by its content, and where that is plain text, by its name.

Plain text, JSON and CSV are known here. All other formats are registered by entry points of the
group ``nodekin.readers``: those of this package by `adapters/files/`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..document import Document
from ..errors import ReadError
from ..plugins import READERS, load_plugin, plugins
from .file_records import Records, SourceFile, records_of
from .text import is_text, read_csv, read_json, read_json_lines, read_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function, class or method of a program: its full name, its kind and its span."""

    name: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Describe a format.

    Attributes:
        name: What it is called in messages.
        suffixes: How names of such files end.
        read: Reads one.
        isolated: Whether it is read in another process, because its parser may crash or hang.
        binary: Whether such a file is no text, and known by its first bytes.
        has_lines: Whether its text is as it is in the file, so that lines can be named.
        recognizes: Takes a path and its first bytes, and returns whether the file has this
            format, whatever its name. It may raise a ``ReadError``. None if only names tell.
        symbols: Takes a text and its file name, and returns the symbols of a program in order,
            outer ones before inner ones. It may raise an ``ImportError``. None without symbols.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile], str | Document | Iterable[Document]]
    isolated: bool = True
    binary: bool = True
    has_lines: bool = False
    recognizes: Callable[[Path, bytes], bool] | None = None
    symbols: Callable[[str, str], Sequence[Symbol]] | None = None

    def records(self, source: SourceFile) -> Records:
        """Read a file."""
        return records_of(self.read(source))


INSTALL_FILES = 'pip install "nodekin[files]"'


def _no_symbols(text: str, file_name: str) -> Sequence[Symbol]:
    raise ImportError(
        f"nothing here finds the symbols of programs ({file_name}); get it with: {INSTALL_FILES}"
    )


_CODE = (
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .go .rs .c .h .cc .cpp .cxx .hpp .hh .rb .cs .php "
    ".sh .bash .kt .kts .swift .scala .lua .r .pl .pm .sql .css .scss .vue .dart .ex .exs .hs .jl "
    ".m .mm .zig .proto .graphql .tf"
)

_TEXT = (
    ".txt .text .md .markdown .mdx .rst .adoc .asciidoc .tex .ltx .log .yaml .yml .toml .xml .ini "
    ".cfg .conf .properties .org .srt .vtt .po"
)

_TEXT_NAMES = frozenset(
    """
    authors bsdmakefile building bugs changelog changes citation codeowners contributing
    contributors copying credits dockerfile gemfile gnumakefile history install jenkinsfile
    justfile license licence maintainers makefile manifest news notice procfile rakefile readme
    security thanks todo vagrantfile version
    """.split()
)
"""Names without a suffix that texts of projects have, in lower case."""

TEXT = FileFormat("text", tuple(_TEXT.split()), read_text, False, False, has_lines=True)

PROGRAM = FileFormat(
    "program", tuple(_CODE.split()), read_text, False, False, has_lines=True, symbols=_no_symbols
)

_FORMATS = (
    TEXT,
    PROGRAM,
    FileFormat("JSON", (".json", ".geojson"), read_json, False, False),
    FileFormat("JSON lines", (".jsonl", ".ndjson"), read_json_lines, False, False, has_lines=True),
    FileFormat("table", (".csv", ".tsv"), read_csv, False, False),
)


@cache
def _plugins() -> tuple[Sequence[FileFormat], Mapping[str, object]]:
    """Return the formats that packages register, and their readers by suffix."""
    formats: list[FileFormat] = []
    readers: dict[str, object] = {}
    for name, entry in plugins(READERS).items():
        try:
            value = load_plugin(READERS, name)
        except Exception as error:  # whatever its module raises
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if not missing or not f"{entry.module}.".startswith(f"{missing}."):
                logger.warning(
                    "can't load the reader %r (%s), so its files are not read: %s: %s",
                    *(name, entry.value, type(error).__name__, error),
                )
            continue
        if isinstance(value, FileFormat):
            formats.append(value)
        elif isinstance(value, tuple | list):
            formats += value
        else:
            readers[f".{name.lower().lstrip('.')}"] = value
    return formats, readers


def plugin_readers() -> Mapping[str, object]:
    """Return the readers that packages register, by suffix."""
    return _plugins()[1]


@cache
def _by_suffix() -> Mapping[str, FileFormat]:
    formats = (*_FORMATS, *_plugins()[0])
    return {suffix: format for format in formats for suffix in format.suffixes}


def format_suffixes() -> list[str]:
    """Return the suffixes of the formats that can be read, sorted."""
    return sorted(_by_suffix())


def how_to_read_more() -> str:
    """Return what to install for more formats, or an empty text if it is installed."""
    return "" if _plugins()[0] else f"get the readers of PDF, Office and others: {INSTALL_FILES}; "


def format_by_name(name: str | Path) -> FileFormat | None:
    """Return the format that a file has by its name: its suffix, or ``README``, ``Makefile``.

    Example:
        >>> [format.name for format in map(format_by_name, ("a.TXT", "docs/Makefile")) if format]
        ['text', 'text']
        >>> format_by_name("a.out"), format_by_name("core")
        (None, None)
    """
    last = os.path.basename(name).lower()
    stem, dot, end = last.rpartition(".")
    suffix = dot + end if stem.strip(".") else ""  # ".git" has none
    return TEXT if not suffix and last in _TEXT_NAMES else _by_suffix().get(suffix)


def has_lines(file_name: str) -> bool:
    """Return whether a file's text is as it is in the file, so that its lines can be named.

    Example:
        >>> has_lines("tea.md"), has_lines("tea.csv")
        (True, False)
    """
    file_format = format_by_name(file_name)
    return file_format is None or file_format.has_lines


def symbol_finder(file_name: str) -> Callable[[str, str], Sequence[Symbol]] | None:
    """Return the function that finds symbols in files of this name, None without one."""
    file_format = format_by_name(file_name)
    return None if file_format is None else file_format.symbols


_NOT_DOCUMENTS = (
    (b"PK\x03\x04", "archive"),
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


def format_of(path: Path) -> FileFormat | None:
    """Return the format that a file has, None if it is unknown.

    The first bytes of a file count more than its name. A text has the format of its name.

    Raises:
        ReadError: If it is no document (an archive, a picture), or not of the format that its
            name says.
        OSError: If it can't be opened.
    """
    by_name = format_by_name(path)
    with path.open("rb") as file:
        head = file.read(2048)
    for file_format in _plugins()[0]:
        if file_format.recognizes is not None and file_format.recognizes(path, head):
            return file_format
    if by_name is None:
        return None
    kind = next((kind for magic, kind in _NOT_DOCUMENTS if head.startswith(magic)), None)
    if kind is not None and (by_name.binary or b"\0" in head):
        raise ReadError(
            f"{path} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}, which is not opened",
            kind,
            skippable=True,
        )
    if not by_name.binary:
        return by_name
    if head.strip() and is_text(path):
        return TEXT
    raise ReadError(
        f"{path} is no {by_name.name}, as its name says: it begins with {head[:8]!r}"
        if head
        else f"{path} is empty",
        "damaged" if head else "empty",
        skippable=not head,
    )
