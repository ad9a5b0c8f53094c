"""The words of a group in an engine beside the store."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar

from ...nodegraph.search_tables import (
    NodeTerms,
    TermFrequency,
    ValueMatch,
    WordCandidates,
    WordedNode,
    WordTotals,
)
from ...nodegraph.store import NodeStore
from .engine_table import BATCH, EngineCollection, EngineTable, key_of
from .index_engine import RowSelection, WordEngine, WordRow

if TYPE_CHECKING:
    from ...nodegraph.search_tables import Impacts, Numbers


_PAGE = 256  # terms whose frequencies are stored together

_MAX_CACHED = 300_000  # numbers of terms in memory, above which the store is asked again

_HEAD = struct.Struct("<qQII")  # order, length, bytes of the id, terms

_MAX_TERMS = 300_000  # that are written at once

_K1, _B = 1.5, 0.75  # BM25's, for the impacts in an engine


class EngineWords(EngineTable[WordedNode, WordEngine]):
    """Search the words of one group in an engine beside the store; see ``EngineTable``.

    The store has the terms of each node, and of each term in how many nodes it is, written in one
    transaction with the record of what the engine has. The engine finds candidates.
    """

    what: ClassVar[str] = "words"

    # Reading, of what this thread's state of the graph has; after ``state``

    def totals(self) -> WordTotals:
        """Return what the nodes have together."""
        collection = self._seen.record.collection
        return WordTotals() if collection is None else _totals(collection)

    def written(self) -> object:
        """Return what differs from one update to the next."""
        return self._seen.record.collection

    def reference_impacts(self, counts: Numbers, lengths: Numbers) -> Impacts:
        """Return the impacts that rows have in the engine, whatever a search asks for."""
        return _impacts(counts, lengths, self._searched().average)

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return of each term its number, and in how many nodes it is.

        Raises:
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        statistics = self._statistics_of(self._searched())
        return self._read(partial(statistics.frequencies, terms))

    def nodes(self, ids: Collection[str]) -> list[NodeTerms]:
        """Return the terms of those nodes that are there.

        Raises:
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        statistics = self._statistics_of(self._searched())
        return [*self._read(partial(statistics.nodes, [*map(key_of, ids)])).values()]

    def search(
        self,
        query: Mapping[int, float],
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
    ) -> WordCandidates:
        """Return the nodes with the highest sums of weight times impact.

        Args:
            query: The weights of terms by id, at least one.
            limit: How many; None, or more than the engine returns, for all that share a term.
            match: Which count.
            without: Ids of nodes that don't count.

        Raises:
            EngineUnavailableError: If the engine can't be reached.
            StaleSnapshotError: If another process has changed the table meanwhile.
        """
        collection, engine = self._searched(), self._engine
        removed_keys = [*map(key_of, without)]
        maximum = None if limit is None or limit > engine.max_results else limit

        def search() -> WordCandidates:
            selection = RowSelection(match, removed_keys, collection.position)
            hits = engine.search_words(collection.name, query, maximum, selection)
            nodes = self._statistics_of(collection).nodes(hits.keys)
            complete = maximum is None or len(hits.keys) < maximum
            return WordCandidates([*nodes.values()], min(hits.scores, default=0.0), complete)

        return self._read(search)

    @property
    def max_results(self) -> int:
        """How many candidates can be read at once."""
        return self._engine.max_results

    @property
    def score_slack(self) -> float:
        """By which factor a sum may exceed the engine's."""
        return self._engine.word_slack

    def _statistics_of(self, collection: EngineCollection) -> WordStatistics:
        return WordStatistics(self._store, collection.name, _totals(collection))

    # Writing

    _average = 0.0
    _statistics: WordStatistics | None = None  # of the collection that is written now

    @contextmanager
    def updating(self, *, wait: bool = True) -> Iterator[bool]:
        """Keep others from updating the table, by a lock of the store."""
        with super().updating(wait=wait) as free:
            if free:
                self._statistics = None
            yield free

    def start(self, average: float) -> None:
        """Begin a whole group anew, within ``updating``.

        Args:
            average: About how many terms a node has: by that impacts are computed, for as long
                as the collection is there.
        """
        record = self._own_record()
        self._put(replace(record, building=None))
        self._drop(record.building)
        self._average = average

    def _created(self, rows: Sequence[WordedNode]) -> EngineCollection:
        name = self._new_name()
        self._call(partial(self._engine.create_words, name))
        return EngineCollection(name, 1, False, average=self._average)

    def _change(
        self, collection: EngineCollection, removed: Collection[str], rows: Sequence[WordedNode]
    ) -> None:
        statistics = self._statistics if self._filling else None
        if statistics is None:
            statistics = self._statistics = self._statistics_of(collection)
        added = {key_of(row.id): row for row in rows}
        value_ids = {
            key: of_row
            for key, of_row in zip(added, self._numbers.assign([*added.values()]), strict=True)
        }
        removed_keys = {*map(key_of, removed)}
        new: list[WordRow] = []
        for key, node in statistics.change(removed_keys, added).items():
            numbers, counts = node.term_ids, node.counts
            if len(numbers):
                impacts = _impacts(counts, node.length, collection.average)
                new.append(WordRow(key, value_ids[key], numbers, impacts))
            else:
                removed_keys.add(key)
        self._delete(collection, [*removed_keys.difference(row.key for row in new)])
        for part in _batches(new):
            self._call(partial(self._engine.put_words, collection.name, part))
        if self._filling:
            statistics.flush(frequencies=False)

    def _completed(self, collection: EngineCollection, token: str) -> EngineCollection:
        position = self._call(lambda: self._engine.set_version_token(collection.name, token))
        totals = WordTotals() if self._statistics is None else self._statistics.totals
        return replace(
            collection,
            version_token=token,
            position=position,
            size=totals.nodes,
            length=totals.length,
            longest=totals.longest,
            terms=totals.terms,
        )

    def _save(self) -> None:
        if self._statistics is not None:
            self._statistics.flush()
        self._statistics = None

    def _drop(self, collection: EngineCollection | None) -> None:
        if collection is not None:
            self._statistics_of(collection).delete()
        super()._drop(collection)


def _batches(rows: Sequence[WordRow]) -> Iterator[list[WordRow]]:
    """Yield rows that are written at once."""
    part: list[WordRow] = []
    terms = 0
    for row in rows:
        if part and (len(part) == BATCH or terms + len(row.terms) > _MAX_TERMS):
            yield part
            part, terms = [], 0
        part.append(row)
        terms += len(row.terms)
    if part:
        yield part


def _impacts(counts: Numbers, lengths: Numbers | int, average: float) -> Impacts:
    """Return what the terms of nodes add to their BM25 scores, for a weight of 1."""
    relative = lengths / (average or 1.0)
    impacts: Impacts = counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * relative))
    return impacts


def _totals(collection: EngineCollection) -> WordTotals:
    return WordTotals(collection.size, collection.length, collection.longest, collection.terms)


class WordStatistics:
    """Read and write the terms of a collection's nodes.

    Three kinds of values: the terms of each node by its key, the number of each term by its hash,
    and pages of how many nodes have each number. Changes are collected, and written by ``flush``;
    the caller does that in one transaction with what says that they are there.

    Args:
        store: The graph's store.
        collection: The collection's name.
        totals: Its totals.
    """

    def __init__(self, store: NodeStore, collection: str, totals: WordTotals) -> None:
        self._store = store
        self._nodes, self._terms, self._pages = (
            f"{collection} {kind}" for kind in ("nodes", "terms", "frequencies")
        )
        self.totals = totals
        self._last = totals.terms
        self._term_ids: dict[str, int] = {}  # numbers of terms by hash
        self._frequencies: dict[int, Numbers] = {}  # pages that have changed
        self._put: dict[str, bytes] = {}
        self._removed: set[str] = set()
        self._new: dict[str, int] = {}

    # Reading

    def nodes(self, keys: Collection[str]) -> dict[str, NodeTerms]:
        """Return the terms of those nodes that are there, by key."""
        stored = self._store.get_values(self._nodes, keys)
        return {key: _unpacked(value) for key, value in stored.items()}

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return the number of each term, and in how many nodes it is."""
        hashes = {term: _hash(term) for term in terms}
        stored = self._store.get_values(self._terms, [*{*hashes.values()}])
        numbers = {term: int(stored.get(key, b"0")) for term, key in hashes.items()}
        pages = self._read_pages({number // _PAGE for number in numbers.values() if number})
        return {
            term: TermFrequency(n, int(pages[n // _PAGE][n % _PAGE]) if n else 0)
            for term, n in numbers.items()
        }

    def _read_pages(self, pages: Collection[int]) -> dict[int, Numbers]:
        import numpy as np

        stored = self._store.get_values(self._pages, [*map(str, pages)]) if pages else {}
        result = {page: np.zeros(_PAGE, np.int64) for page in pages}
        for page, value in stored.items():
            result[int(page)] = np.frombuffer(zlib.decompress(value), "<i8").copy()
        return result

    # Writing

    def change(
        self, removed: Collection[str], added: Mapping[str, WordedNode]
    ) -> dict[str, NodeTerms]:
        """Collect a change: remove nodes by key, then add or replace nodes; return these.

        Args:
            removed: Keys, also unknown ones.
            added: Nodes by key.
        """
        import numpy as np

        numbers = self._numbers({term for row in added.values() for term in row.terms})
        old = self.nodes([*{*removed, *added}])
        nodes, length = self.totals.nodes - len(old), self.totals.length
        length -= sum(node.length for node in old.values())
        max_length = self.totals.longest
        changes = [(node.term_ids, -1) for node in old.values()]
        result: dict[str, NodeTerms] = {}
        for key, row in added.items():
            of_node = np.fromiter((numbers[term] for term in row.terms), np.int64, len(row.terms))
            positions = np.argsort(of_node)
            changes.append((of_node, 1))
            node = NodeTerms(
                row.id, row.order, row.length, of_node[positions], row.counts[positions]
            )
            self._put[key] = _packed(node)
            result[key] = node
            nodes, length, max_length = nodes + 1, length + row.length, max(max_length, row.length)
        self._removed |= old.keys() - added.keys()
        self._count(changes)
        self.totals = WordTotals(nodes, length, max_length, self._last)
        return result

    def _numbers(self, terms: Collection[object]) -> dict[object, int]:
        """Return the number of each term; new ones get the next."""
        hashes = {term: _hash(term) for term in terms}
        existing = self._term_ids
        if missing := [key for key in hashes.values() if key not in existing]:
            stored = self._store.get_values(self._terms, missing)
            existing.update((key, int(number)) for key, number in stored.items())
            for key in missing:
                if key not in existing:
                    self._last += 1
                    existing[key] = self._new[key] = self._last
        return {term: existing[key] for term, key in hashes.items()}

    def _count(self, changes: Iterable[tuple[Numbers, int]]) -> None:
        import numpy as np

        by_step = {1: [np.zeros(0, np.int64)], -1: [np.zeros(0, np.int64)]}
        for numbers, step in changes:
            by_step[step].append(numbers)
        for step, parts in by_step.items():
            numbers, counts = np.unique(np.concatenate(parts), return_counts=True)
            pages, starts = np.unique(numbers // _PAGE, return_index=True)
            self._frequencies.update(self._read_pages({*pages.tolist()} - self._frequencies.keys()))
            ends = np.append(starts, len(numbers))[1:]
            for page, start, end in zip(pages.tolist(), starts, ends, strict=True):
                positions = numbers[start:end] % _PAGE
                self._frequencies[page][positions] += step * counts[start:end]

    def flush(self, *, frequencies: bool = True) -> None:
        """Write what was collected.

        Args:
            frequencies: Also the frequencies, of which each batch of many changes most: they may
                wait for the last.
        """
        with self._store.transaction():
            self._store.put_values(self._nodes, self._put)
            if self._removed:
                self._store.delete_values(self._nodes, [*self._removed])
            if self._new:
                as_bytes = {key: str(number).encode() for key, number in self._new.items()}
                self._store.put_values(self._terms, as_bytes)
            if frequencies and self._frequencies:
                pages = {
                    str(page): zlib.compress(counts.astype("<i8").tobytes(), 1)
                    for page, counts in self._frequencies.items()
                }
                self._store.put_values(self._pages, pages)
        self._put, self._removed, self._new = {}, set(), {}
        if len(self._term_ids) > _MAX_CACHED:
            self._term_ids = {}

    def delete(self) -> None:
        """Delete everything."""
        with self._store.transaction():
            for kind in (self._nodes, self._terms, self._pages):
                self._store.delete_values(kind)


def _hash(term: object) -> str:
    """Hash a term, which is a text for most analyzers."""
    text = f"t{term}" if isinstance(term, str) else f"o{term!r}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _packed(node: NodeTerms) -> bytes:
    """Return a node as bytes: numbers as the steps between them, bytes of one rank together."""
    import numpy as np

    node_id = node.id.encode("utf-8", "surrogatepass")
    head = _HEAD.pack(node.order, node.length, len(node_id), len(node.term_ids))
    both = np.concatenate([np.diff(node.term_ids, prepend=0), node.counts]).astype("<u4")
    ranks = both.view(np.uint8).reshape(-1, 4).T.tobytes()
    return head + node_id + zlib.compress(ranks, 1)


def _unpacked(value: bytes) -> NodeTerms:
    import numpy as np

    order, length, size, terms = _HEAD.unpack_from(value)
    start = _HEAD.size + size
    ranks = np.frombuffer(zlib.decompress(value[start:]), np.uint8).reshape(4, -1)
    both = np.ascontiguousarray(ranks.T).view("<u4").ravel().astype(np.int64)
    node_id = value[_HEAD.size : start].decode("utf-8", "surrogatepass")
    return NodeTerms(node_id, order, length, np.cumsum(both[:terms]), both[terms:])
