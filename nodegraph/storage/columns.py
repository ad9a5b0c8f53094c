"""Convert ids, texts and values to columns, and back."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath, PurePosixPath
from typing import Any
from uuid import UUID

from ..errors import StoreError

DAMAGED = "the file is damaged: restore a backup, or index the documents again"

_WRONG_ROW = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    zlib.error,
)
"""The errors that forged rows cause."""

_LARGEST = 1 << 62  # a larger number cannot have grown from 0

_OWN_ID = re.compile("[0-9a-f]{24}")

_OWN_SIZE = 12  # bytes

_FOREIGN = b"\xff"  # a byte that UTF-8 never uses

_VARIABLES = 900  # the limit of one statement in every build of SQLite


@contextmanager
def reading_rows(place: str) -> Iterator[None]:
    """Convert errors from rows that a stranger has forged to a ``StoreError``.

    Args:
        place: The path or address of the store.

    Raises:
        StoreError: If the block cannot read a row.
    """
    try:
        yield
    except StoreError:
        raise
    except _WRONG_ROW as error:
        raise StoreError(
            f"{place or 'the graph in memory'}: a row cannot be read "
            f"({type(error).__name__}: {error!s:.200}): {DAMAGED}"
        ) from error


def check_numbers(*numbers: object) -> None:
    """Check that the numbers in a row are integers from 0 to 2 ** 62.

    Raises:
        ValueError: If a number is anything else.
    """
    for number in numbers:
        if type(number) is not int or not 0 <= number < _LARGEST:
            raise ValueError(f"a number must be from 0 to 2 ** 62, got {number!r:.40}")


def to_id(name: str) -> bytes:
    """Encode an id or a hash. Generated ids are hexadecimal and take half of their length."""
    if _OWN_ID.fullmatch(name):
        return bytes.fromhex(name)
    value = _FOREIGN + to_text(name)
    return value if len(value) != _OWN_SIZE else _FOREIGN + value


def to_ids(names: Iterable[str]) -> list[bytes]:
    """Encode ids."""
    return [to_id(name) for name in names]


def from_id(value: bytes) -> str:
    """Decode an id that ``to_id`` encoded."""
    return value.hex() if len(value) == _OWN_SIZE else from_text(value.lstrip(_FOREIGN))


def to_text(text: str) -> bytes:
    """Encode a text as UTF-8. Lone surrogates are allowed."""
    return text.encode("utf-8", "surrogatepass")


def from_text(value: bytes) -> str:
    """Decode a text that ``to_text`` encoded."""
    return value.decode("utf-8", "surrogatepass")


def to_words(text: str) -> bytes:
    """Encode the text of a node. Chinese takes two bytes per character instead of three."""
    value = to_text(text)
    if len(value) > 2 * len(text):
        with suppress(UnicodeEncodeError):  # lone surrogates
            return _FOREIGN + text.encode("utf-16-le")
    return value


def from_words(value: bytes) -> str:
    """Decode a text that ``to_words`` encoded."""
    if value[:1] == _FOREIGN:
        return value[1:].decode("utf-16-le", "surrogatepass")
    return value.decode("utf-8", "surrogatepass")


def portions(values: Iterable[Any], size: int = _VARIABLES) -> Iterator[list[Any]]:
    """Split values into lists that fit into one statement."""
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def marks(values: Sequence[Any]) -> str:
    """Return a placeholder for each value."""
    return ",".join("?" * len(values))


MARK = "$type"
"""Key of a JSON object that encodes a value of another type."""

# The name of each type, and functions to write and read its values. Subclasses come first.
_KINDS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    tuple: ("tuple", lambda v: _to_plain(list(v)), lambda v: tuple(_from_plain(v))),
    set: ("set", lambda v: _unordered(v), lambda v: set(_from_plain(v))),
    frozenset: ("frozenset", lambda v: _unordered(v), lambda v: frozenset(_from_plain(v))),
    bytes: ("bytes", lambda v: base64.b64encode(v).decode("ascii"), base64.b64decode),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    PurePath: ("path", lambda v: v.as_posix(), PurePosixPath),
}

_READERS: dict[str, Callable[[Any], Any]] = {
    **{name: read for name, _, read in _KINDS.values()},
    "dict": lambda v: {_from_plain(key): _from_plain(item) for key, item in v},
}


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> str:
    """Convert a value to JSON text.

    Numbers, strings, booleans, None, lists, dicts, tuples, sets, bytes, dates and times,
    ``Decimal`` and ``UUID`` are restored with their type. Paths are restored as ``PurePosixPath``,
    other mappings as dicts, NumPy arrays as lists, and instances of a subclass (a string ``Enum``,
    a NumPy float) as the base type.

    Raises:
        TypeError: If the value has an unsupported type, or is nested too deeply.

    Example:
        >>> decode(encode({"tags": ("a", "b"), "day": date(2024, 5, 1)}))
        {'tags': ('a', 'b'), 'day': datetime.date(2024, 5, 1)}
    """
    try:
        return _JSON.encode(_to_plain(value))
    except RecursionError:
        raise TypeError(
            "a value must be nested at most 100 levels deep; give a flatter value"
        ) from None


def decode(text: str) -> Any:
    """Restore a value from the text that ``encode`` returned."""
    value = json.loads(text)
    return _from_plain(value) if MARK in text else value


def _to_plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    if isinstance(value, Mapping):
        if all(type(key) is str and key != MARK for key in value):
            return {key: _to_plain(item) for key, item in value.items()}
        return {MARK: "dict", "value": [[_to_plain(k), _to_plain(v)] for k, v in value.items()]}
    for base, (name, write, _) in _KINDS.items():
        if isinstance(value, base):
            return {MARK: name, "value": write(value)}
    for plain, convert in ((str, str.__str__), (int, int), (float, float)):
        if isinstance(value, plain):  # str() of an Enum is its name, not its value
            return convert(value)
    if callable(plain_of := getattr(value, "tolist", None)):  # NumPy's scalars and arrays
        return _to_plain(plain_of())
    raise TypeError(
        f"{type(value).__name__} {value!r:.60} can't be kept in a file; give a text, a number, a "
        "date, bytes, or lists and mappings of them"
    )


def _unordered(values: Any) -> list[Any]:
    return sorted(_to_plain(list(values)), key=json.dumps)


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_plain(item) for item in value]
    if isinstance(value, dict):
        if MARK in value:
            return _READERS[value[MARK]](value["value"])
        return {key: _from_plain(item) for key, item in value.items()}
    return value


_OBJECT = b"\0"  # no JSON text begins with this byte


class ValueColumns:
    """A converter between columns and metadata or other values.

    Args:
        objects: The objects that only this process can hold, since programs that use LangChain or
            LlamaIndex put objects into metadata. New objects are appended. If None, such objects
            are rejected.
    """

    def __init__(self, objects: list[Any] | None) -> None:
        self.objects = objects

    def write(self, value: Any) -> bytes:
        """Convert a value to a column.

        Raises:
            TypeError: If the value cannot be stored in a file.
        """
        try:
            return to_text(encode(value))
        except TypeError:
            if self.objects is None:
                raise
            self.objects.append(dict(value) if isinstance(value, Mapping) else value)
            return _OBJECT + str(len(self.objects) - 1).encode()

    def read(self, column: bytes) -> Any:
        """Restore a value from its column."""
        if column[:1] == _OBJECT and self.objects is not None:
            kept = self.objects[int(column[1:])]
            return dict(kept) if isinstance(kept, dict) else kept
        return decode(from_text(column))

    def write_metadata(self, metadata: Mapping[str, Any], owner: str) -> bytes | None:
        """Convert metadata to a column. Return None for empty metadata.

        Args:
            metadata: The metadata.
            owner: The node or document, for error messages.

        Raises:
            TypeError: If a value cannot be stored in a file.
        """
        if not metadata:
            return None
        try:
            return self.write(dict(metadata))
        except TypeError:
            for field, value in metadata.items():
                try:
                    encode({field: value})
                except TypeError as error:
                    raise TypeError(f"metadata field {field!r} of {owner}: {error}") from error
            raise

    def read_metadata(self, column: bytes) -> Mapping[str, Any]:
        """Restore metadata from its column.

        Raises:
            TypeError: If the column contains any other value.
        """
        metadata = self.read(column)
        if not isinstance(metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, got {type(metadata).__name__}")
        return metadata
