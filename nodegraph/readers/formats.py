"""Definitions of file formats, and the registry of file readers.

If a reader is registered for the name of a file, it is used instead of the built-in format. Binary
formats are recognized by the content of a file, and text formats by its name. This module defines
the formats plain text, JSON and CSV. Other formats, such as those in `adapters/files/`, are entry
points in the group ``nodekin.readers``.
"""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError
from ..foreign_documents import as_document
from ..lazy_names import READERS, plugins
from ..splitters.headings import PROGRAMS
from .decoding import is_text
from .source_files import Records, SourceFile
from .text import read_csv, read_json, read_json_lines, read_text

logger = logging.getLogger(__name__)

_FILE_FIELDS = frozenset(
    "source file_path file_name file_type file_size file_directory filename total_pages "
    "creation_date last_modified_date last_accessed_date last_modified".split()
)
"""Metadata fields that loaders set and that are replaced by the attributes of the file."""


Reader = Callable[[Path], "Iterable[Document] | Document | str"]
"""A function that takes a path and returns a text, a document, or documents with unique ids."""


def as_reader(reader: object) -> Reader:
    """Convert any supported reader to a function. It can be pickled if the reader can be pickled.

    Raises:
        TypeError: If the reader is not supported.
    """
    if not callable(reader) and not hasattr(reader, "load_data"):
        raise TypeError(
            "reader must be a function from a path to a text, documents or a loader, a loader "
            f"class of LangChain, or a reader of LlamaIndex, got {reader!r:.80}"
        )
    return partial(_read, reader)


_instance: Callable[[Any], Any] = cache(lambda reader: reader())


def _read(reader: Any, path: Path) -> Any:
    if hasattr(reader, "load_data"):  # a LlamaIndex reader
        if inspect.isclass(reader):
            reader = _instance(reader)
        return _documents(reader.load_data(path))
    # A LangChain class takes a string.
    read = reader(str(path)) if hasattr(reader, "load") else reader(path)
    if hasattr(read, "load"):  # a LangChain loader
        return _documents(read.load())
    is_list = isinstance(read, list | tuple) and len(read) > 0
    if is_list and not isinstance(read[0], Document):
        return _documents(read)
    return read


def _documents(read: Iterable[Any]) -> Document | list[Document]:
    """Return the documents of a loader. If there are several, they are numbered."""
    documents: list[Document] = []
    for number, item in enumerate(read, start=1):
        document = as_document(item)
        metadata = {k: v for k, v in document.metadata.items() if k not in _FILE_FIELDS}
        documents.append(replace(document, metadata=metadata, id=str(number)))
    if len(documents) == 1:
        return documents[0]
    return documents


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function, class or method in source code, with its qualified name, kind and offsets."""

    name: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format and the function that reads files in this format.

    Attributes:
        name: The name of the format in messages.
        suffixes: The suffixes of file names in this format.
        read: A function that reads a file.
        isolated: Whether files are read in a separate process, because the parser may crash or
            hang.
        binary: Whether files are binary and are recognized by their first bytes.
        has_lines: Whether the text of the document equals the text of the file, so that line
            numbers are valid.
        recognizes: A function that takes a path and the first bytes, and returns whether the file
            has this format, regardless of its name. It may raise a ``ReadError``. If None, the
            format is recognized by the name of the file.
        symbols: A function that takes the text of a program and its file name, and returns the
            functions and classes in order, outer symbols first. It may raise an ``ImportError``. If
            None, the format has no symbols.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile], str | Document | Iterable[Document]]
    isolated: bool = True
    binary: bool = True
    has_lines: bool = False
    recognizes: Callable[[Path, bytes], bool] | None = None
    symbols: Callable[[str, str], Sequence[Symbol]] | None = None

    def pickled(self) -> bytes | None:
        """Return empty bytes if files are read in a separate process, or else None.

        This method is the counterpart of ``RegisteredReader.pickled``. A built-in reader does not
        have to be pickled, since the process can import it.
        """
        return b"" if self.isolated else None

    def records(self, source: SourceFile) -> Records:
        """Read a file and return its documents.

        Raises:
            ReadError: If the file is damaged, or if it has more than 500 bytes but contains no
                text.
        """
        try:
            records = source.records(self.read(source))
            source.check_text(records)
            return records
        except (ReadError, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.filename:
                raise  # This is an error of the file system, not of the parser.
            reason = " ".join(str(error).split())[:300]
            what = f"it is a damaged {self.name} ({type(error).__name__}: {reason})"
            raise source.damaged(what) from error


INSTALL_FILES = 'pip install "nodekin[files]"'


def _no_symbols(text: str, file_name: str) -> Sequence[Symbol]:
    raise ImportError(
        f"the symbols of programs ({file_name}) require the file readers: {INSTALL_FILES}"
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
"""Names of text files that usually have no suffix, in lowercase."""

TEXT = FileFormat("text", tuple(_TEXT.split()), read_text, False, False, has_lines=True)

PROGRAM = FileFormat(
    "program", tuple(PROGRAMS), read_text, False, False, has_lines=True, symbols=_no_symbols
)

_FORMATS = (
    TEXT,
    PROGRAM,
    FileFormat("JSON", (".json", ".geojson"), read_json, False, False),
    FileFormat("JSON lines", (".jsonl", ".ndjson"), read_json_lines, False, False, has_lines=True),
    FileFormat("table", (".csv", ".tsv"), read_csv, False, False),
)


@cache
def _plugins() -> tuple[Sequence[FileFormat], Sequence[RegisteredReader]]:
    """Return the formats and readers that are provided by installed packages."""
    formats: list[FileFormat] = []
    readers: list[RegisteredReader] = []
    for name, entry in plugins(READERS).items():
        try:
            value = entry.load()
        except Exception as error:  # an error in the module of the reader
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if not missing or not f"{entry.module}.".startswith(f"{missing}."):
                logger.warning(
                    "can't load the reader %r (%s), so its files are not read: %s: %s",
                    name,
                    entry.value,
                    type(error).__name__,
                    error,
                )
            continue
        if isinstance(value, FileFormat):
            formats.append(value)
        elif isinstance(value, tuple | list):
            formats += value
        else:
            suffix = name.lower().lstrip(".")
            readers.append(RegisteredReader(f"*.{suffix}", as_reader(value)))
    return formats, readers


@cache
def _by_suffix() -> Mapping[str, FileFormat]:
    formats: dict[str, FileFormat] = {}
    for file_format in (*_FORMATS, *_plugins()[0]):
        formats |= dict.fromkeys(file_format.suffixes, file_format)
    return formats


def how_to_read_more() -> str:
    """Return advice on how to install more formats, or an empty string if all are installed."""
    formats, _ = _plugins()
    if formats:
        return ""
    return f"get the readers of PDF, Office and others: {INSTALL_FILES}; "


def format_by_name(name: str | Path) -> FileFormat | None:
    """Return the format for the name of a file, or None if it is unknown.

    Example:
        >>> [format.name for format in map(format_by_name, ("a.TXT", "docs/Makefile")) if format]
        ['text', 'text']
        >>> format_by_name("a.out"), format_by_name("core")
        (None, None)
    """
    last = os.path.basename(name).lower()
    stem, dot, end = last.rpartition(".")
    if stem.strip("."):  # ".git" has no suffix
        return _by_suffix().get(dot + end)
    if last in _TEXT_NAMES:
        return TEXT
    return None


def has_lines(file_name: str) -> bool:
    """Return whether documents in this format contain the unchanged text of the file.

    Example:
        >>> has_lines("tea.md"), has_lines("tea.csv")
        (True, False)
    """
    suffix = os.path.splitext(file_name)[1].lower()
    # This does not import any packages.
    built_in = (entry for entry in _FORMATS if suffix in entry.suffixes)
    file_format = next(built_in, None) or format_by_name(file_name)
    return file_format is None or file_format.has_lines


def symbol_finder(file_name: str) -> Callable[[str, str], Sequence[Symbol]] | None:
    """Return the function that finds the symbols in files with this name, or None."""
    file_format = format_by_name(file_name)
    if file_format is None:
        return None
    return file_format.symbols


_NOT_TO_READ = frozenset(
    """
    .svg .map .lock .env .pem .key .ppk .p12 .pfx .crt .cer .asc .gpg .kdbx .tfvars .tfstate
    credentials netrc htpasswd id_rsa id_dsa id_ecdsa id_ed25519
    """.split()
)
"""The suffixes and names of key files, and of text files that are not written for people."""

_KEY = re.compile(rb"^-----BEGIN |PRIVATE KEY-----|PuTTY-User-Key-File|AGE-SECRET-KEY-", re.M)

_MAX_UNKNOWN = 2_000_000  # number of bytes to check in a file with an unsupported suffix


def _reads_as_text(path: Path) -> bool:
    """Return whether a file with an unknown suffix contains UTF-8 text and is not a key file."""
    names = {path.suffix.lower(), path.name.lower()}
    # The file belongs to a reader that cannot be loaded.
    is_plugins = path.suffix.lower()[1:] in plugins(READERS)
    if is_plugins or names & _NOT_TO_READ or path.stat().st_size > _MAX_UNKNOWN:
        return False
    data = path.read_bytes()
    if _KEY.search(data) or data.startswith((b"%PDF-", b"%!PS")):
        return False
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    if not text.strip():
        return False
    return all(c >= " " or c in "\t\n\r\f\x1b" for c in text)


_HEAD = 2048  # number of bytes from which the format is recognized


def format_of(path: Path) -> FileFormat | None:
    """Determine the format of a file. Return None if it is unknown.

    Binary formats are recognized by the first bytes of the file. For text files, the name
    determines the format. UTF-8 text in a file with an unknown name is treated as plain text.

    Raises:
        ReadError: If the file is empty, or if its content does not match its suffix.
        OSError: If the file cannot be opened.
    """
    by_name = format_by_name(path)
    with path.open("rb") as file:
        head = file.read(_HEAD)
    for file_format in _plugins()[0]:
        if file_format.recognizes is not None and file_format.recognizes(path, head):
            return file_format
    if by_name is None:
        if _reads_as_text(path):
            return TEXT
        return None
    if len(head) < _HEAD and not head.strip():
        if by_name.symbols:  # __init__.py may be empty.
            return by_name
        raise ReadError(f"{path} is empty", "empty", skippable=True)
    if not by_name.binary:
        return by_name
    if is_text(head):
        return TEXT
    raise ReadError(
        f"{path} is damaged or not a file of its type ({by_name.name}): it begins with {head[:8]!r}"
    )


@dataclass(slots=True)
class RegisteredReader:
    """A file reader that was registered by the program or by an installed package.

    Attributes:
        pattern: The pattern for the names of files.
        read: A function that reads a file.
        isolated: Whether the reader runs in a separate process. If None, it does so if possible.
    """

    pattern: str
    read: Reader
    isolated: bool | None = None

    def records(self, source: SourceFile) -> Records:
        """Read a file and return its documents."""
        return source.records(self.read(source.path))

    def pickled(self) -> bytes | None:
        """Pickle the reader for a separate process. Return None if it runs in this process.

        Raises:
            TypeError: If the reader cannot be pickled although ``isolated`` is True.
        """
        if self.isolated is False:
            return None
        try:
            data = pickle.dumps(self.read)
        except Exception as error:  # The methods of the reader may raise any error.
            reason = f"{type(error).__name__}: {error}"
        else:
            if b"__main__" not in data:
                return data
            reason = "it is part of the main program"
        if self.isolated:
            raise TypeError(
                f"the reader of {self.pattern!r} cannot run in another process: {reason}; put "
                "its function or class into a module, or register it with isolated=False"
            )
        self.isolated = False  # The warning is logged only once.
        logger.warning(
            "the reader of %r runs in this process, without limits of time and memory, because it "
            "can't be sent to another process (%s). Put its function or class into a module, or "
            "register it with isolated=False",
            self.pattern,
            reason[:200],
        )
        return None


_READERS: dict[str, RegisteredReader] = {}


def register_reader(pattern: str, reader: object, *, isolated: bool | None = None) -> None:
    """Register a reader for files whose names match a pattern.

    Other readers for the same files are replaced.

    If several patterns match, the reader that was registered last is used. Errors in the reader are
    converted to ``ReadError`` with the path of the file. A reader that can be pickled, such as a
    function defined in a module, runs in a separate process with the limits set in ``ReadOptions``.
    Any other reader (for example a lambda, or an object that is defined in the main program or
    contains a lock) runs in this process without limits, and a warning is logged once.

    Args:
        pattern: A suffix, a wildcard pattern or a file name, such as ``".msg"`` or
            ``"mail-*.txt"``.
        reader: A function that takes a path and returns a text or documents, a LangChain loader
            (the class, or a function that returns a loader), or a LlamaIndex reader (the class or
            an instance).
        isolated: Whether the reader runs in a separate process. If True, an error is raised if this
            is impossible. If False, it runs in this process, for example because it keeps state. If
            None, it runs in a separate process if possible.

    Raises:
        ValueError: If the pattern contains neither a dot nor a wildcard.
        TypeError: If the reader is not supported.

    Example:
        >>> register_reader(".lower", lambda path: path.read_text(encoding="utf-8").lower())
    """
    if not isinstance(pattern, str) or not any(c in pattern for c in "*?[."):
        raise ValueError(f"suffix must begin with a dot, like '.txt', got {pattern!r}")
    name = pattern.lower()
    if name.startswith("."):
        name = f"*{name}"
    _READERS.pop(name, None)  # The reader that was registered last comes first.
    _READERS[name] = RegisteredReader(name, as_reader(reader), isolated)


def registered_reader(path: str | Path) -> RegisteredReader | None:
    """Return the reader for a file name, or None if no registered pattern matches.

    Readers that were registered last take precedence, and readers of installed packages come last.
    """
    name = os.path.basename(path).lower()
    readers = (*reversed(_READERS.values()), *_plugins()[1])
    return next((reader for reader in readers if fnmatchcase(name, reader.pattern)), None)


def supported_suffixes() -> list[str]:
    """Return the sorted suffixes of all supported formats and registered readers."""
    patterns = (reader.pattern for reader in (*_READERS.values(), *_plugins()[1]))
    return sorted({*_by_suffix(), *(each[1:] for each in patterns if each.startswith("*."))})
