"""Lossless conversion of values to JSON text, with marks for types that JSON does not support."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath, PurePosixPath
from typing import Any
from uuid import UUID

MARK = "$type"
"""Key of a JSON object that encodes a value of another type."""

_PLAIN = (str, int, float, bool, type(None))

_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", lambda v: [_to_plain(item) for item in v]),
    set: ("set", lambda v: _unordered(v)),
    frozenset: ("frozenset", lambda v: _unordered(v)),
    bytes: ("bytes", lambda v: base64.b64encode(v).decode("ascii")),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
}

_READERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda v: tuple(_from_plain(item) for item in v),
    "set": lambda v: {_from_plain(item) for item in v},
    "frozenset": lambda v: frozenset(_from_plain(item) for item in v),
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "decimal": Decimal,
    "uuid": UUID,
    "path": PurePosixPath,
    "dict": lambda v: {_from_plain(key): _from_plain(item) for key, item in v},
}


def encode(value: Any) -> str:
    """Convert a value to JSON text.

    Numbers, texts, booleans, None, lists, dicts, tuples, sets, bytes, dates and times,
    ``Decimal`` and ``UUID`` are restored with their type. Paths are restored as
    ``PurePosixPath``, other mappings as dicts, NumPy arrays as lists, and instances of a subclass
    (a string ``Enum``, a NumPy float) as the base type.

    Raises:
        TypeError: If the value has an unsupported type.

    Example:
        >>> decode(encode({"tags": ("a", "b"), "day": date(2024, 5, 1)}))
        {'tags': ('a', 'b'), 'day': datetime.date(2024, 5, 1)}
    """
    return json.dumps(_to_plain(value), ensure_ascii=False, separators=(",", ":"))


def decode(text: str) -> Any:
    """Restore a value from the text that ``encode`` returned."""
    value = json.loads(text)
    return _from_plain(value) if MARK in text else value


def _to_plain(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_to_plain(item) for item in value]
    if isinstance(value, Mapping):
        if all(type(key) is str and key != MARK for key in value):
            return {key: _to_plain(item) for key, item in value.items()}
        return {MARK: "dict", "value": [[_to_plain(k), _to_plain(v)] for k, v in value.items()]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {MARK: name, "value": write(value)}
    if isinstance(value, PurePath):
        return {MARK: "path", "value": value.as_posix()}
    return _base_to_plain(value)


def _base_to_plain(value: Any) -> Any:
    """Convert an instance of a subclass as its base type, and NumPy values as Python values."""
    if isinstance(value, str):
        return str.__str__(value)  # str() of an Enum is its name, not its value
    for plain in (int, float):
        if isinstance(value, plain):
            return plain(value)
    for base, (name, write) in _WRITERS.items():
        if isinstance(value, base):
            return {MARK: name, "value": write(value)}
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    plain_of = getattr(value, "tolist", None)  # NumPy's scalars and arrays
    if callable(plain_of):
        return _to_plain(plain_of())
    raise TypeError(
        f"{type(value).__name__} {value!r:.60} can't be kept in a file; give a text, a number, a "
        "date, bytes, or lists and mappings of them"
    )


def _unordered(values: Any) -> list[Any]:
    return sorted((_to_plain(item) for item in values), key=lambda item: json.dumps(item))


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_plain(item) for item in value]
    if isinstance(value, dict):
        if MARK in value:
            return _READERS[value[MARK]](value["value"])
        return {key: _from_plain(item) for key, item in value.items()}
    return value
