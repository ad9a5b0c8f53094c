"""Convert ids, texts and other values to database columns, and back."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
"""The exceptions that may occur while reading rows of a forged file."""

_LARGEST = 1 << 62  # a counter that starts at 0 cannot have reached a larger number

_OWN_SIZE = 12  # number of bytes of a generated id

_FOREIGN = b"\xff"  # a byte that never occurs in UTF-8

_INSERT = re.compile(r"INSERT INTO (\w+) \(([\w, ]+)\) VALUES \([?, ]+\)")

_PORTION = 4096  # number of rows that are converted at a time

_VARIABLES = 900  # the maximum number of placeholders in a statement, in every build of SQLite


@contextmanager
def reading_rows(place: str) -> Iterator[None]:
    """Convert errors that are caused by damaged or forged rows to a ``StoreError``.

    Args:
        place: The path or URL of the store, for the error message.

    Raises:
        StoreError: If a row cannot be read inside the block.
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
        ValueError: If a value is not an integer or is out of range.
    """
    for number in numbers:
        if type(number) is not int or not 0 <= number < _LARGEST:
            raise ValueError(f"a number must be from 0 to 2 ** 62, got {number!r:.40}")


def to_id(name: str) -> bytes:
    """Encode an id or a hash as bytes.

    Generated ids are hexadecimal and are stored in half the space.
    """
    if len(name) == 2 * _OWN_SIZE:
        own = _from_hexadecimal(name)
        if own.hex() == name:  # faster than a regular expression
            return own
    value = _FOREIGN + to_text(name)
    return value if len(value) != _OWN_SIZE else _FOREIGN + value


def _from_hexadecimal(name: str) -> bytes:
    """Decode hexadecimal digits. If there are other characters, no bytes are returned."""
    try:
        return bytes.fromhex(name)
    except ValueError:
        return b""


def to_ids(names: Iterable[str]) -> list[bytes]:
    """Encode several ids as bytes."""
    return [to_id(name) for name in names]


def from_id(value: bytes) -> str:
    """Decode an id that was encoded with ``to_id``."""
    return value.hex() if len(value) == _OWN_SIZE else from_text(value.lstrip(_FOREIGN))


def to_text(text: str) -> bytes:
    """Encode a text as UTF-8. Unpaired surrogates are allowed."""
    return text.encode("utf-8", "surrogatepass")


def from_text(value: bytes) -> str:
    """Decode a text that was encoded with ``to_text``."""
    return value.decode("utf-8", "surrogatepass")


def to_words(text: str) -> bytes:
    """Encode the text of a node. Chinese characters take two bytes each instead of three."""
    value = to_text(text)
    if len(value) > 2 * len(text):
        with suppress(UnicodeEncodeError):  # The text contains unpaired surrogates.
            return _FOREIGN + text.encode("utf-16-le")
    return value


def from_words(value: bytes) -> str:
    """Decode a text that was encoded with ``to_words``."""
    if value[:1] == _FOREIGN:
        return value[1:].decode("utf-16-le", "surrogatepass")
    return value.decode("utf-8", "surrogatepass")


def portions(values: Iterable[Any], size: int = _VARIABLES) -> Iterator[list[Any]]:
    """Split values into lists that are small enough for the placeholders of one SQL statement."""
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def marks(values: Collection[Any]) -> str:
    """Return a list of SQL placeholders, with one placeholder for each value."""
    return ",".join("?" * len(values))


# The parameters of statements. For each parameter that is None or of the type bytes, the module
# sqlite3 looks for an adapter, which takes longer than to insert the value.


def bound(values: Iterable[Any]) -> list[Any]:
    """Return the values of parameters, in which each ``bytes`` object is a ``bytearray``."""
    return [bytearray(value) if type(value) is bytes else value for value in values]


def statements(
    statement: str, rows: Sequence[Sequence[Any]]
) -> Iterator[tuple[str, Iterable[Sequence[Any]]]]:
    """Yield statements that together have the same effect as one statement for several rows.

    Columns that are NULL in all rows are omitted from an ``INSERT`` statement. They must have no
    default value.

    Args:
        statement: The SQL statement.
        rows: The values of the parameters for each execution.
    """
    insert = _INSERT.fullmatch(statement)
    if insert is None:
        yield statement, (bound(row) for row in rows)
        return
    for start in range(0, len(rows), _PORTION):
        yield _insert(insert[1], insert[2].split(", "), rows[start : start + _PORTION])


def _insert(
    table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> tuple[str, Iterable[Sequence[Any]]]:
    """Return a statement for the columns that are not NULL in all rows, with its parameters."""
    given: dict[str, Sequence[Any]] = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        types = {type(value) for value in column}
        if bytes in types:
            given[name] = bound(column)
        elif types != {type(None)}:
            given[name] = column
    statement = f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks(given)})"
    return statement, zip(*given.values(), strict=True)


MARK = "$type"
"""The key of JSON objects that represent values of types that JSON does not support."""

# The name of each type, and the functions that write and read its values. Subclasses come before
# their base classes.
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
    """Convert a value to a JSON text that preserves common Python types.

    Numbers, strings, booleans, None, lists, dicts, tuples, sets, bytes, dates, times, ``Decimal``
    and ``UUID`` keep their types when they are decoded. Paths are decoded as ``PurePosixPath``,
    other mappings as dicts, NumPy arrays as lists, and instances of subclasses (such as a string
    ``Enum`` or a NumPy float) as their base type.

    Raises:
        TypeError: If the type of the value is not supported, or if the value is nested too deeply.

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
    """Restore a value from a JSON text that was created by ``encode``."""
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
        # str() would return the name of an Enum member, not its value.
        if isinstance(value, plain):
            return convert(value)
    if callable(plain_of := getattr(value, "tolist", None)):  # NumPy scalars and arrays
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


_OBJECT = b"\0"  # No JSON text begins with this byte.


class ValueColumns:
    """Converts metadata and other values to database columns, and back.

    Args:
        objects: A list for objects that cannot be stored in a file, since programs that use
            LangChain or LlamaIndex may put arbitrary objects into metadata. New objects are
            appended to the list. If None, such objects are rejected.
    """

    def __init__(self, objects: list[Any] | None) -> None:
        self.objects = objects

    def write(self, value: Any) -> bytes:
        """Convert a value to a database column.

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
        """Restore a value from a database column."""
        if column[:1] == _OBJECT and self.objects is not None:
            kept = self.objects[int(column[1:])]
            return dict(kept) if isinstance(kept, dict) else kept
        return decode(from_text(column))

    def write_metadata(self, metadata: Mapping[str, Any], owner: str) -> bytes | None:
        """Convert metadata to a database column. Return None if the metadata is empty.

        Args:
            metadata: The metadata to convert.
            owner: A description of the node or document, for error messages.

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
        """Restore metadata from a database column.

        Raises:
            TypeError: If the column does not contain a mapping.
        """
        metadata = self.read(column)
        if not isinstance(metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, got {type(metadata).__name__}")
        return metadata
