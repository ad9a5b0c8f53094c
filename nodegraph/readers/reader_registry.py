"""Which readers users have registered, for which names of files."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, overload

from ..document import Document
from .file_records import Records, SourceFile, records_of
from .foreign_loaders import as_reader
from .formats import FileFormat, format_by_name, format_of, format_suffixes, plugin_readers

logger = logging.getLogger(__name__)

Reader = Callable[[Path], "Iterable[Document] | Document | str"]
"""Takes a path; returns the file's text, a document, or several with ids unique in it."""


@dataclass(slots=True)
class RegisteredReader:
    """A reader that the program or a package has registered, and where it runs.

    Attributes:
        pattern: Which names of files it is for.
        reader: What was registered.
        read: Reads a file with it.
        isolated: Whether it runs in another process. None for where it can.
    """

    pattern: str
    reader: object
    read: Reader
    isolated: bool | None = None

    def records(self, source: SourceFile) -> Records:
        """Read a file."""
        return records_of(self.read(source.path))

    def pickled(self) -> bytes | None:
        """Return it for another process, None if it is to run in this one.

        Raises:
            TypeError: If it can't be sent to another process, and has to run there.
        """
        if self.isolated is False:
            return None
        try:
            data = pickle.dumps(self.reader)
            reason = "it is part of the main program" if b"__main__" in data else ""
        except Exception as error:  # of the object's own methods, too
            data, reason = b"", f"{type(error).__name__}: {error}"
        if not reason:
            return data
        if self.isolated:
            raise TypeError(
                f"the reader of {self.pattern!r} can't run in a process of its own: {reason}; put "
                "its function or class into a module, or register it with isolated=False"
            )
        self.run_in_process(reason)
        return None

    def run_in_process(self, reason: str) -> None:
        """Run in this process from now on, and say once why."""
        if self.isolated is None:
            self.isolated = False
            logger.warning(
                "the reader of %r runs in this process, where nothing limits its time and memory: "
                "no other one can have it (%s). Put its function or class into a module, or say "
                "that it is meant: register_reader(..., isolated=False)",
                self.pattern,
                reason[:200],
            )


_READERS: dict[str, RegisteredReader] = {}


@overload
def register_reader(pattern: str, reader: object, /, *, isolated: bool | None = None) -> None: ...


@overload
def register_reader(*suffixes: str, isolated: bool | None = None) -> Callable[[Reader], Reader]: ...


def register_reader(
    *arguments: Any, isolated: bool | None = None
) -> Callable[[Reader], Reader] | None:
    """Register a reader for files of given names, which replaces others.

    Either a decorator of a function, with the suffixes: ``@register_reader(".upper")``. Or a
    pattern (``"*.msg"``, a suffix, a name) and a reader: such a function, a loader of LangChain
    (the class or a function, which is called with the path and loads it), a reader of LlamaIndex
    (the class or an instance, whose ``load_data`` is called with the path), a converter of
    Docling, or ``unstructured``'s ``partition``. They are recognized by their methods.

    The reader registered last goes first. Whatever it raises becomes a ``ReadError`` with the
    path. It runs in a process of its own, with the limits of ``ReadOptions`` for time and memory,
    if another process can have it: if it pickles, as functions and classes of modules do. Else
    (a lambda, something of the main program, what holds a lock) it runs in this process, where
    nothing ends it, and the log says so once.

    Args:
        arguments: Suffixes, or a pattern and a reader.
        isolated: True for an error where a process of its own can't have it. False to run it in
            this process, for a reader that keeps something here.

    Raises:
        ValueError: If a suffix does not begin with a dot.
        TypeError: If it is not a reader.

    Example:
        >>> @register_reader(".upper")
        ... def read_upper(path):
        ...     return path.read_text(encoding="utf-8").upper()
        >>> register_reader("*.lower", lambda path: path.read_text(encoding="utf-8").lower())
    """
    if len(arguments) == 2 and not isinstance(arguments[1], str):
        pattern, reader = arguments
        if not any(c in pattern for c in "*?[") and "." not in pattern[1:]:
            pattern = f"*{_suffix(pattern)}"
        _put(RegisteredReader(pattern.lower(), reader, as_reader(reader), isolated))
        return None
    suffixes = [_suffix(suffix) for suffix in arguments]

    def register(reader: Reader) -> Reader:
        for suffix in suffixes:
            _put(RegisteredReader(f"*{suffix}", reader, reader, isolated))
        return reader

    return register


def _suffix(suffix: Any) -> str:
    if not isinstance(suffix, str) or not suffix.startswith("."):
        raise ValueError(f"a suffix begins with a dot, like '.txt', not {suffix!r}")
    return suffix.lower()


def _put(reader: RegisteredReader) -> None:
    _READERS.pop(reader.pattern, None)
    _READERS[reader.pattern] = reader


@cache
def _of_packages() -> Sequence[RegisteredReader]:
    return [
        RegisteredReader(f"*{suffix}", reader, as_reader(reader))
        for suffix, reader in plugin_readers().items()
    ]


def registered_reader(path: str | Path) -> RegisteredReader | None:
    """Return the reader that was registered for a file, the last ones first.

    Those of packages come after those of the program.
    """
    name = os.path.basename(path).lower()
    readers = (*reversed(_READERS.values()), *_of_packages())
    return next((reader for reader in readers if fnmatchcase(name, reader.pattern)), None)


def find_reader(path: Path) -> RegisteredReader | FileFormat | None:
    """Return what reads a file: the reader that is registered, else its format.

    Raises:
        ReadError: If it is no document, or not of the format that its name says.
        OSError: If it can't be opened.
    """
    return registered_reader(path) or format_of(path)


def readers_to_send() -> list[tuple[str, bytes]]:
    """Return the patterns and pickles of readers that another process can have, in order."""
    pairs = ((reader.pattern, reader.pickled()) for reader in _READERS.values())
    return [(pattern, data) for pattern, data in pairs if data]


def receive_readers(sent: Iterable[tuple[str, bytes]]) -> None:
    """Register what another process sent. What can't be loaded raises when it is called."""
    for pattern, data in sent:
        try:
            reader = pickle.loads(data)
            _put(RegisteredReader(pattern, reader, as_reader(reader)))
        except Exception as error:  # of a module that it imports
            _put(RegisteredReader(pattern, None, _unloadable(error)))


def _unloadable(error: Exception) -> Reader:
    def read(path: Path) -> str:
        raise UnloadableError(f"{type(error).__name__}: {error}")

    return read


class UnloadableError(Exception):
    """A reader that another process can't load, or whose result it can't send."""


def supported_suffixes() -> list[str]:
    """Return the suffixes that can be read, sorted."""
    registered = (pattern[1:] for pattern in _READERS if pattern.startswith("*."))
    return sorted({*format_suffixes(), *plugin_readers(), *registered})


def can_read(path: str | Path) -> bool:
    """Return whether there is a reader for files of this name."""
    return format_by_name(path) is not None or registered_reader(path) is not None
