"""How ids, texts and metadata are written in columns, all of which are ``bytea``.

PostgreSQL's ``text`` can hold neither a NUL nor half a character, and depends on the encoding of
the database; bytes come back as what they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from ....nodegraph.codec import decode, encode
from ....nodegraph.node import NO_METADATA, Link, Node
from ....nodegraph.search_text import SearchText

T = TypeVar("T")

_HEXADECIMAL = re.compile("[0-9a-f]{24}")

_SHORT = b"\xff"  # begins no text in UTF-8

_PORTION_ROWS = 5_000

_PORTION_BYTES = 16_000_000


def to_bytes(text: str) -> bytes:
    """Write a text."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(value: bytes) -> str:
    """Read a text."""
    return value.decode("utf-8", "surrogatepass")


def to_id(name: str) -> bytes:
    """Write an id or a hash; one of ours in half the bytes."""
    return _SHORT + bytes.fromhex(name) if _HEXADECIMAL.fullmatch(name) else to_bytes(name)


def from_id(value: bytes) -> str:
    """Read an id."""
    return value[1:].hex() if value[:1] == _SHORT else from_bytes(value)


def to_metadata(metadata: Mapping[str, Any]) -> bytes | None:
    """Write metadata; None where there is none."""
    return to_bytes(encode(dict(metadata))) if metadata else None


def from_metadata(value: bytes | None) -> Mapping[str, Any]:
    """Read metadata."""
    return NO_METADATA if value is None else decode(from_bytes(value))


def to_link(row: tuple[Any, ...]) -> Link:
    """Read a link: source, target, type, weight, metadata, whether it was derived."""
    source, target, kind, weight, metadata, derived = row
    more = from_metadata(metadata)
    return Link(from_id(source), from_id(target), from_bytes(kind), weight, more, derived)


class NodeContext(NamedTuple):
    """What a node shares with others of its document: stored once, known by its hash.

    Attributes:
        inherited: The metadata of the parents.
        search_text: What is searched of the node's own metadata.
        inherited_search_text: And of its parent's.
    """

    inherited: Mapping[str, Any] = NO_METADATA
    search_text: SearchText | None = None
    inherited_search_text: SearchText | None = None

    @classmethod
    def of(cls, node: Node) -> NodeContext:
        """Return the context of a node."""
        return cls(node.inherited, node.search_text, node.inherited_search_text)

    @classmethod
    def read(cls, value: bytes) -> NodeContext:
        """Read what ``write`` wrote."""
        inherited, search_text_row, inherited_row = decode(from_bytes(value))
        return cls(
            inherited,
            None if search_text_row is None else SearchText.from_row(search_text_row),
            None if inherited_row is None else SearchText.from_row(inherited_row),
        )

    def write(self) -> bytes | None:
        """Write the context; None where there is nothing in it."""
        if not self.inherited and self.search_text is None and self.inherited_search_text is None:
            return None
        rows = [
            None if text is None else text.to_row()
            for text in (self.search_text, self.inherited_search_text)
        ]
        return to_bytes(encode([dict(self.inherited), *rows]))


def context_hash(value: bytes) -> bytes:
    """Return the key of a context."""
    return blake2b(value, digest_size=16).digest()


def portions(values: Iterable[T], size: int = _PORTION_ROWS) -> Iterator[list[T]]:
    """Cut values, or rows with bytes, into lists that one statement can have."""
    batch: list[T] = []
    length = 0
    for value in values:
        batch.append(value)
        parts = value if isinstance(value, tuple) else (value,)
        length += sum(len(part) for part in parts if isinstance(part, bytes))
        if len(batch) == size or length > _PORTION_BYTES:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch
