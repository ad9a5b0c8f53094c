"""Numbers for the values of metadata, which pgvector compares."""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Protocol

from ....nodegraph.codec import decode, encode
from ....nodegraph.storage.graph_store import GraphStore

_PAGES = "index values"  # kinds of values in the store

_NUMBERS = "index numbers"

_PAGE = 1_000  # values per page

_MAX_CACHED = 100_000  # numbers in memory

_Head = dict[str, Any]  # "next": the next number; "pages": each page's last number, by stream


class TaggedRow(Protocol):
    """A row of a table, with the values that filters compare."""

    @property
    def document_id(self) -> str:
        """The document's id."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata."""


class ValueNumbers:
    """Numbers for the distinct values of each metadata field of a graph.

    Numbers start at 1 and grow; a number is never used again, so that a reader reads only values
    above the last number it knows. The values of a field are stored in two streams of pages:
    texts, and other values. The number of a value is looked up by its hash.

    Args:
        store: The store of the graph.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._cached_ids: dict[str, int] = {}
        self._head: tuple[bytes, _Head] = (b"", {"next": 1, "pages": {}})

    def assign(self, rows: Sequence[TaggedRow]) -> list[list[int]]:
        """Return the numbers of each row's values, ascending. New values are stored."""
        values: dict[str, tuple[str, str]] = {}  # stream and value, by hash
        hashes: list[list[str]] = []
        latest: tuple[Any, list[str]] = (None, [])  # neighbors often share their metadata
        for row in rows:
            if latest[0] is not row.metadata:
                items = row.metadata.items()
                latest = row.metadata, [_note(values, field, value) for field, value in items]
            hashes.append([*latest[1], _note(values, None, row.document_id)])
        numbers = {key: self._cached_ids[key] for key in values if key in self._cached_ids}
        if missing := [key for key in values if key not in numbers]:
            numbers.update(self._stored(missing))
            if any(key not in numbers for key in missing):
                with self._store.transaction():
                    numbers.update(self._stored(missing))
                    numbers.update(self._add({k: values[k] for k in missing if k not in numbers}))
        if len(self._cached_ids) > _MAX_CACHED:
            self._cached_ids = {}
        self._cached_ids |= numbers
        return [sorted({numbers[key] for key in of_row}) for of_row in hashes]

    def _stored(self, hashes: Sequence[str]) -> dict[str, int]:
        stored = self._store.get_values(_NUMBERS, hashes)
        return {key: int(number) for key, number in stored.items()}

    def _add(self, values: dict[str, tuple[str, str]]) -> dict[str, int]:
        """Store values by their hash; return their numbers."""
        with self._store.transaction():
            head: _Head = json.loads(json.dumps(self._read_head()))
            numbers = {key: head["next"] + at for at, key in enumerate(values)}
            head["next"] += len(numbers)
            streams: dict[str, list[tuple[int, str]]] = {}
            for key, (stream, value) in values.items():
                streams.setdefault(stream, []).append((numbers[key], value))
            written: dict[str, bytes] = {}
            for stream, entries in streams.items():
                ends = head["pages"].setdefault(stream, [])
                if ends:  # the last page may have room
                    page = self._page(stream, len(ends) - 1)
                    if len(page) < _PAGE:
                        entries[:0] = page
                        ends.pop()
                for start in range(0, len(entries), _PAGE):
                    part = entries[start : start + _PAGE]
                    written[f"{stream} {len(ends)}"] = json.dumps(part).encode()
                    ends.append(part[-1][0])
            written["head"] = json.dumps(head).encode()
            self._store.put_values(_PAGES, written)
            as_bytes = {key: str(number).encode() for key, number in numbers.items()}
            self._store.put_values(_NUMBERS, as_bytes)
        return numbers

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values of a field; see ``VectorTable.values``."""
        plain_texts = _stream(field, True)
        others = iter(()) if field is None else self._stream(_stream(field, False), after)
        if texts is None:
            yield from heapq.merge(self._stream(plain_texts, after), others, key=_number)
            return
        hashes = {_hash(plain_texts, encode(text)): text for text in texts}
        numbers = self._stored(list(hashes)) if hashes else {}
        plain = sorted((number, hashes[key]) for key, number in numbers.items())
        new = (entry for entry in plain if entry[0] > after)
        yield from heapq.merge(new, others, key=_number)

    def _stream(self, stream: str, after: int) -> Iterator[tuple[int, Any]]:
        for number, last in enumerate(self._read_head()["pages"].get(stream, ())):
            if last > after:
                for entry, value in self._page(stream, number):
                    if entry > after:
                        yield entry, decode(value)

    def _page(self, stream: str, number: int) -> list[tuple[int, str]]:
        key = f"{stream} {number}"
        return [(n, v) for n, v in json.loads(self._store.get_values(_PAGES, [key])[key])]

    def _read_head(self) -> _Head:
        stored = self._store.get_values(_PAGES, ["head"]).get("head", b"")
        if stored != self._head[0]:
            self._head = stored, json.loads(stored) if stored else {"next": 1, "pages": {}}
        return self._head[1]


def _number(entry: tuple[int, Any]) -> int:
    return entry[0]


@lru_cache(1024)
def _stream(field: str | None, plain: bool) -> str:
    """Return the name of a stream of values; ``field`` is None for the id of the document."""
    kind = "document" if field is None else "text" if plain else "value"
    name = "" if field is None else field
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind} {digest}"


def _hash(stream: str, value: str) -> str:
    key = blake2b(stream.encode(), digest_size=32).digest()
    return blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


def _note(values: dict[str, tuple[str, str]], field: str | None, value: Any) -> str:
    """Add a value to ``values``; return its hash."""
    stream, encoded = _stream(field, field is None or type(value) is str), encode(value)
    key = _hash(stream, encoded)
    values.setdefault(key, (stream, encoded))
    return key
