"""The contract of an engine beside the store: it stores vectors, and words, and searches them.

The store has the graph, and says up to which revision a collection of the engine has it
(``EngineTable``). So an engine does no more than what is here: it knows no graph, no revision
and no condition. Nor does it know words: terms have numbers, and their scores are computed from
what the store has (``EngineWords``). The engine has an inverted file of the numbers, and what it
says of scores decides only which candidates there are. Values of metadata have numbers, too
(``ValueNumbers``, which PostgreSQL shares).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...nodegraph.codec import decode, encode
from ...nodegraph.errors import StoreError, TransientStoreError
from ...nodegraph.search_tables import Nearest, ValueMatch
from ...nodegraph.store import NodeStore

if TYPE_CHECKING:
    from ...nodegraph.search_tables import Impacts, Numbers, Vectors


HNSW_FROM = 10_001
"""Rows from which a graph of vectors is made: up to there comparing all takes milliseconds."""

# Of 30,000 Chinese passages with static vectors (wordllama) pgvector finds 0.994 of the best ten,
# and 0.996 of vectors that are much like noise. 16, 100 and 256, as in memory, find 0.965 and
# 0.954. Milvus, Chroma and OpenSearch have the same graph.
M = 24

EF_CONSTRUCTION = 200

EF_SEARCH = 400
"""How many of the best so far a search of the graph follows."""


class EngineUnavailableError(TransientStoreError):
    """An engine can't be reached, or didn't answer in time."""


class MissingCollectionError(StoreError):
    """An engine has no such collection; it is made again from the store."""


class EngineRow(NamedTuple):
    """A node as an engine has it.

    Attributes:
        key: Tells it from all others: 32 hexadecimal digits, a hash of the node's id.
        id: The node's id in ASCII, as the engine has to return it.
        order: Its place in document order.
        value_ids: The numbers of the values of its metadata, ascending.
        vector: Its unit vector, (dimension,) float32; zeros where there is no direction.
    """

    key: str
    id: str
    order: int
    value_ids: Sequence[int]
    vector: Vectors


class WordRow(NamedTuple):
    """A node as an engine that searches words has it. Nodes without a term are not written.

    ``terms`` and ``impacts`` are a sparse vector.

    Attributes:
        key: Tells it from all others: 32 hexadecimal digits, a hash of the node's id.
        value_ids: The numbers of the values of its metadata, ascending.
        terms: The numbers of its terms, (terms,), ascending, from 1 to below 2**32 - 1.
        impacts: What each adds to its score for a weight of 1, (terms,), above 0.
    """

    key: str
    value_ids: Sequence[int]
    terms: Numbers
    impacts: Impacts


class WordHits(NamedTuple):
    """Rows that share a term with a query, those with the highest sums first.

    Attributes:
        keys: Their keys.
        scores: The sums of weight times impact, as the engine has them.
    """

    keys: Sequence[str]
    scores: Sequence[float]


class RowSelection(NamedTuple):
    """Which rows a search is about.

    Attributes:
        match: A row has the number of a match if it is among its value_ids; None for all rows.
        without: Keys of rows that don't count.
        position: Which writes must be seen.
    """

    match: ValueMatch | None = None
    without: Collection[str] = ()
    position: int = 0


class IndexEngine(Protocol):
    """Collections of vectors, each of one dimension, by name.

    What can't be done raises ``StoreError`` that names the engine and says what to do:
    ``EngineUnavailableError`` where trying again may help (it is tried again for some seconds),
    ``MissingCollectionError`` for a collection that is gone. Everything may be repeated: rows are
    known by their keys.

    A write returns a position, a number that grows with the writes of a collection; a search
    that is given it sees them. Where all searches see all writes that have returned, it is 0.

    An engine is called by many threads, can be pickled, connects when it is first used, and
    again after ``close``.
    """

    @property
    def label(self) -> str:
        """What messages call it, with its address, without a password."""

    @property
    def max_results(self) -> int:
        """How many rows a search returns at most; where more are wanted all are read."""

    @property
    def hnsw_from(self) -> int | None:
        """From how many rows on a collection is better made with ``has_hnsw``; None for never."""

    def create(self, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        """Make a collection where there is none.

        Args:
            collection: A name of small letters, digits and underscores, that begins with a letter.
            dimension: How many numbers its vectors have.
            has_hnsw: Whether a graph of the vectors (HNSW) is to find the nearest, which may miss
                some, or all are compared.
        """

    def drop(self, collection: str) -> None:
        """Remove a collection; one that doesn't exist is no error."""

    def version_token(self, collection: str) -> str | None:
        """Return what ``set_version_token`` stored last; None without it, or no collection."""

    def set_version_token(self, collection: str, token: str) -> int:
        """Store a short ASCII text with a collection; return the position after it."""

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        """Insert or replace rows by their keys, some thousand at most."""

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        """Delete rows by their keys, some thousand at most; unknown ones are no error."""

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        """Return how many rows match; None for all."""

    def nearest(
        self, collection: str, query: Vectors, limit: int, selection: RowSelection, exact: bool
    ) -> Nearest:
        """Return the rows with the highest product with a query, best first.

        Args:
            collection: The collection.
            query: A unit vector, (dimension,).
            limit: How many, ``max_results`` at most.
            selection: Which rows count.
            exact: Whether none may be missing, as far as the engine can see to it.

        Returns:
            Their ids as they were put, their orders and vectors.
        """

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows that match, in batches, in any order, each once."""

    def close(self) -> None:
        """Close connections; the next use opens them again."""


class WordEngine(IndexEngine, Protocol):
    """An ``IndexEngine`` with collections of words beside those of vectors.

    What is said there holds here: errors, positions, repetition, threads. ``drop``, ``delete``,
    ``version_token`` and ``set_version_token`` take collections of both kinds; the other methods
    one of vectors.
    """

    @property
    def searches_words(self) -> bool:
        """Whether words are searched here; else, and without this property, in each process.

        It may connect, to see which version a server has.

        Raises:
            EngineUnavailableError: If it can't be reached.
        """

    @property
    def word_slack(self) -> float:
        """By which factor the sum of weight times impact of a row may exceed what is returned.

        More candidates are read until no other row can be among the best. It is 1.0 for sums of
        32-bit numbers (which may differ by a hundred-thousandth).
        """

    def create_words(self, collection: str) -> None:
        """Make a collection of words where there is none; see ``IndexEngine.create``."""

    def put_words(self, collection: str, rows: Sequence[WordRow]) -> None:
        """Insert or replace rows by their keys, some thousand at most."""

    def search_words(
        self,
        collection: str,
        query: Mapping[int, float],
        limit: int | None,
        selection: RowSelection,
    ) -> WordHits:
        """Return the rows with the highest sums of weight times impact over the terms they share.

        Where there are fewer than ``limit``, they are all that share a term.

        Args:
            collection: The collection.
            query: The weights of terms by id, at least one; ids that no row has are possible.
            limit: How many, ``max_results`` at most; None for all that share a term, in any order.
            selection: Which rows count.
        """


def nearest_of(
    ids: Iterable[str], orders: Iterable[int], vectors: Sequence[Any], dimension: int
) -> Nearest:
    """Return rows near a query; vectors may have more numbers than the dimension."""
    import numpy as np

    table = np.zeros((len(vectors), dimension), np.float32)
    for row, vector in enumerate(vectors):
        table[row] = vector[:dimension]
    return Nearest([*ids], np.array([*orders], np.int64), table)


_PAGES = "index values"  # kinds of values in the store

_NUMBERS = "index numbers"

_PAGE = 1_000  # values that are stored together

_MAX_CACHED = 100_000  # numbers in memory, above which the store is asked again

_Head = dict[str, Any]  # "next": the next number; "pages": the last number of each, by stream


class TaggedRow(Protocol):
    """A row of a table, with what filters see."""

    @property
    def document_id(self) -> str:
        """Its document."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What filters see beside that."""


class ValueNumbers:
    """Number the distinct values of each field of a graph.

    Numbers begin with 1, grow, and are given once: who has seen the values up to a number reads
    only what came since. The values of a field are two streams, plain texts and others, each in
    pages; the number of a value is found by its hash.

    Args:
        store: Where they are.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._cached_ids: dict[str, int] = {}
        self._head: tuple[bytes, _Head] = (b"", {"next": 1, "pages": {}})

    def assign(self, rows: Sequence[TaggedRow]) -> list[list[int]]:
        """Return the numbers of the values of each row, ascending; new ones are stored."""
        values: dict[str, tuple[str, str]] = {}  # stream and value, by hash
        hashes: list[list[str]] = []
        latest: tuple[Any, list[str]] = (None, [])  # neighbours often share their metadata
        for row in rows:
            if latest[0] is not row.metadata:
                items = row.metadata.items()
                latest = row.metadata, [_note(values, field, value) for field, value in items]
            hashes.append([*latest[1], _note(values, None, row.document_id)])
        numbers = {key: self._cached_ids[key] for key in values if key in self._cached_ids}
        if missing := [key for key in values if key not in numbers]:
            numbers.update(self._stored(missing))
            if any(key not in numbers for key in missing):
                with self._store.exclusive("index values", wait=True):
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
    """Name a stream of the values of a field; None for the id of the document."""
    kind = "document" if field is None else "text" if plain else "value"
    name = "" if field is None else field
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind} {digest}"


def _hash(stream: str, value: str) -> str:
    key = blake2b(stream.encode(), digest_size=32).digest()
    return blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


def _note(values: dict[str, tuple[str, str]], field: str | None, value: Any) -> str:
    """Add a value to those that are to have a number; return its hash."""
    stream, encoded = _stream(field, field is None or type(value) is str), encode(value)
    key = _hash(stream, encoded)
    values.setdefault(key, (stream, encoded))
    return key
