"""Conversion of ids, texts and values to the bytes of a column, and back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..codec import decode, encode
from .database import Database

_OWN_ID = re.compile("[0-9a-f]{24}")

_OWN_SIZE = 12  # bytes

_FOREIGN = b"\xff"  # a byte that UTF-8 never uses

_VARIABLES = 900  # the limit of one statement in every build of SQLite


def to_id(name: str) -> bytes:
    """Convert an id or a hash; our own ids take half of their length."""
    if _OWN_ID.fullmatch(name):
        return bytes.fromhex(name)
    value = _FOREIGN + to_text(name)
    return value if len(value) != _OWN_SIZE else _FOREIGN + value


def from_id(value: bytes) -> str:
    """Decode an id of ``to_id``."""
    return value.hex() if len(value) == _OWN_SIZE else from_text(value.lstrip(_FOREIGN))


def to_text(text: str) -> bytes:
    """Encode a text as UTF-8. Lone surrogates are allowed."""
    return text.encode("utf-8", "surrogatepass")


def from_text(value: bytes) -> str:
    """Decode a text of ``to_text``."""
    return value.decode("utf-8", "surrogatepass")


_OBJECT = b"\0"  # no JSON text begins with this byte


class ValueColumns:
    """Convert metadata and contents to JSON.

    A store in memory keeps objects that JSON cannot express next to the connection, since
    programs of both frameworks put objects into metadata.

    Args:
        keeps_objects: Whether such objects are kept. Otherwise they raise a TypeError.
    """

    def __init__(self, keeps_objects: bool) -> None:
        self.keeps_objects = keeps_objects
        self._objects: list[Any] = []

    def check_no_objects(self) -> None:
        """Raise TypeError if values are kept as objects."""
        for value in self._objects:
            encode(value)

    def to_value(self, value: Any) -> bytes:
        """Convert a value.

        Raises:
            TypeError: If it cannot be stored in a file.
        """
        try:
            return to_text(encode(value))
        except TypeError:
            if not self.keeps_objects:
                raise
            self._objects.append(dict(value) if isinstance(value, Mapping) else value)
            return _OBJECT + str(len(self._objects) - 1).encode()

    def to_metadata(self, metadata: Mapping[str, Any], owner: str) -> bytes | None:
        """Convert metadata. Empty metadata gives None.

        Args:
            metadata: The metadata.
            owner: The node or document, for the error.

        Raises:
            TypeError: If a value cannot be stored in a file.
        """
        if not metadata:
            return None
        try:
            return self.to_value(dict(metadata))
        except TypeError:
            for field, value in metadata.items():
                try:
                    encode({field: value})
                except TypeError as error:
                    raise TypeError(f"metadata field {field!r} of {owner}: {error}") from error
            raise

    def from_value(self, value: bytes) -> Any:
        """Convert a value back."""
        if value[:1] == _OBJECT:
            kept = self._objects[int(value[1:])]
            return dict(kept) if isinstance(kept, dict) else kept
        return decode(from_text(value))


class Table:
    """The base class of tables whose keys are assigned in Python.

    Args:
        database: The database.
        next_key: Assigns keys of a table.
    """

    def __init__(self, database: Database, next_key: Callable[[str, int], int]) -> None:
        self._db = database
        self._next_key = next_key


def portions(values: Iterable[Any], size: int = _VARIABLES) -> Iterator[list[Any]]:
    """Split values into lists that fit into one statement."""
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def marks(values: Sequence[Any]) -> str:
    """Return a placeholder for each value."""
    return ",".join("?" * len(values))
