"""Which readers users have registered, for which names of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, overload

from ..document import Document
from .foreign_loaders import as_reader
from .formats import SUFFIXES, format_by_name

Reader = Callable[[Path], "Iterable[Document] | Document | str"]
"""Takes a path; returns the file's text, a document, or several whose ids are unique in it."""

_READERS: dict[str, Reader] = {}


@overload
def register_reader(pattern: str, reader: object, /) -> None: ...


@overload
def register_reader(*suffixes: str) -> Callable[[Reader], Reader]: ...


def register_reader(*arguments: Any) -> Callable[[Reader], Reader] | None:
    """Register what reads files of given names, in place of what reads them otherwise.

    Either a decorator of a function, with the suffixes: ``@register_reader(".upper")``. Or a
    pattern (``"*.msg"``, a suffix, a name) and a reader: such a function, a loader of LangChain
    (the class or a function, which is called with the path and loads it), a reader of LlamaIndex
    (the class or an instance, whose ``load_data`` is called with the path), a converter of
    Docling, ``unstructured``'s ``partition``; known by their methods.

    The reader registered last goes first. It runs in this process, where it may be stopped by
    nothing; whatever it raises becomes a ``ReadError`` with the path.

    Raises:
        ValueError: If a suffix does not begin with a dot.
        TypeError: If the reader is none.

    Example:
        >>> @register_reader(".upper")
        ... def read_upper(path):
        ...     return path.read_text(encoding="utf-8").upper()
        >>> register_reader("*.lower", lambda path: path.read_text(encoding="utf-8").lower())
    """
    if len(arguments) == 2 and not isinstance(arguments[1], str):
        pattern, reader = arguments
        _put(
            pattern
            if any(c in pattern for c in "*?[") or "." in pattern[1:]
            else f"*{_suffix(pattern)}",
            as_reader(reader),
        )
        return None
    suffixes = [_suffix(suffix) for suffix in arguments]

    def register(reader: Reader) -> Reader:
        for suffix in suffixes:
            _put(f"*{suffix}", reader)
        return reader

    return register


def _suffix(suffix: Any) -> str:
    if not isinstance(suffix, str) or not suffix.startswith("."):
        raise ValueError(f"a suffix begins with a dot, like '.txt', not {suffix!r}")
    return suffix.lower()


def _put(pattern: str, reader: Reader) -> None:
    _READERS.pop(pattern.lower(), None)
    _READERS[pattern.lower()] = reader


def registered_reader(path: Path) -> Reader | None:
    """Return the reader that was registered for a file, the last one first."""
    name = path.name.lower()
    for pattern, reader in reversed(_READERS.items()):
        if fnmatchcase(name, pattern):
            return reader
    return None


def supported_suffixes() -> list[str]:
    """Return the suffixes that can be read, sorted."""
    own = (pattern[1:] for pattern in _READERS if pattern.startswith("*."))
    return sorted({*SUFFIXES, *own})


def can_read(path: Path) -> bool:
    """Tell whether there is a reader for files of this name."""
    return format_by_name(path) is not None or registered_reader(path) is not None
