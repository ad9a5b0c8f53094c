"""How ids, texts and metadata are written in a column."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..codec import decode, encode

_HEXADECIMAL = re.compile("[0-9a-f]{24}")
_SURROGATES = b"surrogatepass"  # longer than an id of ours
_VARIABLES = 900  # that one statement may have, in every build of SQLite


def to_key(name: str) -> bytes | str:
    """Write an id or a hash; one of ours in half the bytes."""
    return bytes.fromhex(name) if _HEXADECIMAL.fullmatch(name) else to_column(name)


def from_key(value: bytes | str) -> str:
    """Read an id."""
    if isinstance(value, bytes) and len(value) == 12:
        return value.hex()
    return from_column(value)


def to_column(text: str) -> str | bytes:
    """Write a text, also one with half a character in it, which UTF-8 has no form for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES + text.encode("utf-8", "surrogatepass")
    return text


def from_column(value: str | bytes) -> str:
    """Read a text."""
    if isinstance(value, str):
        return value
    return value[len(_SURROGATES) :].decode("utf-8", "surrogatepass")


def to_json(metadata: Mapping[str, Any]) -> str | bytes | None:
    """Write metadata; None where there is none."""
    return to_column(encode(dict(metadata))) if metadata else None


def from_json(value: str | bytes) -> Any:
    """Read metadata, or any value."""
    return decode(from_column(value))


def portions(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut values into lists that one statement can have as variables."""
    iterator = iter(values)
    while some := list(itertools.islice(iterator, _VARIABLES)):
        yield some


def marks(values: Sequence[Any]) -> str:
    """Return a question mark for each value."""
    return ",".join("?" * len(values))
